/*
 * The event hub: tells listeners what the engine did, synchronously and each in isolation; a listener
 * cannot break a run (invariant 13).
 */
import type { Clock } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { EngineEvent, EngineListener } from '../types/engine_event.ts'

export class EventHub {
  readonly #clock: Clock
  readonly #report: (error: unknown, what: string) => void
  readonly #relay: EngineListener
  readonly #listeners = new Set<{ call: EngineListener }>()

  constructor(options: {
    clock: Clock
    report: (error: unknown, what: string) => void
    /** Told of every event of this engine, after its listeners. */
    relay?: EngineListener
  }) {
    this.#clock = options.clock
    this.#report = options.report
    this.#relay = options.relay ?? (() => {})
  }

  subscribe(listener: EngineListener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  emit(event: Omit<EngineEvent, 'at'>): void {
    const complete: EngineEvent = { ...event, at: new Date(this.#clock()) }
    this.deliver(complete)
    this.#relay(complete)
  }

  /** Tells listeners of an event that happened elsewhere. */
  deliver(complete: EngineEvent): void {
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(complete),
        (error) => this.#report(error, `a listener of ${complete.type}`)
      )
    }
  }
}
