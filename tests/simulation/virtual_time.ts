/*
 * Virtual time: a queue of events, the clock and timers of one simulated process, and running until
 * nothing moves. Times are whole or broken milliseconds since the world began; clocks read epoch ms.
 */
import type { Cancel, Timers } from '../../src/foundation/clock.ts'
import { Heap } from '../../src/foundation/heap.ts'
import type { Random } from './random.ts'

/** When a world begins, in epoch ms. */
export const EPOCH = 1_700_000_000_000

interface Event {
  at: number
  nr: number
  run?: () => void
}

export class VirtualTime {
  now = 0
  /** Counts what happens: while it grows, something still moves. */
  activity = 0
  #nr = 0
  #ids = 1000
  readonly #events = new Heap<Event>((a, b) => a.at < b.at || (a.at === b.at && a.nr < b.nr))

  /** Ids of one world, ascending as text. */
  nextId(): number {
    return this.#ids++
  }

  /** Runs `run` after `delay` ms. */
  after(delay: number, run: () => void): Cancel {
    const event: Event = { at: this.now + Math.max(0, delay), nr: this.#nr++, run }
    this.#events.push(event)
    this.activity++
    return () => {
      event.run = undefined
    }
  }

  /** Moves to the next event and runs it; false when there is none. */
  step(): boolean {
    for (;;) {
      const event = this.#events.pop()
      if (!event) return false
      if (!event.run) continue
      this.now = Math.max(this.now, event.at)
      event.run()
      return true
    }
  }

  /** Lets microtasks, ticks and macrotasks run until nothing has moved for a few of them. */
  async settled(quietRounds = 4): Promise<void> {
    for (let quiet = 0; quiet < quietRounds;) {
      const before = this.activity
      await macrotask()
      quiet = this.activity === before ? quiet + 1 : 0
    }
  }
}

export const macrotask = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** What one process knows of time: its own clock, and timers that die with it. */
export class ProcessTime implements Timers {
  readonly #time: VirtualTime
  readonly #random?: Random
  #skew: number
  #alive = true
  /** Called when the process dies. */
  onDeath?: () => void

  /** With `random`, timers fire a little early or late, as real ones do. */
  constructor(time: VirtualTime, options: { skew?: number; random?: Random } = {}) {
    this.#time = time
    this.#skew = options.skew ?? 0
    this.#random = options.random
  }

  get alive(): boolean {
    return this.#alive
  }

  /** The process dies: no timer of it fires any more. */
  die(): void {
    this.#alive = false
    this.onDeath?.()
  }

  readonly clock = (): number => EPOCH + Math.floor(this.#time.now + this.#skew)

  /** The clock is set. */
  jump(ms: number): void {
    this.#skew += ms
  }

  after(ms: number, fn: () => void): Cancel {
    return this.#time.after(ms + this.#jitter(), () => {
      if (this.alive) fn()
    })
  }

  every(ms: number, fn: () => void): Cancel {
    let cancel = () => {}
    const next = () => {
      cancel = this.after(Math.max(1, ms), () => {
        next()
        fn()
      })
    }
    next()
    return () => cancel()
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve))
  }

  #jitter(): number {
    return this.#random ? 4 * this.#random() - 1 : 0
  }
}
