/*
 * When windows begin: a pure function of time, so that every process names the same window.
 */

export interface Window {
  /** Epoch ms. */
  at: number
  /** What the window is called in the id of its run. */
  name: string
}

export interface Cadence {
  /** The window that contains `now`; undefined before the first one. */
  current(now: number): Window | undefined
  /** Up to `count` windows before one, oldest first. */
  before(window: Window, count: number): Window[]
  /** When the next window begins; undefined when there is none. */
  nextAt(now: number): number | undefined
}

/** Windows of a fixed length, counted from the epoch. */
export class IntervalCadence implements Cadence {
  readonly #everyMs: number

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  current(now: number): Window {
    return this.#window(Math.floor(now / this.#everyMs))
  }

  before(window: Window, count: number): Window[] {
    const bucket = Math.round(window.at / this.#everyMs)
    const first = Math.max(0, bucket - count)
    return Array.from({ length: bucket - first }, (_, index) => this.#window(first + index))
  }

  nextAt(now: number): number {
    return (Math.floor(now / this.#everyMs) + 1) * this.#everyMs
  }

  #window(bucket: number): Window {
    return { at: bucket * this.#everyMs, name: String(bucket) }
  }
}
