/*
 * Heartbeats of this process, sent together once an interval. Those of a step whose result overtook them
 * stay here.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { Heartbeat } from '../wire/messages.ts'
import type { TransportErrorHandler } from './ports.ts'

export interface BeatBatchOptions {
  timers: Timers
  intervalMs: number
  onError: TransportErrorHandler
  send(beats: Heartbeat[]): Promise<void>
}

export class BeatBatch {
  readonly #options: BeatBatchOptions
  #beats: Heartbeat[] = []
  #sending?: Cancel

  constructor(options: BeatBatchOptions) {
    this.#options = options
  }

  add(beat: Heartbeat): void {
    this.#beats.push(beat)
    const { timers, intervalMs, onError, send } = this.#options
    this.#sending ??= timers.after(intervalMs, () => {
      this.#sending = undefined
      const beats = this.#beats.splice(0)
      if (beats.length > 0) isolate(() => send(beats), onError)
    })
  }

  /** The result of the step goes out. */
  drop(stepId: string): void {
    this.#beats = this.#beats.filter((beat) => beat.stepId !== stepId)
  }

  stop(): void {
    this.#sending?.()
  }
}
