/*
 * Schedules: how applications declare them, and persisted ones as stores keep them.
 */
import type { RunStatus } from './run.ts'

/** When a schedule begins a window: exactly one of `everyMs` and `cron`. */
export interface ScheduleCadence {
  /** Windows of this many ms, counted from the epoch: `floor(now / everyMs)`. */
  everyMs?: number
  /** Cron pattern of five fields, or six with seconds. Needs the peer `cron-parser`. */
  cron?: string
  /** IANA time zone of `cron`; default UTC. */
  timezone?: string
}

/** One recurring start, whatever declares it. */
export interface ScheduleOptions<TInput = unknown> extends ScheduleCadence {
  input?: TInput
  /** `skip` passes a window over while another run of the schedule is active; default `allow`. */
  overlap?: 'allow' | 'skip'
  /** Spreads the starts over `[0, jitter)` from the begin of the window: '30s' or ms. */
  jitter?: number | string
  /** Also starts up to `maxCatchup` windows before the current one that have no run, oldest first. */
  backfill?: { maxCatchup: number }
  /** Declared, but fires nothing. */
  paused?: boolean
  /** Further tags of the runs; `schedule:<key>` is always one. */
  tags?: string[]
  /** Namespace of the runs; default the engine's. */
  namespace?: string
}

/** `static schedule` of a workflow class, and `@Scheduled`. */
export interface WorkflowScheduleConfig<TInput = unknown> extends ScheduleOptions<TInput> {
  /** Unique among schedules; default the workflow's name, `<name>:<index>` when the class has several. */
  key?: string
}

/** Where a schedule comes from: `schedules`, or a class's `static schedule`. */
export type ScheduleSource = 'config' | 'class'

/** A schedule as `listSchedules` shows it. */
export interface ScheduleInfo extends ScheduleCadence {
  key: string
  workflow: string
  source: ScheduleSource
  /** By its declaration or by `setSchedulePaused`. */
  paused: boolean
  overlap: 'allow' | 'skip'
  /** The window at `now`; absent before the first one. */
  current?: { at: number; runId: string; status?: RunStatus }
  /** When the next window begins; epoch ms. */
  nextAt?: number
}

/** A persisted schedule. */
export interface PersistedSchedule extends ScheduleOptions {
  id: string
  workflow: string
  paused: boolean
  /** Begin of the last window that a tick started; epoch ms, informational. */
  lastFiredAt?: number
  createdAt: Date
  updatedAt: Date
}

/** Persisted schedules, as stores keep them. */
export interface ScheduleRecord {
  id: string
  workflow: string
  /** Cadence, input and options; a payload to the store. */
  spec: unknown
  paused: boolean
  namespace?: string
  /** Epoch ms; informational. */
  lastFiredAt?: number
  createdAt: Date
  updatedAt: Date
}
