/*
 * Events that matched nobody when they were published, by age, for each name and altogether.
 */
import type { BufferedEvent } from '../../types/checkpoint.ts'
import { decodeRow, encodeRow, EVENT_COLUMNS, type StoredEvent } from './columns.ts'
import { SortedSet, type SortedEntry } from './sorted_set.ts'

export class EventTable {
  readonly #rows = new Map<string, StoredEvent & { name: string }>()
  readonly #byAge = new SortedSet()
  readonly #byName = new Map<string, SortedSet>()

  put(event: BufferedEvent & { name: string }): void {
    this.remove(event.id)
    const row = encodeRow<BufferedEvent, typeof EVENT_COLUMNS>(EVENT_COLUMNS, event) as StoredEvent
    this.#rows.set(row.id, { ...row, name: event.name })
    this.#byAge.add(row.publishedAt, row.id)
    let named = this.#byName.get(event.name)
    if (!named) this.#byName.set(event.name, (named = new SortedSet()))
    named.add(row.publishedAt, row.id)
  }

  /** Oldest first. */
  list(name: string, limit: number): BufferedEvent[] {
    const entries = this.#byName.get(name)?.ascending() ?? []
    return first(entries, limit).map(({ id }) =>
      decodeRow<BufferedEvent, typeof EVENT_COLUMNS>(EVENT_COLUMNS, this.#rows.get(id)!)
    )
  }

  remove(id: string): boolean {
    const row = this.#rows.get(id)
    if (!row) return false
    this.#rows.delete(id)
    this.#byAge.delete(row.publishedAt, id)
    const named = this.#byName.get(row.name)
    named?.delete(row.publishedAt, id)
    if (named?.size === 0) this.#byName.delete(row.name)
    return true
  }

  /** Removes what was published before, oldest first. */
  prune(publishedBefore: number, limit?: number): number {
    const old = first(this.#byAge.ascending(), limit, publishedBefore)
    for (const { id } of old) this.remove(id)
    return old.length
  }
}

function first(
  entries: Iterable<SortedEntry>,
  limit = Number.POSITIVE_INFINITY,
  below = Number.POSITIVE_INFINITY
): SortedEntry[] {
  const found: SortedEntry[] = []
  if (limit <= 0) return found
  for (const entry of entries) {
    if (entry.key >= below) break
    found.push(entry)
    if (found.length >= limit) break
  }
  return found
}
