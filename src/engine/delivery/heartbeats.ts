/*
 * Heartbeats of dispatched steps. They are persisted sparsely: nothing for a step that ends within a
 * second, then at most one write per interval and step, except that the first progress passes.
 */
import type { Cancel, Clock, Timers } from '../../foundation/clock.ts'
import { bestEffort } from '../../foundation/failure.ts'
import type { FullStore } from '../../store/full_store.ts'
import { isRepeatedBeat } from '../../transport/run_step_handler.ts'
import type { Heartbeat } from '../../wire/messages.ts'

/** A step that ends sooner leaves no beat. */
const YOUNG_MS = 1000
const INTERVAL_MS = 10_000
/** More steps than this at once are not tracked one by one. */
const TRACKED = 4096

interface Tracked {
  persistedAt?: number
  withProgress: boolean
  latest: Heartbeat
  /** When it came, epoch ms. */
  heardAt: number
  pending?: Cancel
}

export interface HeartbeatsOptions {
  store: Pick<FullStore, 'recordStepHeartbeat'>
  clock: Clock
  timers: Timers
  /** Beats must be seen well within this many ms of silence. */
  silenceMs: number
  report: (error: unknown, what: string) => void
}

export class Heartbeats {
  readonly #options: HeartbeatsOptions
  readonly #steps = new Map<string, Tracked>()
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #intervalMs: number

  constructor(options: HeartbeatsOptions) {
    this.#options = options
    this.#intervalMs = Math.min(INTERVAL_MS, options.silenceMs / 4)
  }

  async onHeartbeat(beat: Heartbeat): Promise<void> {
    if (beat.stepId === undefined) return
    if (!isRepeatedBeat(beat))
      for (const listener of this.#listeners.get(beat.stepId) ?? []) listener()
    const step = this.#steps.get(beat.stepId)
    if (!step) return this.#first(beat, beat.stepId)
    step.latest = beat.progress === undefined ? { ...beat, progress: step.latest.progress } : beat
    step.heardAt = this.#options.clock()
    const news = beat.progress !== undefined && !step.withProgress
    const now = step.heardAt
    const rested = step.persistedAt !== undefined && now - step.persistedAt >= this.#intervalMs
    if (news || rested) await this.#persist(step)
  }

  /** Calls back for every beat of a step but those its transport sends by itself; answers how to stop. */
  listen(stepId: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(stepId) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(stepId, listeners)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(stepId)
    }
  }

  /** The step was answered: nothing more is written about it. */
  forget(stepId: string): void {
    this.#steps.get(stepId)?.pending?.()
    this.#steps.delete(stepId)
  }

  close(): void {
    for (const stepId of [...this.#steps.keys()]) this.forget(stepId)
  }

  #first(beat: Heartbeat, stepId: string): void {
    if (this.#steps.size >= TRACKED) this.#makeRoom()
    const step: Tracked = { withProgress: false, latest: beat, heardAt: this.#options.clock() }
    this.#steps.set(stepId, step)
    const wait = Math.min(YOUNG_MS, this.#options.silenceMs / 4)
    step.pending = this.#options.timers.after(wait, () => {
      step.pending = undefined
      this.#persistInBackground(step)
    })
  }

  /** A beat that waits to be written is written: silence would be taken for death. */
  #makeRoom(): void {
    for (const [oldest, step] of this.#steps) {
      const unwritten = step.pending !== undefined
      this.forget(oldest)
      if (unwritten) this.#persistInBackground(step)
      return
    }
  }

  #persistInBackground(step: Tracked): void {
    void bestEffort('a later beat says the same', this.#persist(step), this.#options.report)
  }

  async #persist(step: Tracked): Promise<void> {
    const { runId, seq, progress } = step.latest
    step.persistedAt = this.#options.clock()
    step.withProgress ||= progress !== undefined
    const { store } = this.#options
    await store.recordStepHeartbeat(runId, seq, new Date(step.heardAt), progress)
  }
}
