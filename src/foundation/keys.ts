/*
 * Keys: the one check that every id, name, token, tag and namespace passes before anything is written,
 * so that all stores accept and refuse the same ones.
 */
import { MAX_KEY_BYTES } from './ids.ts'

/** Longest checkpoint name or step id, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 512

/** Longest key of a schedule, in bytes of UTF-8: its runs and their children are named after it. */
export const MAX_SCHEDULE_KEY_BYTES = 200

/** What is wrong with a key, as the end of a sentence; undefined when nothing is. */
export function keyProblem(value: unknown, maxBytes: number = MAX_KEY_BYTES): string | undefined {
  if (typeof value !== 'string') return `must be a string, got ${describeType(value)}`
  if (value === '') return 'must not be empty'
  const bytes = Buffer.byteLength(value)
  if (bytes > maxBytes) return `is ${bytes} bytes long, at most ${maxBytes} are allowed`
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(value)) return 'must not contain control characters'
  if (!value.isWellFormed()) return 'must be well-formed Unicode (it has half a surrogate pair)'
  return undefined
}

/** What is wrong with a key that becomes a tag behind `prefix`; an empty one is a key like any other. */
export function tagKeyProblem(prefix: string, key: string): string | undefined {
  return key === '' ? undefined : keyProblem(key, MAX_KEY_BYTES - Buffer.byteLength(prefix))
}

function describeType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value
}
