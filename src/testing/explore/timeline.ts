/*
 * Histories as lines of text, and what differs between two of them.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'

/** How many equal lines are shown around a difference. */
const AROUND = 2

/** A row in words: position, name, kind and status. */
export function stepLabel({ seq, name, kind, status }: StepCheckpoint): string {
  return `position ${seq} "${name}" (${kind}, ${status})`
}

/** The rows as lines, by position, without what two executions may differ in. */
export function linesOf(rows: readonly StepCheckpoint[]): string[] {
  return [...rows]
    .sort((a, b) => a.seq - b.seq)
    .map(({ seq, name, kind, status }) => `${String(seq).padStart(4)}  ${name} (${kind}) ${status}`)
}

/**
 * The lines around the first difference of two histories, each marked ` ` in both, `-` only in the first,
 * `+` only in the second; undefined when they are alike.
 */
export function timelineDiff(
  expected: readonly StepCheckpoint[],
  actual: readonly StepCheckpoint[]
): string | undefined {
  const before = linesOf(expected)
  const after = linesOf(actual)
  const length = Math.max(before.length, after.length)
  let first = 0
  while (first < length && before[first] === after[first]) first += 1
  if (first === length) return undefined
  const lines: string[] = []
  const from = Math.max(0, first - AROUND)
  for (let at = from; at < Math.min(length, first + AROUND + 1); at++) {
    if (before[at] === after[at]) lines.push(`  ${before[at]}`)
    else {
      if (before[at] !== undefined) lines.push(`- ${before[at]}`)
      if (after[at] !== undefined) lines.push(`+ ${after[at]}`)
    }
  }
  if (from > 0) lines.unshift('  …')
  return lines.join('\n')
}
