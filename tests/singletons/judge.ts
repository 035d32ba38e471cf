/*
 * What a ledger of comings and goings may look like: never more than the limit inside, oldest first.
 */
export interface Entry {
  runId: string
  key: string
  what: 'enter' | 'leave'
}

/** `age` of a run is its place in the order of creation within its key, from 0. Answers what is wrong. */
export function judge(ledger: Entry[], age: Map<string, number>, limit: number): string[] {
  const problems: string[] = []
  const inside = new Map<string, Set<string>>()
  const entered = new Map<string, number>()
  const seen = new Set<string>()
  for (const { runId, key, what } of ledger) {
    if (seen.has(`${what} ${runId}`)) problems.push(`${runId} did ${what} twice`)
    seen.add(`${what} ${runId}`)
    const guests = inside.get(key) ?? new Set()
    inside.set(key, guests)
    if (what === 'leave') {
      guests.delete(runId)
      continue
    }
    guests.add(runId)
    if (guests.size > limit) problems.push(`${key}: ${[...guests].join(', ')} are inside at once`)
    const place = entered.get(key) ?? 0
    entered.set(key, place + 1)
    // Of the older ones, those that hold a slot may still be on their way in; the rest have entered.
    const skipped = age.get(runId)! - place
    if (skipped > limit - 1) problems.push(`${key}: ${runId} came in before ${skipped} older ones`)
  }
  for (const runId of age.keys()) {
    for (const what of ['enter', 'leave']) {
      if (!seen.has(`${what} ${runId}`)) problems.push(`${runId} never did ${what}`)
    }
  }
  return problems
}
