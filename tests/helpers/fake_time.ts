/*
 * Time that only a test moves: the clock and the timers of every engine of a test. Nothing fires by
 * itself, so a test that forgets to move time hangs on its bounded wait instead of passing by luck.
 */
import { setImmediate as tick } from 'node:timers/promises'
import type { Cancel, Clock, Timers } from '../../src/foundation/clock.ts'

/** An instant like those of a real clock: too large for 32 bits. */
export const T0 = Date.UTC(2030, 0, 15, 8, 30)

interface Alarm {
  at: number
  every?: number
  fn: () => void
}

export class FakeTime implements Timers {
  #now = T0
  readonly #alarms = new Set<Alarm>()
  /** Awaited after every timer that fired. */
  whenIdle: () => Promise<void> = () => turns(6)

  readonly clock: Clock = () => this.#now

  get now(): number {
    return this.#now
  }

  /** Timers that are set and have not fired. */
  get pending(): number {
    return this.#alarms.size
  }

  after(ms: number, fn: () => void): Cancel {
    return this.#set({ at: this.#now + Math.max(0, ms), fn })
  }

  every(ms: number, fn: () => void): Cancel {
    return this.#set({ at: this.#now + ms, every: Math.max(1, ms), fn })
  }

  /** Moves the clock alone, as for a process that slept: no timer fires. */
  jump(ms: number): void {
    this.#now += ms
  }

  /** Moves time on, firing timers in their order and waiting for what they start. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    for (let alarm = this.#first(); alarm && alarm.at <= end; alarm = this.#first()) {
      this.#now = Math.max(this.#now, alarm.at)
      if (alarm.every === undefined) this.#alarms.delete(alarm)
      else alarm.at += alarm.every
      alarm.fn()
      await this.whenIdle()
    }
    this.#now = end
    await this.whenIdle()
  }

  #set(alarm: Alarm): Cancel {
    this.#alarms.add(alarm)
    return () => void this.#alarms.delete(alarm)
  }

  #first(): Alarm | undefined {
    let first: Alarm | undefined
    for (const alarm of this.#alarms) if (!first || alarm.at < first.at) first = alarm
    return first
  }
}

/** Lets `n` rounds of the event loop pass. */
export async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await tick()
}
