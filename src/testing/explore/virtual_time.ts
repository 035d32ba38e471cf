/*
 * Time of an exploration: it stands still while anything moves and jumps to what is due next. Each
 * process has timers of its own, which die with it.
 */
import type { Cancel, Clock, Timers } from '../../foundation/clock.ts'

/** An instant like those of a real clock, in epoch ms. */
const BEGINNING = Date.UTC(2030, 0, 1)

/** What repeats is made up for at most this often in one jump. */
const REPEATS_A_JUMP = 20

interface Alarm {
  at: number
  every?: number
  fn: () => void
}

export class VirtualTime {
  #now = BEGINNING
  #alarms = new Set<Alarm>()
  /** Grows with everything that is set or fires. */
  activity = 0

  readonly clock: Clock = () => this.#now

  /** When the next thing that was put off is due; what merely repeats brings nothing about. */
  nextAlarm(): number | undefined {
    const once = [...this.#alarms].filter(({ every }) => every === undefined)
    return once.length > 0 ? Math.min(...once.map(({ at }) => at)) : undefined
  }

  /** Moves to `at`, firing what is due on the way; `idle` is awaited after each. */
  async jumpTo(at: number, idle: () => Promise<void>): Promise<void> {
    const repeats = new Map<Alarm, number>()
    for (;;) {
      const next = this.#first(at, repeats)
      if (!next) break
      this.#now = Math.max(this.#now, next.at)
      if (next.every === undefined) this.#alarms.delete(next)
      else {
        repeats.set(next, (repeats.get(next) ?? 0) + 1)
        next.at += next.every
      }
      this.activity += 1
      next.fn()
      await idle()
    }
    this.#now = Math.max(this.#now, at)
    for (const alarm of this.#alarms) {
      if (alarm.every !== undefined && alarm.at <= at) alarm.at = at + alarm.every
    }
  }

  /** The timers of one process. */
  process(): ProcessTimers {
    return new ProcessTimers((alarm) => {
      this.#alarms.add(alarm)
      this.activity += 1
      return () => void this.#alarms.delete(alarm)
    }, this.clock)
  }

  #first(until: number, repeats: ReadonlyMap<Alarm, number>): Alarm | undefined {
    let first: Alarm | undefined
    for (const alarm of this.#alarms) {
      if (alarm.at > until || (repeats.get(alarm) ?? 0) >= REPEATS_A_JUMP) continue
      if (!first || alarm.at < first.at) first = alarm
    }
    return first
  }
}

export class ProcessTimers implements Timers {
  readonly #set: (alarm: Alarm) => Cancel
  readonly #clock: Clock
  readonly #pending = new Set<Cancel>()
  #dead = false

  constructor(set: (alarm: Alarm) => Cancel, clock: Clock) {
    this.#set = set
    this.#clock = clock
  }

  after(ms: number, fn: () => void): Cancel {
    return this.#track({ at: this.#clock() + Math.max(0, ms), fn })
  }

  every(ms: number, fn: () => void): Cancel {
    const period = Math.max(1, ms)
    return this.#track({ at: this.#clock() + period, every: period, fn })
  }

  /** No timer of this process fires any more, nor can one be set. */
  die(): void {
    this.#dead = true
    for (const cancel of this.#pending) cancel()
    this.#pending.clear()
  }

  #track(alarm: Alarm): Cancel {
    if (this.#dead) return () => {}
    const remove = this.#set(alarm)
    const cancel = () => {
      this.#pending.delete(cancel)
      remove()
    }
    this.#pending.add(cancel)
    return cancel
  }
}
