/*
 * A walk over more runs than one pass may look at.
 */
import type { FullStore } from '../../store/full_store.ts'
import type { RunFilter } from '../../types/query.ts'
import { readablePage, type ReadablePage } from './readable_page.ts'

/** Walks runs oldest first, a page at each call, and from the beginning again after the last. */
export class Walk {
  #after?: number
  #page = 1

  async next(
    store: Pick<FullStore, 'listRuns'>,
    filter: RunFilter,
    size: number
  ): Promise<ReadablePage> {
    const createdAfter = Math.max(filter.createdAfter ?? -Infinity, this.#after ?? -Infinity)
    const bound = Number.isFinite(createdAfter) ? { createdAfter } : {}
    const page = this.#page
    const found = await readablePage(store, { ...filter, ...bound, oldestFirst: true, page, size })
    this.#move(found)
    return found
  }

  #move({ runs, isFull }: ReadablePage): void {
    if (!isFull) {
      this.#after = undefined
      this.#page = 1
      return
    }
    // Others of the same millisecond may follow.
    const after = runs.length > 0 ? runs.at(-1)!.createdAt.getTime() - 1 : -Infinity
    if (after > (this.#after ?? -Infinity)) {
      this.#after = after
      this.#page = 1
    } else this.#page += 1
  }
}
