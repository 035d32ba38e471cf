/*
 * A loop that asks for work: at an interval, less often while there is none, and at once when it is told
 * that there may be some. Owns its timer; a call that fails is reported and the loop goes on.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { TransportErrorHandler } from './ports.ts'

export interface PollLoopOptions {
  /** Asks once. True: there was work. */
  poll(): Promise<boolean>
  /** In ms. */
  intervalMs: number
  /** Without work the interval doubles up to so many times its length; 1: never. */
  idleBackoffMax: number
  timers: Timers
  onError: TransportErrorHandler
}

export class PollLoop {
  readonly #options: PollLoopOptions
  #running?: Promise<void>
  #again = false
  #cancel: Cancel = () => {}
  #factor = 1
  #stopped = false

  constructor(options: PollLoopOptions) {
    this.#options = options
  }

  /** Asks now; once more right afterwards when a call is under way. Also begins the loop. */
  kick(): void {
    if (this.#stopped) return
    this.#factor = 1
    if (this.#running) this.#again = true
    else this.#running = this.#run()
  }

  /** Resolves when the call under way has ended; nothing is asked any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#running
  }

  async #run(): Promise<void> {
    this.#cancel()
    const { poll, intervalMs, idleBackoffMax, timers, onError } = this.#options
    let found = false
    do {
      this.#again = false
      try {
        if (await poll()) found = true
      } catch (error) {
        isolate(() => onError(error))
      }
    } while (this.#again && !this.#stopped)
    this.#running = undefined
    if (this.#stopped) return
    const sleep = intervalMs * this.#factor
    this.#factor = found ? 1 : Math.min(this.#factor * 2, Math.max(1, idleBackoffMax))
    this.#cancel = timers.after(sleep, () => {
      this.#running ??= this.#run()
    })
  }
}
