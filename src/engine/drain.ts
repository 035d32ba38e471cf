/*
 * Draining: no new work is picked up, work in flight and what follows from it is waited for, within one
 * budget.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'

const DRAIN_MS = 10_000

export interface DrainOptions {
  timers: Timers
  /** Turns that execute here. */
  turns: () => Promise<unknown>[]
}

export class Drain {
  readonly #options: DrainOptions
  /** Detached effects that still write. */
  readonly #effects = new Set<Promise<unknown>>()
  readonly #listeners = new Set<() => void>()
  #draining = false
  #spentMs = 0
  #shorten?: (ms: number) => void

  constructor(options: DrainOptions) {
    this.#options = options
  }

  get draining(): boolean {
    return this.#draining
  }

  /** Tracks work that nobody awaits. Call it synchronously with what causes the work. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#effects.add(work)
    work.then(
      () => this.#effects.delete(work),
      () => this.#effects.delete(work)
    )
    return work
  }

  /** Calls back once when a drain begins; the answer calls it off. */
  onBegin(listener: () => void): Cancel {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Stops pickups; `spentMs` already waited comes off the budget, also of a drain under way. */
  begin(spentMs?: number): void {
    this.#draining = true
    for (const listener of this.#listeners) listener()
    this.#listeners.clear()
    if (spentMs === undefined || !Number.isFinite(spentMs) || spentMs <= 0) return
    this.#spentMs += spentMs
    this.#shorten?.(spentMs)
  }

  /** Waits until nothing is in flight, at most `timeoutMs` (default 10 000) less what was spent. */
  async drain(timeoutMs = DRAIN_MS): Promise<void> {
    this.begin()
    let left = Math.max(0, timeoutMs - this.#spentMs)
    this.#spentMs = 0
    let expired = false
    let cancel = () => {}
    const over = new Promise<void>((resolve) => {
      const expire = () => {
        expired = true
        resolve()
      }
      cancel = this.#options.timers.after(left, expire)
      this.#shorten = (ms) => {
        cancel()
        left = Math.max(0, left - ms)
        cancel = this.#options.timers.after(left, expire)
      }
    })
    try {
      while (!expired) {
        const pending = [...this.#options.turns(), ...this.#effects]
        if (pending.length === 0) return
        await Promise.race([Promise.allSettled(pending), over])
      }
    } finally {
      cancel()
      this.#shorten = undefined
    }
  }
}
