/*
 * A clock that only a test moves, and timers that follow it.
 */
import { type Cancel, type Timers, systemTimers } from '../foundation/clock.ts'

/** A clock that stands still until it is moved. Pass `clock.now` wherever a `Clock` is wanted. */
export class MutableClock {
  #now: number
  readonly #watchers = new Set<() => void>()

  /** `startMs` is the first reading, in epoch ms; default 0. */
  constructor(startMs = 0) {
    this.#now = startMs
  }

  /** The time in epoch ms. Bound: may be passed around as a function. */
  readonly now = (): number => this.#now

  /** Sets the time, forwards or backwards (epoch ms). Throws a `RangeError` for what is no number. */
  set(ms: number): void {
    if (!Number.isFinite(ms)) throw new RangeError(`MutableClock: ${ms} is no time`)
    this.#now = ms
    for (const watcher of [...this.#watchers]) watcher()
  }

  /** Moves the time on by `ms`. Throws a `RangeError` for what is no number. */
  advance(ms: number): void {
    this.set(this.#now + ms)
  }

  /** Calls back after every move; the answer stops it. */
  onMove(watcher: () => void): Cancel {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }
}

/**
 * Timers that fire when the clock is moved past them, or when their time has really gone by: so a test
 * need not wait for a pause between attempts, and nothing waits for ever when nobody moves the clock.
 */
export function timersOf(clock: MutableClock): Timers {
  return {
    after(ms, fn) {
      const at = clock.now() + Math.max(0, ms)
      let over = false
      const end = () => {
        over = true
        stopReal()
        stopWatching()
      }
      const fire = () => {
        if (over) return
        end()
        fn()
      }
      const stopReal = systemTimers.after(ms, fire)
      const stopWatching = clock.onMove(() => void (clock.now() >= at && fire()))
      return end
    },
    every(ms, fn) {
      const period = Math.max(1, ms)
      let next = clock.now() + period
      const stopReal = systemTimers.every(period, fn)
      // A long jump is one occasion: whoever repeats something looks at the clock itself.
      const stopWatching = clock.onMove(() => {
        if (clock.now() < next) return
        next = clock.now() + period
        fn()
      })
      return () => {
        stopReal()
        stopWatching()
      }
    },
  }
}
