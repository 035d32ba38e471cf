/*
 * Which open await a position belongs to. A wide call is found by its range, so that opening a fan costs
 * the same whatever its size.
 */
import type { OpenAwait } from './open_await.ts'

/** From this many positions on a call is kept as a range. */
const WIDE = 16

export class Owners {
  readonly #narrow = new Map<number, OpenAwait>()
  /** Ascending: positions are taken in order. */
  readonly #wide: OpenAwait[] = []

  at(seq: number): OpenAwait | undefined {
    const narrow = this.#narrow.get(seq)
    if (narrow) return narrow
    const entry = this.#wide[this.#after(seq) - 1]
    return entry && seq < entry.seq + entry.width ? entry : undefined
  }

  add(entry: OpenAwait): void {
    if (entry.width >= WIDE) {
      this.#wide.splice(this.#after(entry.seq), 0, entry)
      if (entry.minted !== undefined) this.#narrow.set(entry.minted, entry)
    } else for (const seq of entry.seqs()) this.#narrow.set(seq, entry)
  }

  remove(entry: OpenAwait): void {
    if (entry.width >= WIDE) {
      const at = this.#after(entry.seq) - 1
      if (this.#wide[at] === entry) this.#wide.splice(at, 1)
      if (entry.minted !== undefined) this.#narrow.delete(entry.minted)
    } else for (const seq of entry.seqs()) this.#narrow.delete(seq)
  }

  clear(): void {
    this.#narrow.clear()
    this.#wide.length = 0
  }

  /** Index of the first wide call that begins after `seq`. */
  #after(seq: number): number {
    let [low, high] = [0, this.#wide.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#wide[middle].seq <= seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
