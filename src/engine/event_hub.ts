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
  readonly #listeners = new Set<{ call: EngineListener }>()

  constructor(options: { clock: Clock; report: (error: unknown, what: string) => void }) {
    this.#clock = options.clock
    this.#report = options.report
  }

  subscribe(listener: EngineListener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  emit(event: Omit<EngineEvent, 'at'>): void {
    if (this.#listeners.size === 0) return
    const complete: EngineEvent = { ...event, at: new Date(this.#clock()) }
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(complete),
        (error) => this.#report(error, `a listener of ${event.type}`)
      )
    }
  }
}
