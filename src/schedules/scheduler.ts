/*
 * Schedules in code: those of the config and of classes, as this process knows them.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { Clock } from '../foundation/clock.ts'
import { messageOf } from '../foundation/failure.ts'
import { scheduledIdOf } from '../foundation/ids.ts'
import { mapBounded } from '../foundation/pool.ts'
import type { FullStore } from '../store/full_store.ts'
import type { RunResult } from '../types/run.ts'
import type { ScheduleInfo, ScheduleSource } from '../types/schedule.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'
import { cadenceOf, checkSchedule } from './checks.ts'
import type { Firing, Prepared } from './firing.ts'
import { isLazy, nameOf, resolvedName } from './resolve.ts'

export { checkSchedule, optionsProblem } from './checks.ts'
export { Firing } from './firing.ts'
export { resolveSchedules, type ResolvedSchedule } from './resolve.ts'

/** One schedule that could not do its work; the others did. */
export interface ScheduleFailure {
  key: string
  error: unknown
}

export interface ScheduleReport {
  /** Runs that were started, none of which was there before. */
  started: RunResult[]
  failures: ScheduleFailure[]
}

/** What `runSchedules` needs of an engine. */
export interface SchedulingEngine {
  fireSchedules(options?: {
    now?: number
    schedules?: readonly ScheduledWorkflow[]
    persisted?: boolean
  }): Promise<ScheduleReport>
}

/**
 * Starts the window of each schedule that is current at `nowMs`, and those it catches up with, unless they
 * have a run; answers what it started. The engine knows these schedules from then on. One that fails does
 * not keep the others from their work; then `onError` is told, or without one the call rejects with the
 * error, an `AggregateError` for several. A lazy import must be resolved by `resolveSchedules` before.
 */
export async function runSchedules(
  engine: SchedulingEngine,
  schedules: readonly ScheduledWorkflow[],
  nowMs: number,
  { onError }: { onError?: (error: unknown, key: string) => void } = {}
): Promise<RunResult[]> {
  const report = await engine.fireSchedules({ now: nowMs, schedules, persisted: false })
  const { started, failures } = report
  if (onError) failures.forEach(({ error, key }) => onError(error, key))
  else if (failures.length === 1) throw failures[0].error
  else if (failures.length > 1) {
    const errors = failures.map(({ error }) => error)
    throw new AggregateError(errors, `durable: ${failures.length} schedules failed`)
  }
  return started
}

/** What is due of the schedules in code, then of the persisted ones; neither fails the other. */
export async function fire(
  { scheduler, schedules }: FiringParts,
  now: number,
  what: { schedules?: readonly ScheduledWorkflow[]; persisted: boolean }
): Promise<ScheduleReport> {
  const report = await scheduler.run(now, what.schedules)
  if (!what.persisted) return report
  try {
    const more = await schedules.tick(now)
    report.started.push(...more.started)
    report.failures.push(...more.failures)
  } catch (error) {
    report.failures.push({ key: 'persisted schedules', error })
  }
  return report
}

interface FiringParts {
  scheduler: Scheduler
  schedules: { tick(now: number): Promise<ScheduleReport> }
}

interface Known extends Omit<Prepared, 'workflow'> {
  given: ScheduledWorkflow
  source: ScheduleSource
  /** Absent until a lazy import is resolved. */
  workflow?: string
}

export interface SchedulerOptions {
  firing: Firing
  store: Pick<FullStore, 'getRun'>
  clock: Clock
  warn: (message: string) => void
}

/** Schedules that are looked at at once. */
const AT_ONCE = 8

export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #known = new Map<string, Known>()
  /** What was decided at runtime. */
  readonly #paused = new Map<string, boolean>()
  readonly #failures = new Failures()

  constructor(options: SchedulerOptions) {
    this.#options = options
  }

  has(key: string): boolean {
    return this.#known.has(key)
  }

  /** How many windows before the current one it may start; undefined for an unknown key. */
  maxCatchupOf(key: string): number | undefined {
    const known = this.#known.get(key)
    return known && (known.options.backfill?.maxCatchup ?? 0)
  }

  /**
   * Makes schedules known, all or none. One of the config wins over one of a class; of several classes the
   * first does, with a warning. Rejects with `InvalidArgumentError` for one that cannot be used.
   */
  async add(schedules: readonly ScheduledWorkflow[], source: ScheduleSource): Promise<void> {
    const added = new Map<string, Known>()
    for (const schedule of schedules) {
      const known = await prepare(schedule, source)
      const { key } = known
      if (source === 'class' && added.has(key)) this.#warnOfSecond(known)
      else if (added.has(key))
        throw new InvalidArgumentError(`schedule "${key}"`, 'is listed twice')
      else added.set(key, known)
    }
    for (const [key, known] of added) {
      const other = this.#known.get(key)
      if (source === 'class' && other) {
        if (other.source === 'class') this.#warnOfSecond(known)
      } else this.#known.set(key, known)
    }
  }

  /** Performs the lazy imports. Rejects with the first that fails. */
  async resolve(): Promise<void> {
    for (const known of this.#known.values()) known.workflow ??= await resolvedName(known.given)
  }

  /** What is due at `now`; of the given schedules, or of all that are known. */
  async run(now: number, given?: readonly ScheduledWorkflow[]): Promise<ScheduleReport> {
    const report: ScheduleReport = { started: [], failures: [] }
    const schedules = given ?? [...this.#known.values()].map((known) => known.given)
    const repeated = repeatedKeys(given ?? [])
    const outcomes = await mapBounded(schedules, AT_ONCE, async (schedule) => {
      if (repeated.has(schedule?.key)) {
        throw new InvalidArgumentError(`schedule "${schedule.key}"`, 'is listed twice')
      }
      return this.#due(await this.#adopted(schedule), now)
    })
    outcomes.forEach((outcome, index) => {
      if (outcome.ok) report.started.push(...outcome.value)
      else report.failures.push({ key: String(schedules[index]?.key), error: outcome.error })
    })
    report.failures = report.failures.filter((failure) => this.#failures.isNews(failure, now))
    return report
  }

  async list(now: number): Promise<ScheduleInfo[]> {
    await this.resolve()
    return Promise.all([...this.#known.values()].map((known) => this.#info(known, now)))
  }

  /** False for an unknown key. */
  setPaused(key: string, paused: boolean): boolean {
    if (!this.#known.has(key)) return false
    this.#paused.set(key, paused)
    return true
  }

  /** Starts the current window, whatever holds it back; null for an unknown key. */
  async trigger(key: string, now: number): Promise<RunResult | null> {
    const known = this.#known.get(key)
    if (!known) return null
    known.workflow ??= await resolvedName(known.given)
    return this.#options.firing.current({ ...known, workflow: known.workflow }, now)
  }

  async #due(known: Known, now: number): Promise<RunResult[]> {
    const isWanted = () => !this.#isPaused(known)
    if (!isWanted()) return []
    const workflow = known.workflow ?? nameOf(known.given)
    return this.#options.firing.due({ ...known, workflow }, now, { isWanted })
  }

  /** What is passed to a tick again and again is read once. */
  async #adopted(schedule: ScheduledWorkflow): Promise<Known> {
    const known = this.#known.get(schedule?.key)
    if (known && known.given === schedule) return known
    const next = await prepare(schedule, 'config')
    this.#known.set(next.key, next)
    return next
  }

  #isPaused({ key, options }: Known): boolean {
    return this.#paused.get(key) ?? options.paused ?? false
  }

  async #info(known: Known, now: number): Promise<ScheduleInfo> {
    const { key, cadence, options, source, workflow } = known
    const { everyMs, cron, timezone = 'UTC', overlap = 'allow' } = options
    const window = cadence.current(now)
    const nextAt = cadence.nextAt(now)
    const info: ScheduleInfo = {
      key,
      workflow: workflow!,
      ...(cron === undefined ? { everyMs } : { cron, timezone }),
      source,
      paused: this.#isPaused(known),
      overlap,
    }
    if (window) {
      const runId = scheduledIdOf(key, window.name)
      const run = await this.#options.store.getRun(runId)
      info.current = { at: window.at, runId, ...(run ? { status: run.status } : {}) }
    }
    if (nextAt !== undefined) info.nextAt = nextAt
    return info
  }

  #warnOfSecond({ key }: Known): void {
    this.#options.warn(
      `durable: schedule "${key}" is declared by two classes: the first one counts`
    )
  }
}

/** Tells the same failure of a schedule once a minute, not at every tick. */
export class Failures {
  readonly #last = new Map<string, { message: string; at: number }>()

  isNews({ key, error }: ScheduleFailure, now: number): boolean {
    const message = messageOf(error)
    const last = this.#last.get(key)
    if (last && last.message === message && now >= last.at && now - last.at < MINUTE) return false
    this.#last.set(key, { message, at: now })
    return true
  }
}

const MINUTE = 60_000

async function prepare(schedule: ScheduledWorkflow, source: ScheduleSource): Promise<Known> {
  checkSchedule(schedule?.key, schedule)
  const { key, workflow, ...options } = schedule
  const name = isLazy(workflow) ? undefined : nameOf(schedule)
  const cadence = await cadenceOf(key, options)
  return { key, workflow: name, options, cadence, source, given: schedule }
}

function repeatedKeys(schedules: readonly ScheduledWorkflow[]): Set<string> {
  const keys = schedules.map((schedule) => schedule?.key)
  return new Set(keys.filter((key, index) => keys.indexOf(key) !== index))
}
