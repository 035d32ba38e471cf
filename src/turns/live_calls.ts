/*
 * The live calls of one turn: while there are any, the turn looks at its open rows and at its run now and
 * then, because what happens elsewhere rings no bell here.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import type { History } from '../replay/history.ts'
import { isSettledStatus } from '../types/checkpoint.ts'

/** How often, in ms. */
const LOOK_MS = 1000

/** A dispatched step that is awaited under the lease. */
interface Awaited {
  /** When it counts as silent (epoch ms). */
  readonly dueAt: number
  stop(): void
}

export interface LiveCallsOptions {
  timers: Timers
  look: () => void
  /** Somebody has to look again at this time (epoch ms) at what is awaited no longer. */
  lookAgainAt: (at: number) => void
}

export class LiveCalls {
  readonly #options: LiveCallsOptions
  readonly #calls = new Map<number, Awaited>()
  #looking?: Cancel
  #leaving = false

  constructor(options: LiveCallsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#calls.size
  }

  add(seq: number, call: Awaited): void {
    this.#calls.set(seq, call)
    this.#looking ??= this.#options.timers.every(LOOK_MS, this.#options.look)
    if (this.#leaving) this.#options.look()
  }

  remove(seq: number): void {
    this.#calls.delete(seq)
    if (this.#calls.size > 0) return
    this.#looking?.()
    this.#looking = undefined
  }

  /** What is answered is awaited no longer. */
  review(history: History): void {
    for (const [seq, call] of this.#calls) {
      const row = history.at(seq)
      if (row && isSettledStatus(row.status)) call.stop()
      else if (this.#leaving) this.#leave(call)
    }
  }

  /** The process ends: from now on nothing is awaited, a later turn sees to it. */
  leave(): void {
    this.#leaving = true
    this.#options.look()
  }

  stop(): void {
    for (const call of [...this.#calls.values()]) call.stop()
  }

  #leave(call: Awaited): void {
    this.#options.lookAgainAt(call.dueAt)
    call.stop()
  }
}
