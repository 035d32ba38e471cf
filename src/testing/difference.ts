/*
 * The first difference between two JSON values, as a sentence with a path.
 */
import { encodeJson, jsonEqual } from '../foundation/json.ts'

export interface Difference {
  /** As in code: `.items[2].cents`; empty for the values themselves. */
  path: string
  expected: unknown
  actual: unknown
}

/** Where `actual` first differs from `expected`; undefined when it does not. Key order does not matter. */
export function differenceOf(
  expected: unknown,
  actual: unknown,
  path = ''
): Difference | undefined {
  if (jsonEqual(expected, actual)) return undefined
  if (Array.isArray(expected) && Array.isArray(actual)) {
    const length = Math.max(expected.length, actual.length)
    for (let i = 0; i < length; i++) {
      const found = differenceOf(expected[i], actual[i], `${path}[${i}]`)
      if (found) return found
    }
    return undefined
  }
  if (isRecord(expected) && isRecord(actual)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      if (Object.hasOwn(expected, key) && Object.hasOwn(actual, key)) {
        const found = differenceOf(expected[key], actual[key], path + member(key))
        if (found) return found
      } else {
        return { path: path + member(key), expected: expected[key], actual: actual[key] }
      }
    }
  }
  return { path, expected, actual }
}

/** The difference in words; `what` names the values. */
export function describeDifference(what: string, { path, expected, actual }: Difference): string {
  return `${what}${path}: expected ${shown(expected)}, got ${shown(actual)}`
}

/** A value as it is shown in a message: JSON, cut when it is long. */
export function shown(value: unknown, longest = 200): string {
  let text: string
  try {
    text = encodeJson(value, 'a shown value') ?? String(value)
  } catch {
    text = String(value)
  }
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

const member = (key: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
