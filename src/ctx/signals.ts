/*
 * Waiting for signals. A bounded wait takes its deadline's position whether or not the payload is there:
 * positions follow from arguments, never from runtime state.
 */
import { InvalidArgumentError } from '../errors.ts'
import { isDurationMs } from '../foundation/duration.ts'
import { storableToken } from '../foundation/ids.ts'
import { keyProblem } from '../foundation/keys.ts'
import { marks } from '../replay/guard.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import { readSignal } from './readings.ts'
import type { Scope } from './scope.ts'

export function signalPrimitives(scope: Scope): Pick<WorkflowCtx, 'waitForSignal'> {
  return {
    waitForSignal: <T>(token: string, options: { timeoutMs?: number } = {}) =>
      scope.primitive('waitForSignal', () => {
        const problem = keyProblem(token, Infinity)
        if (problem) throw new InvalidArgumentError('ctx.waitForSignal: the token', problem)
        return waitOn<T>(scope, token, options.timeoutMs)
      }),
  }
}

function waitOn<T>(scope: Scope, token: string, timeoutMs: number | undefined): Promise<T> {
  const bounded = timeoutMs !== undefined
  if (bounded && !isDurationMs(timeoutMs)) {
    throw new InvalidArgumentError('ctx.waitForSignal: timeoutMs', 'must be 0 or more milliseconds')
  }
  const stored = storableToken(token)
  const width = bounded ? 2 : 1
  return scope.open<T>({
    primitive: 'waitForSignal',
    width,
    at: (seq) => ({
      marks: marks.waitForSignal(stored, bounded),
      command: { kind: 'signal', seq, signalSeq: seq + width - 1, token: stored, timeoutMs },
      read: (rows) =>
        readSignal(bounded ? rows(0) : undefined, rows(width - 1), { token, timeoutMs }),
    }),
  })
}
