/*
 * Search attributes as callers give them: the one check that every value passes before it is written.
 */
import { keyProblem } from './keys.ts'

/** The first attribute that no store could keep and query, and why; undefined when there is none. */
export function attributeProblem(
  attributes: Record<string, unknown>
): { key: string; problem: string } | undefined {
  for (const [key, value] of Object.entries(attributes)) {
    const problem = keyProblem(key)
    if (problem) return { key, problem }
    if (typeof value === 'boolean' || Number.isFinite(value)) continue
    // Text is compared by the database, which may not be able to hold these.
    if (typeof value === 'string' && !value.includes('\u0000') && value.isWellFormed()) continue
    return {
      key,
      problem:
        'must be a string, a boolean or a finite number; of strings, well-formed Unicode without U+0000',
    }
  }
  return undefined
}
