/*
 * Waiting for payloads: signals, updates, published events. A bounded wait takes its deadline's position
 * whether or not the payload is there: positions follow from arguments, never from runtime state.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { InvalidArgumentError } from '../errors.ts'
import { isDurationMs } from '../foundation/duration.ts'
import type { EventMatch } from '../foundation/event_match.ts'
import { storableToken } from '../foundation/ids.ts'
import { keyProblem } from '../foundation/keys.ts'
import { eventToken, MAX_EVENT_NAME_BYTES, updateToken } from '../foundation/tokens.ts'
import { marks } from '../replay/guard.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import { readSignal } from './readings.ts'
import type { Scope } from './scope.ts'

type Members = 'waitForSignal' | 'waitForEvent' | 'onUpdate'
type Waiting = 'waitForSignal' | 'onUpdate'

export function signalPrimitives(scope: Scope): Pick<WorkflowCtx, Members> {
  return {
    waitForSignal: <T>(token: string, options: { timeoutMs?: number } = {}) =>
      scope.primitive('waitForSignal', () => {
        const problem = keyProblem(token, Infinity)
        if (problem) throw new InvalidArgumentError('ctx.waitForSignal: the token', problem)
        checkOptions('ctx.waitForSignal', options, OPTIONS.wait)
        return waitOn<T>(scope, 'waitForSignal', token, options.timeoutMs)
      }),

    onUpdate: <T>(name: string, options: { timeoutMs?: number } = {}) =>
      scope.primitive('onUpdate', () => {
        scope.checkName('onUpdate', name)
        checkOptions('ctx.onUpdate', options, OPTIONS.wait)
        return waitOn<T>(scope, 'onUpdate', updateToken(scope.runId, name), options.timeoutMs)
      }),

    waitForEvent: <T>(
      name: string,
      options: { match?: Record<string, unknown>; timeoutMs?: number } = {}
    ) =>
      scope.primitive('waitForEvent', () => {
        scope.checkName('waitForEvent', name, MAX_EVENT_NAME_BYTES)
        checkOptions('ctx.waitForEvent', options, OPTIONS.eventWait)
        checkTimeout('waitForEvent', options.timeoutMs)
        return waitForEvent<T>(
          scope,
          name,
          storedMatch(scope, name, options.match),
          options.timeoutMs
        )
      }),
  }
}

/** Throws, before a position is taken, for what is no bound of a wait. */
export function checkTimeout(primitive: string, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || isDurationMs(timeoutMs)) return
  throw new InvalidArgumentError(`ctx.${primitive}: timeoutMs`, 'must be 0 or more milliseconds')
}

function waitOn<T>(
  scope: Scope,
  primitive: Waiting,
  token: string,
  timeoutMs: number | undefined
): Promise<T> {
  checkTimeout(primitive, timeoutMs)
  const bounded = timeoutMs !== undefined
  const stored = storableToken(token)
  const width = bounded ? 2 : 1
  return scope.open<T>({
    primitive,
    width,
    at: (seq) => ({
      marks: marks.waitForSignal(stored, bounded),
      command: { kind: 'signal', seq, signalSeq: seq + width - 1, token: stored, timeoutMs },
      read: (rows) =>
        readSignal(bounded ? rows(0) : undefined, rows(width - 1), { token, timeoutMs }),
    }),
  })
}

function waitForEvent<T>(
  scope: Scope,
  name: string,
  match: EventMatch | undefined,
  timeoutMs: number | undefined
): Promise<T> {
  const bounded = timeoutMs !== undefined
  const width = bounded ? 2 : 1
  const told = `event:${name}`
  return scope.open<T>({
    primitive: 'waitForEvent',
    width,
    at: (seq) => {
      const signalSeq = seq + width - 1
      const { token, hidden } = eventToken({ name, match }, scope.runId, signalSeq)
      return {
        marks: marks.waitForEvent(token, bounded ? told : undefined),
        command: { kind: 'event', seq, signalSeq, token, name, match, hidden, timeoutMs },
        read: (rows) =>
          readSignal(bounded ? rows(0) : undefined, rows(width - 1), { token: told, timeoutMs }),
      }
    },
  })
}

function storedMatch(
  scope: Scope,
  name: string,
  match: Record<string, unknown> | undefined
): EventMatch | undefined {
  if (match === undefined) return undefined
  if (typeof match !== 'object' || match === null || Array.isArray(match)) {
    throw new InvalidArgumentError('ctx.waitForEvent: match', 'must be an object')
  }
  return scope.stored(match, `the match of event "${name}"`) as EventMatch
}
