/*
 * State and metadata of a run: published values, version guards, continuing as new.
 */
import { ContinueAsNew, InvalidArgumentError, NonDeterminismError } from '../errors.ts'
import { attributeProblem } from '../foundation/attributes.ts'
import { MAX_NAME_BYTES } from '../foundation/keys.ts'
import { marks, PATCH_PREFIX } from '../replay/guard.ts'
import type { Call } from '../replay/open_await.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import type { SearchAttributes } from '../types/run.ts'
import { readLocal } from './readings.ts'
import type { Scope } from './scope.ts'

type Members = 'setEvent' | 'patched' | 'continueAsNew' | 'upsertSearchAttributes'

export function statePrimitives(scope: Scope): Pick<WorkflowCtx, Members> {
  return {
    setEvent: (key, value) =>
      scope.primitive('setEvent', () => {
        scope.checkName('setEvent', key, MAX_NAME_BYTES - 'event:'.length)
        const output = scope.stored(value, `the value of event "${key}"`)
        return scope
          .open(mark('setEvent', marks.setEvent(key)[0].name, output))
          .then(() => undefined)
      }),

    patched: (id) =>
      scope.primitive('patched', () => {
        scope.checkName('patched', id, MAX_NAME_BYTES - PATCH_PREFIX.length)
        const { replay } = scope
        if (replay.fence) return Promise.reject(replay.fence)
        const row = replay.peek()
        const name = PATCH_PREFIX + id
        if (!row || row.name === name) return scope.open<boolean>(mark('patched', name, true))
        if (row.name.startsWith(PATCH_PREFIX)) {
          return replay.breakOff<boolean>(
            new NonDeterminismError(scope.runId, row.seq, `"${name}"`, `"${row.name}"`)
          )
        }
        // History is older than the change: the position belongs to the call that follows.
        return Promise.resolve(false)
      }),

    upsertSearchAttributes: (attributes) =>
      scope.primitive('upsertSearchAttributes', () => {
        checkAttributes(attributes)
        const given = { ...attributes } as SearchAttributes
        return scope
          .open<unknown>({
            primitive: 'upsertSearchAttributes',
            width: 1,
            at: (seq) => ({
              marks: marks.upsertSearchAttributes(),
              command: { kind: 'attributes', seq, attributes: given },
              read: readLocal,
            }),
          })
          .then(() => undefined)
      }),

    continueAsNew: (input) =>
      scope.primitive('continueAsNew', () =>
        Promise.reject(
          scope.replay.fence ??
            new ContinueAsNew(scope.stored(input, 'the input of ctx.continueAsNew'))
        )
      ),
  }
}

function checkAttributes(attributes: unknown): void {
  const where = 'ctx.upsertSearchAttributes'
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) {
    throw new InvalidArgumentError(where, 'takes an object of attributes')
  }
  const wrong = attributeProblem(attributes as Record<string, unknown>)
  if (!wrong) return
  throw new InvalidArgumentError(`${where}: ${JSON.stringify(wrong.key)}`, wrong.problem)
}

function mark(primitive: 'setEvent' | 'patched', name: string, output: unknown): Call {
  return {
    primitive,
    width: 1,
    at: (seq) => ({
      marks: marks.localStep(name),
      command: { kind: 'mark', seq, name, output },
      read: readLocal,
    }),
  }
}
