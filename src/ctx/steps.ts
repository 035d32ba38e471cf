/*
 * ctx.step: a durable step that a worker serves.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { mergePolicy, stepConfigOf, stepNameOf } from '../authoring/step_ref.ts'
import { InvalidArgumentError, RemoteStepError, RemoteStepTimeout } from '../errors.ts'
import { isFinalFailure, maxAttempts } from '../foundation/backoff.ts'
import { marks } from '../replay/guard.ts'
import type { Reading, RowsOfCall, Undo } from '../replay/open_await.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import type { StepDispatchOpts, StepRef } from '../types/step.ts'
import { checkPolicy, checkQueueing } from './policy.ts'
import { answeredWith, failedWith, OPEN } from './readings.ts'
import type { Scope } from './scope.ts'

type Options = StepDispatchOpts & { compensate?: StepRef<never, unknown> | string }

/** Options whose machinery is not part of this release: refused, never silently ignored. */
const NOT_YET = ['requires'] as const

export function stepPrimitives(scope: Scope): Pick<WorkflowCtx, 'step'> {
  const step = (
    handler: StepRef<never, unknown> | string,
    input: unknown,
    options: Options = {}
  ): Promise<unknown> =>
    scope.primitive('step', () => {
      const name = routingName('ctx.step', handler)
      scope.checkName('step', name)
      checkOptions(`ctx.step("${name}")`, options, OPTIONS.step)
      const { compensate, ...perCall } = options
      const policy = mergePolicy(stepConfigOf(handler), perCall)
      checkPolicy(`ctx.step("${name}")`, policy)
      checkQueueing(`ctx.step("${name}")`, policy)
      for (const option of NOT_YET) {
        if (policy[option] === undefined) continue
        throw new InvalidArgumentError(
          `ctx.step("${name}"): option "${option}"`,
          'is not supported by this release'
        )
      }
      const stored = scope.stored(input, `the input of step "${name}"`)
      const undo = compensate === undefined ? undefined : dispatchedUndo(name, compensate, stored)
      return scope.open({
        primitive: 'step',
        width: 1,
        at: (seq) => ({
          marks: marks.step(name),
          command: { kind: 'call', seq, name, input: stored, options: policy },
          read: (rows) => readCall(rows, maxAttempts(policy)),
          undo,
        }),
      })
    })
  return { step: step as WorkflowCtx['step'] }
}

/** A dispatched step: its result answers, a failure once no attempt is left. */
export function readCall(rows: RowsOfCall, attemptsAllowed: number): Reading {
  const row = rows(0)
  if (!row) return OPEN
  if (row.status === 'completed') return answeredWith(row, row.output)
  if (row.status === 'failed' && isFinalFailure(row, attemptsAllowed)) {
    return failedWith(row, errorOf(row))
  }
  return row.wakeAt === undefined ? OPEN : { state: 'open', dueAt: row.wakeAt }
}

function errorOf({ stepId, error = { message: 'failed' } }: StepCheckpoint): Error {
  const { timeoutMs } = (error.details ?? {}) as { timeoutMs?: unknown }
  if (error.code === RemoteStepTimeout.code && typeof timeoutMs === 'number') {
    return new RemoteStepTimeout(stepId, timeoutMs)
  }
  return new RemoteStepError(error.message, error)
}

function routingName(where: string, handler: StepRef<never, unknown> | string): string {
  if (typeof handler === 'string') return handler
  const name = stepNameOf(handler)
  if (name === undefined) {
    throw new InvalidArgumentError(
      where,
      'takes a @Step method, a defineStep handle or a name; this function carries no step name'
    )
  }
  return name
}

function dispatchedUndo(
  name: string,
  compensate: StepRef<never, unknown> | string,
  input: unknown
): Undo {
  const step = routingName('ctx.step compensate', compensate)
  const policy = { ...stepConfigOf(compensate) }
  checkPolicy(`ctx.step("${name}"): compensate "${step}"`, policy)
  return { kind: 'dispatch', name, step, policy, input }
}
