/*
 * Persisted schedules: rows of the store, managed while the application runs. A row holds no claim; the
 * derived id of a window's run is what makes it start once.
 */
import { workflowName } from '../authoring/workflow_ref.ts'
import {
  InvalidArgumentError,
  ScheduleAlreadyExistsError,
  ScheduleNotFoundError,
} from '../errors.ts'
import type { Clock } from '../foundation/clock.ts'
import { toStored } from '../foundation/json.ts'
import { keyProblem } from '../foundation/keys.ts'
import { mapBounded } from '../foundation/pool.ts'
import type { ScheduleRows } from '../store/ports/schedule_rows.ts'
import type { RunResult } from '../types/run.ts'
import type { PersistedSchedule, ScheduleOptions, ScheduleRecord } from '../types/schedule.ts'
import type { NewSchedule } from '../types/scheduled_workflow.ts'
import { cadenceOf, checkSchedule } from './checks.ts'
import type { Firing, Prepared } from './firing.ts'
import { Failures, type ScheduleReport } from './scheduler.ts'

export interface ScheduleClientOptions {
  store: ScheduleRows
  firing: Firing
  clock: Clock
  /** Of the engine; absent ticks the schedules of every namespace. */
  namespace?: string
  /** A schedule in code has this key. */
  isTaken: (key: string) => boolean
  maxPayloadBytes: number
}

/** Schedules that are looked at at once. */
const AT_ONCE = 8

/** `engine.schedules`. Every verb but `create` and `upsert` throws `ScheduleNotFoundError` for an unknown id. */
export class ScheduleClient {
  readonly #options: ScheduleClientOptions
  readonly #failures = new Failures()
  /** What rows were read as, by id. */
  readonly #prepared = new Map<string, { spec: string; prepared: Promise<Prepared> }>()

  constructor(options: ScheduleClientOptions) {
    this.#options = options
  }

  /**
   * Persists a schedule; its first window is the first that begins from now on. The namespace is that of
   * the engine unless given. Throws `ScheduleAlreadyExistsError` for a taken id, `InvalidArgumentError` for
   * an id that a schedule in code has and for options that cannot be used.
   */
  async create(schedule: NewSchedule): Promise<PersistedSchedule> {
    const record = await this.#recordOf(schedule)
    if (!(await this.#options.store.createSchedule(record))) {
      throw new ScheduleAlreadyExistsError(schedule.id)
    }
    return shown(record)
  }

  /** Creates the schedule, or replaces what it says; `paused` stays as it is unless given. Throws as `create`. */
  async upsert(schedule: NewSchedule): Promise<PersistedSchedule> {
    const record = await this.#recordOf(schedule)
    const { store } = this.#options
    if (await store.createSchedule(record)) return shown(record)
    const { workflow, spec, namespace, updatedAt } = record
    const patch = { workflow, spec, namespace, updatedAt }
    await this.#change(schedule.id, {
      ...patch,
      ...(schedule.paused === undefined ? {} : { paused: schedule.paused }),
    })
    return this.get(schedule.id)
  }

  async get(id: string): Promise<PersistedSchedule> {
    return shown(await this.#read(id))
  }

  /** Every one, of all namespaces, by id. */
  async list(): Promise<PersistedSchedule[]> {
    const records = await this.#options.store.listSchedules()
    return records.map(shown)
  }

  /** Fires nothing until `resume`, in any process. */
  pause(id: string): Promise<void> {
    return this.#change(id, { paused: true, updatedAt: new Date(this.#options.clock()) })
  }

  resume(id: string): Promise<void> {
    return this.#change(id, { paused: false, updatedAt: new Date(this.#options.clock()) })
  }

  /** Starts the current window now, paused or not; a window that has its run answers its state. */
  async trigger(id: string, nowMs = this.#options.clock()): Promise<RunResult | null> {
    const schedule = await this.#preparedOf(await this.#read(id))
    return this.#options.firing.current(schedule, nowMs)
  }

  /** Its runs stay. */
  async delete(id: string): Promise<void> {
    if (!(await this.#options.store.deleteSchedule(id))) throw new ScheduleNotFoundError(id)
  }

  /**
   * Starts what is due of the schedules of this engine's namespace. One that cannot be read or started is
   * in `failures`; the others do their work. The loop of a worker calls it with `persistedSchedules`.
   */
  async tick(nowMs = this.#options.clock()): Promise<ScheduleReport> {
    const { store, namespace } = this.#options
    const unpaused = await store.listSchedules({ paused: false })
    const mine = unpaused.filter(
      (record) =>
        namespace === undefined || record.namespace === undefined || record.namespace === namespace
    )
    this.#forgetAllBut(unpaused)
    const outcomes = await mapBounded(mine, AT_ONCE, (record) => this.#due(record, nowMs))
    const report: ScheduleReport = { started: [], failures: [] }
    outcomes.forEach((outcome, index) => {
      if (outcome.ok) report.started.push(...outcome.value)
      else report.failures.push({ key: mine[index].id, error: outcome.error })
    })
    report.failures = report.failures.filter((failure) => this.#failures.isNews(failure, nowMs))
    return report
  }

  /** How many windows before the current one it may start; 0 for an unknown id. */
  async maxCatchupOf(id: string): Promise<number> {
    const record = await this.#options.store.getSchedule(id)
    return (record && shown(record).backfill?.maxCatchup) ?? 0
  }

  async #due(record: ScheduleRecord, nowMs: number): Promise<RunResult[]> {
    const { id } = record
    if (this.#options.isTaken(id)) throw taken(id)
    const schedule = await this.#preparedOf(record)
    return this.#options.firing.due(schedule, nowMs, {
      notBefore: record.createdAt.getTime(),
      isWanted: async () => {
        const latest = await this.#options.store.getSchedule(id)
        return latest !== null && !latest.paused
      },
      onStarted: async ({ at }) => {
        if (at <= (record.lastFiredAt ?? -Infinity)) return
        await this.#options.store.updateSchedule(id, { lastFiredAt: at })
      },
    })
  }

  async #recordOf(schedule: NewSchedule): Promise<ScheduleRecord> {
    const { id, workflow: ref, paused = false, namespace, ...options } = schedule
    checkSchedule(id, schedule)
    if (this.#options.isTaken(id)) throw taken(id)
    const workflow = workflowName(ref)
    const problem = keyProblem(workflow)
    if (problem) throw new InvalidArgumentError(`schedule "${id}": its workflow`, problem)
    await cadenceOf(id, options)
    const what = `the options of schedule "${id}"`
    const spec = toStored(options, what, this.#options.maxPayloadBytes)
    const now = new Date(this.#options.clock())
    const record: ScheduleRecord = { id, workflow, spec, paused, createdAt: now, updatedAt: now }
    const owner = namespace ?? this.#options.namespace
    return owner === undefined ? record : { ...record, namespace: owner }
  }

  #preparedOf(record: ScheduleRecord): Promise<Prepared> {
    const spec = JSON.stringify([record.workflow, record.namespace, record.spec])
    const known = this.#prepared.get(record.id)
    if (known?.spec === spec) return known.prepared
    const prepared = prepare(record)
    prepared.catch(() => this.#prepared.delete(record.id))
    this.#prepared.set(record.id, { spec, prepared })
    return prepared
  }

  #forgetAllBut(records: readonly ScheduleRecord[]): void {
    const ids = new Set(records.map(({ id }) => id))
    for (const id of this.#prepared.keys()) if (!ids.has(id)) this.#prepared.delete(id)
  }

  async #read(id: string): Promise<ScheduleRecord> {
    const record = await this.#options.store.getSchedule(id)
    if (!record) throw new ScheduleNotFoundError(id)
    return record
  }

  async #change(id: string, patch: Partial<Omit<ScheduleRecord, 'id' | 'createdAt'>>) {
    if (!(await this.#options.store.updateSchedule(id, patch))) throw new ScheduleNotFoundError(id)
  }
}

async function prepare({ id, workflow, spec, namespace }: ScheduleRecord): Promise<Prepared> {
  checkSchedule(id, spec)
  const options: ScheduleOptions = { ...(spec as ScheduleOptions) }
  if (namespace !== undefined) options.namespace = namespace
  return { key: id, workflow, options, cadence: await cadenceOf(id, options) }
}

function shown({ spec, ...record }: ScheduleRecord): PersistedSchedule {
  const options = typeof spec === 'object' && spec !== null ? (spec as ScheduleOptions) : {}
  return { ...options, ...record }
}

const taken = (id: string) =>
  new InvalidArgumentError(
    `schedule "${id}"`,
    'has the key of a schedule in code: their runs would be one'
  )
