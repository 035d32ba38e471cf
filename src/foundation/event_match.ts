/*
 * What an event waiter accepts: a subset of the payload, compared structurally. Keys and their order inside
 * nested values do not matter; a key that is missing never matches.
 */
import { isDeepStrictEqual } from 'node:util'

export type EventMatch = Record<string, unknown>

/** Whether a payload holds every key of `match` with an equal value. Both are in stored (JSON) form. */
export function acceptsEvent(match: EventMatch | undefined, payload: unknown): boolean {
  const wanted = Object.entries(match ?? {})
  if (wanted.length === 0) return true
  if (typeof payload !== 'object' || payload === null) return false
  return wanted.every(
    ([key, value]) =>
      Object.hasOwn(payload, key) &&
      isDeepStrictEqual((payload as Record<string, unknown>)[key], value)
  )
}
