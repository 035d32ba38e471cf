/*
 * Pub/sub: which listeners a channel has. One subscription a channel, however many listen; what arrives
 * is JSON text, and a listener that throws harms nobody.
 */
import { type Cancel, type Timers, sleepOn } from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import type { Clients } from './clients.ts'

/** What is sent before that may be missed. */
const LONGEST_WAIT_MS = 2000

type Listener = (text: string) => unknown

export class Subscriptions {
  readonly #clients: Clients
  readonly #timers: Timers
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #pending = new Set<Promise<unknown>>()
  #attached = false
  #closed = false

  constructor(clients: Clients, timers: Timers) {
    this.#clients = clients
    this.#timers = timers
  }

  /** Listens from now on; the answer stops this one listener. */
  on(channel: string, listener: Listener): Cancel {
    if (this.#closed) return () => {}
    const known = this.#listeners.get(channel)
    const listeners = known ?? new Set<Listener>()
    // The same function may listen twice.
    const own: Listener = (text) => listener(text)
    listeners.add(own)
    if (!known) {
      this.#listeners.set(channel, listeners)
      this.#attach()
      this.#track(this.#clients.subscriber.subscribe(channel))
    }
    return () => this.#off(channel, own)
  }

  /** Resolves once what was subscribed to so far is, or could not be, or takes too long. */
  async ready(): Promise<void> {
    if (this.#pending.size === 0) return
    const settled = Promise.allSettled(this.#pending)
    await Promise.race([settled, sleepOn(this.#timers, LONGEST_WAIT_MS)])
  }

  close(): void {
    this.#closed = true
    this.#listeners.clear()
  }

  #off(channel: string, listener: Listener): void {
    const listeners = this.#listeners.get(channel)
    if (!listeners?.delete(listener) || listeners.size > 0) return
    this.#listeners.delete(channel)
    if (!this.#closed) this.#track(this.#clients.subscriber.unsubscribe(channel))
  }

  #attach(): void {
    if (this.#attached) return
    this.#attached = true
    this.#clients.subscriber.on('message', (channel, text) => {
      for (const listener of [...(this.#listeners.get(channel) ?? [])]) {
        isolate(
          () => listener(text),
          (error) => this.#clients.report(error)
        )
      }
    })
  }

  #track(work: Promise<unknown>): void {
    const done = work
      .catch((error: unknown) => {
        if (!this.#closed) this.#clients.report(error)
      })
      .finally(() => this.#pending.delete(done))
    this.#pending.add(done)
  }
}
