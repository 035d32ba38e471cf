/*
 * Work that runs in the engine's process: local steps, transactions, captures.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { InvalidArgumentError, StoreCapabilityError } from '../errors.ts'
import { marks } from '../replay/guard.ts'
import type { Undo } from '../replay/open_await.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import type { StepLogger, StepOptions } from '../types/step.ts'
import { checkPolicy, checkUndo } from './policy.ts'
import { readLocal } from './readings.ts'
import type { Scope } from './scope.ts'

type Members = 'localStep' | 'transaction' | 'now' | 'sideEffect'

export function localPrimitives(scope: Scope): Pick<WorkflowCtx, Members> {
  return {
    localStep: <T>(
      name: string,
      fn: (log: StepLogger) => Promise<T> | T,
      options: StepOptions = {}
    ) =>
      scope.primitive('localStep', () => {
        scope.checkName('localStep', name)
        const where = `ctx.localStep("${name}")`
        if (typeof fn !== 'function') {
          throw new InvalidArgumentError(where, 'takes the function that does the work')
        }
        checkOptions(where, options, OPTIONS.localStep)
        for (const option of ['pickupTimeoutMs', 'requires'] as const) {
          if (options[option] === undefined) continue
          throw new InvalidArgumentError(
            `${where}: option "${option}"`,
            'belongs to dispatched steps'
          )
        }
        checkPolicy(where, options)
        checkUndo(where, options.compensate)
        const undo: Undo | undefined = options.compensate && {
          kind: 'local',
          name,
          run: options.compensate,
        }
        return scope.open<T>({
          primitive: 'localStep',
          width: 1,
          at: (seq) => ({
            marks: marks.localStep(name),
            command: { kind: 'local', seq, name, run: fn, options },
            read: readLocal,
            undo,
          }),
        })
      }),

    transaction: <T>(name: string, fn: (tx: unknown) => Promise<T>) =>
      scope.primitive('transaction', () => {
        scope.checkName('transaction', name)
        if (!scope.transactions) {
          throw new StoreCapabilityError(
            `ctx.transaction("${name}"): this store has no transaction(). ` +
              'Use the Lucid store, or a store that implements StateStore.transaction.'
          )
        }
        return scope.open<T>({
          primitive: 'transaction',
          width: 1,
          at: (seq) => ({
            marks: marks.transaction(name),
            command: { kind: 'transaction', seq, name, run: fn },
            read: readLocal,
          }),
        })
      }),

    now: () => scope.primitive('now', () => capture<number>(scope, 'now', (now) => now)),

    sideEffect: <T>(fn: () => T | Promise<T>) =>
      scope.primitive('sideEffect', () => capture<T>(scope, 'sideEffect', fn)),
  }
}

function capture<T>(
  scope: Scope,
  name: 'now' | 'sideEffect',
  compute: (now: number) => unknown
): Promise<T> {
  return scope.open<T>({
    primitive: name,
    width: 1,
    at: (seq) => ({
      marks: marks[name](),
      command: { kind: 'capture', seq, name, compute },
      read: readLocal,
    }),
  })
}
