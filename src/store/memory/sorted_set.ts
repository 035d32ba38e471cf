/*
 * Ids in order of a number, ties by id: chunks of a few hundred entries, so that adding, removing and
 * seeking stay cheap at a million entries and a poll reads only what it returns. A heap would serve one
 * taker, but polls list without taking.
 */
import { compareText } from '../../foundation/versions.ts'

export interface SortedEntry {
  key: number
  id: string
}

const CHUNK = 512

const compare = (a: SortedEntry, b: SortedEntry): number => a.key - b.key || compareText(a.id, b.id)

export class SortedSet {
  #chunks: SortedEntry[][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: number, id: string): void {
    const entry = { key, id }
    const at = Math.min(this.#chunkOf(entry), Math.max(0, this.#chunks.length - 1))
    const chunk = (this.#chunks[at] ??= [])
    const index = lowerBound(chunk, entry)
    if (index < chunk.length && compare(chunk[index], entry) === 0) return
    chunk.splice(index, 0, entry)
    this.#size += 1
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2))
  }

  delete(key: number, id: string): void {
    const entry = { key, id }
    const at = this.#chunkOf(entry)
    const chunk = this.#chunks[at]
    if (!chunk) return
    const index = lowerBound(chunk, entry)
    if (index >= chunk.length || compare(chunk[index], entry) !== 0) return
    chunk.splice(index, 1)
    this.#size -= 1
    if (chunk.length === 0) this.#chunks.splice(at, 1)
  }

  /** Lowest first. The set must not change while this is read. */
  *ascending(): Generator<SortedEntry> {
    for (const chunk of this.#chunks) yield* chunk
  }

  /** Highest first; with `before`, only what sorts before it. The set must not change meanwhile. */
  *descending(before?: SortedEntry): Generator<SortedEntry> {
    let at = before ? this.#chunkOf(before) : this.#chunks.length - 1
    if (at >= this.#chunks.length) at = this.#chunks.length - 1
    for (; at >= 0; at--) {
      const chunk = this.#chunks[at]
      let index = before ? lowerBound(chunk, before) : chunk.length
      while (--index >= 0) yield chunk[index]
    }
  }

  /** The first chunk whose last entry does not sort before `entry`. */
  #chunkOf(entry: SortedEntry): number {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >> 1
      const chunk = this.#chunks[middle]
      if (compare(chunk[chunk.length - 1], entry) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function lowerBound(chunk: SortedEntry[], entry: SortedEntry): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(chunk[middle], entry) < 0) low = middle + 1
    else high = middle
  }
  return low
}
