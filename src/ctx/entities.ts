/*
 * Durable entities: operations that one key executes one after the other.
 */
import { FatalError, InvalidArgumentError } from '../errors.ts'
import { storableToken } from '../foundation/ids.ts'
import { entityProblem, entityReplyToken } from '../foundation/tokens.ts'
import { marks } from '../replay/guard.ts'
import type { Reading, RowsOfCall } from '../replay/open_await.ts'
import type { CompletionEnvelope } from '../types/checkpoint.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import { answeredWith, failedWith, OPEN, readLocal } from './readings.ts'
import type { Scope } from './scope.ts'

export function entityPrimitives(scope: Scope): Pick<WorkflowCtx, 'callEntity' | 'signalEntity'> {
  const check = (primitive: string, name: string, key: string, op: string, arg: unknown) => {
    const wrong = entityProblem(name, key, op)
    if (wrong) throw new InvalidArgumentError(`ctx.${primitive}: ${wrong.what}`, wrong.problem)
    return scope.stored(arg, `the argument of "${op}" on entity "${name}"`)
  }
  return {
    callEntity: <T>(name: string, key: string, op: string, arg?: unknown) =>
      scope.primitive('callEntity', () => {
        const stored = check('callEntity', name, key, op, arg)
        return scope.open<T>({
          primitive: 'callEntity',
          width: 1,
          at: (seq) => {
            const replyTo = storableToken(entityReplyToken(scope.runId, seq))
            const expected = marks.callEntity(replyTo)
            const row = expected[0].name
            return {
              marks: expected,
              command: { kind: 'entity', seq, row, name, key, op, arg: stored, replyTo },
              read: (rows) => readReply(rows, `${name}:${key}`, op),
            }
          },
        })
      }),

    signalEntity: (name, key, op, arg) =>
      scope.primitive('signalEntity', () => {
        const stored = check('signalEntity', name, key, op, arg)
        return scope
          .open<unknown>({
            primitive: 'signalEntity',
            width: 1,
            at: (seq) => {
              const expected = marks.signalEntity(name, key)
              const row = expected[0].name
              return {
                marks: expected,
                command: { kind: 'entity', seq, row, name, key, op, arg: stored },
                read: readLocal,
              }
            },
          })
          .then(() => undefined)
      }),
  }
}

function readReply(rows: RowsOfCall, entity: string, op: string): Reading {
  const row = rows(0)
  if (row?.status !== 'completed') return OPEN
  const completion = row.output as CompletionEnvelope
  if (completion.ok) return answeredWith(row, completion.value)
  const { error, code, details } = completion
  return failedWith(
    row,
    new FatalError(`"${op}" on entity "${entity}" failed: ${error}`, code, details)
  )
}
