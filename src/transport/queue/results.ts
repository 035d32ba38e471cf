/*
 * The way back to the engines: results, which their handler takes or gets again, and heartbeats. Beats go
 * out once per poll interval; those of a step whose result overtook them stay here.
 */
import { isolate } from '../../foundation/failure.ts'
import { toWire } from '../../wire/codec.ts'
import type { Heartbeat, StepResult } from '../../wire/messages.ts'
import { JOB } from '../../wire/names.ts'
import { beforeAgain } from '../again.ts'
import { BeatBatch } from '../beat_batch.ts'
import { JobResults } from '../job_results.ts'
import type { Broker } from './broker.ts'

/** Some ten seconds and what the tries take; who runs the step again then repeats its work. */
const ATTEMPTS = 8

export class Results extends JobResults<Broker> {
  #onResult?: (result: StepResult) => Promise<void>
  #onBeat?: (beat: Heartbeat) => Promise<void>
  readonly #beats: BeatBatch

  constructor(broker: Broker) {
    super(broker)
    const { timers, pollIntervalMs, report } = broker
    this.#beats = new BeatBatch({
      timers,
      intervalMs: pollIntervalMs,
      onError: report,
      send: (beats) => {
        const payloads = beats.map((beat) => toWire('heartbeat', beat))
        return broker.pushMany(broker.names.heartbeats, JOB.heartbeat, payloads)
      },
    })
  }

  /** The handler registered last counts. */
  onResult(handler: (result: StepResult) => Promise<void>): void {
    const first = this.#onResult === undefined
    this.#onResult = handler
    if (!first) return
    const { settings, gate } = this.broker
    gate.whenOpen(() => {
      this.broker.consume({
        queue: () => this.broker.names.results,
        slots: () => settings.resultConcurrency,
        handle: (payload) => this.deliver(payload, (result) => this.#onResult!(result)),
      })
    })
  }

  /** The handler registered last counts. */
  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    const first = this.#onBeat === undefined
    this.#onBeat = handler
    if (!first) return
    const { settings, gate, report } = this.broker
    gate.whenOpen(() => {
      this.broker.consume({
        queue: () => this.broker.names.heartbeats,
        slots: () => 1,
        idleBackoffMax: settings.idleBackoffMax,
        handle: async (payload) => {
          const beat = this.broker.read('heartbeat', payload)
          // A beat that comes again is old news.
          if (beat) isolate(() => this.#onBeat!(beat), report)
        },
      })
    })
  }

  beat(beat: Heartbeat): void {
    this.#beats.add(beat)
  }

  /** Sends it until it is sent. */
  override publish(result: StepResult): Promise<void> {
    this.#beats.drop(result.stepId)
    return super.publish(result, this.#insist(result))
  }

  stop(): void {
    this.#beats.stop()
  }

  async #insist(result: StepResult): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.send(result)
      } catch (error) {
        if (attempt === ATTEMPTS || this.broker.closed) throw error
        await beforeAgain(attempt, this.broker.timers)
      }
    }
  }
}
