/*
 * When runs fall due that this process parked or delayed: what a worker loop needs to wake up in time. A
 * hint: runs that others park, and those of an earlier life, are found by the polls.
 */
import type { Clock } from '../../foundation/clock.ts'

/** Told in how many ms a run falls due; 0 for one that does already. */
export type DueListener = (inMs: number) => void

export class DueTimes {
  readonly #clock: Clock
  readonly #listeners = new Set<DueListener>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The answer stops it. */
  subscribe(listener: DueListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** `wakeAt` is epoch ms, as it was written. */
  note(wakeAt: number): void {
    if (this.#listeners.size === 0) return
    const inMs = Math.max(0, wakeAt - this.#clock())
    for (const listener of this.#listeners) listener(inMs)
  }
}
