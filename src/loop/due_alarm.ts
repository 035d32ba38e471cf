/*
 * Rings when a run falls due that this process parked, so that timers are on time however seldom the loop
 * polls. It remembers the nearest times only; a poll finds what it has forgotten.
 */
import {
  type Cancel,
  type Clock,
  systemClock,
  systemTimers,
  type Timers,
} from '../foundation/clock.ts'

export interface DueAlarmOptions {
  /** What is due is looked for now. */
  ring: () => void
  clock?: Clock
  timers?: Timers
}

/** Times within it ring together, never early. */
const RESOLUTION_MS = 25
const MOST_TIMES = 10_000

export class DueAlarm {
  readonly #ring: () => void
  readonly #clock: Clock
  readonly #timers: Timers
  /** Each once, the next one last. */
  readonly #times: number[] = []
  #cancel?: Cancel

  constructor({ ring, clock = systemClock, timers = systemTimers }: DueAlarmOptions) {
    this.#ring = ring
    this.#clock = clock
    this.#timers = timers
  }

  set(inMs: number): void {
    const at = Math.ceil((this.#clock() + inMs) / RESOLUTION_MS) * RESOLUTION_MS
    const place = this.#placeOf(at)
    if (this.#times[place] === at) return
    this.#times.splice(place, 0, at)
    if (this.#times.length > MOST_TIMES) this.#times.shift()
    if (this.#times.at(-1) === at) this.#arm()
  }

  stop(): void {
    this.#times.length = 0
    this.#cancel?.()
  }

  #arm(): void {
    this.#cancel?.()
    const next = this.#times.at(-1)
    if (next === undefined) return
    this.#cancel = this.#timers.after(next - this.#clock(), () => this.#due())
  }

  #due(): void {
    const now = this.#clock()
    let rings = false
    while (this.#times.length > 0 && this.#times.at(-1)! <= now) {
      this.#times.pop()
      rings = true
    }
    this.#arm()
    if (rings) this.#ring()
  }

  /** The first place whose time is not later. */
  #placeOf(at: number): number {
    let low = 0
    let high = this.#times.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#times[middle] > at) low = middle + 1
      else high = middle
    }
    return low
  }
}
