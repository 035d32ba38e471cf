/*
 * JSON: the one meaning of "payload". Everything that becomes durable passes through here once; what a
 * body sees is always the stored form, so a first execution and a replay cannot differ.
 */
import { DurableError, messageOf } from './failure.ts'

/** Largest payload by default, in bytes of JSON text. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 8 * 1024 * 1024

/**
 * Deepest nesting of arrays and objects. What runs over the members of a payload calls itself for each
 * level, on a stack that may be nearly used up by then.
 */
const MAX_DEPTH = 1000

/** Thrown by `encodeJson` for a value that has no JSON form or is too large. */
export class UnstorableValueError extends DurableError {
  static override readonly code: string = 'unstorable_value'
}

/** The JSON text of a value; `undefined` when there is nothing to store. */
export function encodeJson(
  value: unknown,
  what: string,
  maxBytes: number = DEFAULT_MAX_PAYLOAD_BYTES
): string | undefined {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw new UnstorableValueError(
      `${what} cannot be stored as JSON: ${messageOf(cause).split('\n')[0]}. ` +
        'Return plain data: no BigInt, no circular references.',
      { cause }
    )
  }
  // A string of n code units has at least n and at most 3n bytes: count only when it matters.
  if (text !== undefined && text.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(text)
    if (bytes > maxBytes) {
      throw new UnstorableValueError(
        `${what} is ${bytes} bytes of JSON, more than the ${maxBytes} allowed (maxPayloadBytes). ` +
          'Store large data elsewhere and keep a reference to it in the run.'
      )
    }
  }
  return text
}

function isDeeperThan(limit: number, text: string): boolean {
  // Each level takes two characters.
  if (text.length <= 2 * limit) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at)
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++depth > limit) return true
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--
    }
  }
  return false
}

/** Where the closing quote is. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++
    if (escapes % 2 === 0) return at
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [...'"\\[]{}'].map(
  (character) => character.charCodeAt(0)
)

/** The value of JSON text; `undefined` for nothing. */
export function decodeJson(text: string | undefined | null): unknown {
  return text === undefined || text === null ? undefined : JSON.parse(text)
}

/** The JSON text of a payload that comes from outside: its nesting is bounded too. */
export function encodePayload(value: unknown, what: string, maxBytes?: number): string | undefined {
  const text = encodeJson(value, what, maxBytes)
  if (text === undefined || !isDeeperThan(MAX_DEPTH, text)) return text
  throw new UnstorableValueError(
    `${what} is nested deeper than ${MAX_DEPTH} levels. Give flat data: a list instead of a chain.`
  )
}

/** What a value looks like after it was stored and read back. Throws `UnstorableValueError`. */
export function toStored(value: unknown, what: string, maxBytes?: number): unknown {
  const text = encodePayload(value, what, maxBytes)
  // Most results are short strings, numbers or nothing: these are their own stored form.
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (Number.isFinite(value) && value !== 0) return value
  return decodeJson(text)
}

/** A deep copy of JSON data. */
export function cloneJson<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(cloneJson) as T
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const member = cloneJson((value as Record<string, unknown>)[key])
    // Plain assignment to this one key would set the prototype instead.
    if (key === '__proto__') {
      Object.defineProperty(copy, key, {
        value: member,
        enumerable: true,
        configurable: true,
        writable: true,
      })
    } else copy[key] = member
  }
  return copy as T
}

/** Structural equality of JSON data; the order of keys does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keysOfA = Object.keys(a)
  if (keysOfA.length !== Object.keys(b).length) return false
  return keysOfA.every(
    (key) =>
      Object.hasOwn(b, key) &&
      jsonEqual((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key])
  )
}
