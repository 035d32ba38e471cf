/*
 * The lane of answers: results and heartbeats back to the engines.
 */
import { isolate } from '../../foundation/failure.ts'
import { decode, encode } from '../../wire/codec.ts'
import type { Heartbeat, StepResult } from '../../wire/messages.ts'
import { JobResults } from '../job_results.ts'
import type { Broker } from './broker.ts'

export class Results extends JobResults<Broker> {
  readonly #handlers: ((result: StepResult) => Promise<void>)[] = []

  beat(beat: Heartbeat): Promise<void> {
    return this.broker.publish(this.broker.names.heartbeat, encode('heartbeat', beat))
  }

  /** The handler registered last is asked first; one that refuses lets the others have their turn. */
  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.#handlers.push(handler)
    if (this.#handlers.length > 1) return
    this.broker.gate.whenOpen(() => {
      this.broker.consume({
        queue: () => this.broker.names.results,
        slots: () => this.broker.settings.resultConcurrency,
        handle: (data, { job }) => this.deliver(data, this.#handlerOf(job.attemptsStarted ?? 1)),
      })
    })
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    this.broker.gate.whenOpen(() => {
      this.broker.listen(this.broker.names.heartbeat, (text) => {
        const beat = decode('heartbeat', text)
        isolate(() => handler(beat), this.broker.report)
      })
    })
  }

  #handlerOf(delivery: number): (result: StepResult) => Promise<void> {
    const count = this.#handlers.length
    return this.#handlers[count - 1 - ((delivery - 1) % count)]
  }
}
