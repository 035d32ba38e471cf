/*
 * A clock and timers that only a test moves, and the waits that go with them.
 */
import { setImmediate as tick } from 'node:timers/promises'
import type { Cancel, Clock, Timers } from '../../src/foundation/clock.ts'

interface Alarm {
  at: number
  every?: number
  fn: () => void
}

export class ManualTime implements Timers {
  #now = 1000
  readonly #alarms = new Set<Alarm>()

  readonly clock: Clock = () => this.#now

  /** Timers that are set and not yet fired. */
  get pending(): number {
    return this.#alarms.size
  }

  /** Milliseconds until the next timer. */
  get untilNext(): number | undefined {
    const next = this.#next()
    return next && next.at - this.#now
  }

  after(ms: number, fn: () => void): Cancel {
    return this.#set({ at: this.#now + ms, fn })
  }

  every(ms: number, fn: () => void): Cancel {
    return this.#set({ at: this.#now + ms, every: ms, fn })
  }

  /** Moves time on, firing timers in their order, and lets what they started run. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    for (let alarm = this.#next(); alarm && alarm.at <= end; alarm = this.#next()) {
      this.#now = Math.max(this.#now, alarm.at)
      if (alarm.every === undefined) this.#alarms.delete(alarm)
      else alarm.at += alarm.every
      alarm.fn()
      await settled()
    }
    this.#now = end
  }

  /** Sets the clock without firing anything. */
  jump(to: number): void {
    this.#now = to
  }

  #set(alarm: Alarm): Cancel {
    this.#alarms.add(alarm)
    return () => void this.#alarms.delete(alarm)
  }

  #next(): Alarm | undefined {
    return [...this.#alarms].sort((a, b) => a.at - b.at)[0]
  }
}

/** Lets every promise and immediate run that needs no timer. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 6; i++) await tick()
}
