/*
 * Starts the windows of a schedule that are due. The run of a window has a derived id, so whoever starts it
 * again, here or in another process, finds it (invariant 6).
 */
import { createHash } from 'node:crypto'
import type { Cancel, Timers } from '../foundation/clock.ts'
import { bestEffort } from '../foundation/failure.ts'
import { scheduledIdOf, scheduleTag } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import type { RunResult, RunStatus } from '../types/run.ts'
import type { ScheduleOptions } from '../types/schedule.ts'
import type { StartOptions } from '../types/workflow.ts'
import type { Cadence, Window } from './cadence.ts'
import { jitterOf } from './checks.ts'

/** A schedule that was checked. */
export interface Prepared {
  key: string
  workflow: string
  options: ScheduleOptions
  cadence: Cadence
}

export interface FiringOptions {
  store: Pick<FullStore, 'getRun' | 'listRuns'>
  start: (
    workflow: string,
    input: unknown,
    runId: string,
    options: StartOptions
  ) => Promise<RunResult>
  timers: Timers
  drain: {
    readonly draining: boolean
    track<T>(work: Promise<T>): Promise<T>
    /** Calls back when a drain begins; the answer calls it off. */
    onBegin(listener: () => void): Cancel
  }
  report: (error: unknown, what: string) => void
}

export interface DueOptions {
  /** Windows that began earlier never fire; epoch ms. */
  notBefore?: number
  /** Asked again after a jittered wait. */
  isWanted: () => boolean | Promise<boolean>
  onStarted?: (window: Window) => unknown
}

const ACTIVE: RunStatus[] = ['pending', 'running', 'suspended', 'blocked']

export class Firing {
  readonly #options: FiringOptions
  /** Windows whose run is known to exist, by schedule. */
  readonly #started = new Map<string, Set<string>>()
  /** Runs about to be started here. */
  readonly #starting = new Set<string>()

  constructor(options: FiringOptions) {
    this.#options = options
  }

  /** Starts what is due at `now` and has no run; answers what was started without a jittered wait. */
  async due(schedule: Prepared, now: number, options: DueOptions): Promise<RunResult[]> {
    const { notBefore = -Infinity } = options
    const started: RunResult[] = []
    for (const window of this.#candidates(schedule, now)) {
      if (this.#options.drain.draining) break
      if (window.at < notBefore) continue
      const runId = scheduledIdOf(schedule.key, window.name)
      if (this.#starting.has(runId) || (await this.#exists(schedule.key, runId))) continue
      // What is younger waits with it, or the order of the windows would be lost.
      if (await this.#overlaps(schedule)) break
      const wait = window.at + jitterBefore(runId, schedule) - now
      if (wait > 0) this.#startLater(schedule, window, wait, options)
      else if (!this.#starting.has(runId)) {
        started.push(await this.#startNow(schedule, window, options))
      }
    }
    return started
  }

  /** Starts the current window whatever holds it back; null before the first one. */
  async current(schedule: Prepared, now: number): Promise<RunResult | null> {
    const window = schedule.cadence.current(now)
    return window ? this.#start(schedule, window) : null
  }

  /** Those of the catch-up, and the current one, oldest first. */
  #candidates(schedule: Prepared, now: number): Window[] {
    const { cadence, options, key } = schedule
    const current = cadence.current(now)
    if (!current) return []
    const ids = this.#started.get(key)
    const count = options.backfill?.maxCatchup ?? 0
    const windows = [...(count > 0 ? cadence.before(current, count) : []), current]
    const names = new Set(windows.map(({ name }) => scheduledIdOf(key, name)))
    for (const id of ids ?? []) if (!names.has(id)) ids!.delete(id)
    return windows
  }

  async #exists(key: string, runId: string): Promise<boolean> {
    if (this.#started.get(key)?.has(runId)) return true
    if (!(await this.#options.store.getRun(runId))) return false
    this.#remember(key, runId)
    return true
  }

  #remember(key: string, runId: string): void {
    const ids = this.#started.get(key) ?? new Set()
    this.#started.set(key, ids.add(runId))
  }

  async #overlaps({ key, workflow, options }: Prepared): Promise<boolean> {
    if (options.overlap !== 'skip') return false
    // Only few live runs are of the workflow; a tag alone would be looked for in all of them.
    const query = { workflow, tag: scheduleTag(key), statuses: ACTIVE, size: 1 }
    const active = await this.#options.store.listRuns(query)
    return active.length > 0
  }

  async #startNow(schedule: Prepared, window: Window, options: DueOptions): Promise<RunResult> {
    const runId = scheduledIdOf(schedule.key, window.name)
    this.#starting.add(runId)
    try {
      const result = await this.#start(schedule, window)
      await options.onStarted?.(window)
      return result
    } finally {
      this.#starting.delete(runId)
    }
  }

  #startLater(schedule: Prepared, window: Window, ms: number, options: DueOptions): void {
    const { drain, report } = this.#options
    const runId = scheduledIdOf(schedule.key, window.name)
    this.#starting.add(runId)
    const work = this.#wait(ms).then(async () => {
      if (!(await options.isWanted()) || (await this.#overlaps(schedule))) return
      await this.#startNow(schedule, window, options)
    })
    const settled = bestEffort(`schedule "${schedule.key}" could not start ${runId}`, work, report)
    void drain.track(settled.then(() => this.#starting.delete(runId)))
  }

  async #start({ key, workflow, options }: Prepared, { name }: Window): Promise<RunResult> {
    const { tags = [], namespace, input } = options
    const runId = scheduledIdOf(key, name)
    const given: StartOptions = { tags: [...tags, scheduleTag(key)] }
    if (namespace !== undefined) given.namespace = namespace
    const result = await this.#options.start(workflow, input, runId, given)
    this.#remember(key, runId)
    return result
  }

  /** A drain cuts it short: the window might be over when the next process looks. */
  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { timers, drain } = this.#options
      const end = () => {
        cancel()
        forget()
        resolve()
      }
      const cancel = timers.after(ms, end)
      const forget = drain.onBegin(end)
    })
  }
}

/** Drawn from the id, so that every process waits until the same moment; uniform in [0, jitter). */
function jitterBefore(runId: string, { options }: Prepared): number {
  const jitter = jitterOf(options)
  if (jitter === 0) return 0
  const draw = createHash('sha256').update(runId).digest().readUIntBE(0, 6) / 2 ** 48
  return Math.floor(draw * jitter)
}
