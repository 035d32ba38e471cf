/*
 * What an engine can do with schedules; see docs/reliability/scheduling.md.
 */
import type { ScheduleClient } from '../schedules/schedule_client.ts'
import type { ScheduleReport } from '../schedules/scheduler.ts'
import type { RunResult } from '../types/run.ts'
import type { ScheduleInfo, ScheduleSource } from '../types/schedule.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'

export interface FireOptions {
  /** Epoch ms; default the engine's clock. */
  now?: number
  /** Instead of all that the engine knows; it knows them from then on. */
  schedules?: readonly ScheduledWorkflow[]
  /** Persisted ones too; default the dependency `persistedSchedules`. */
  persisted?: boolean
}

export interface SchedulesApi {
  /**
   * Makes schedules in code known to this engine (ours), all or none; nothing is written. One of the config
   * wins over one of a class with its key. Rejects with `InvalidArgumentError` naming the key of one that
   * cannot be used, with `DurableError` (`missing_peer`) for a cron pattern without `cron-parser`.
   */
  registerSchedules(schedules: readonly ScheduledWorkflow[], source?: ScheduleSource): Promise<void>
  /** Performs the lazy imports of known schedules (ours). Rejects with the first that fails, by its key. */
  resolveKnownSchedules(): Promise<void>
  /**
   * Starts every window that is due and has no run (ours): the schedules phase of a tick. A schedule that
   * fails is in `failures`, the same failure at most once a minute, and the others do their work. Nothing is
   * started while draining.
   */
  fireSchedules(options?: FireOptions): Promise<ScheduleReport>
  /** The schedules in code that this engine knows, with their windows; performs their lazy imports. */
  listSchedules(nowMs?: number): Promise<ScheduleInfo[]>
  /** Pauses or resumes a schedule in code, in this process until it ends; false for an unknown key. */
  setSchedulePaused(key: string, paused: boolean): boolean
  /**
   * Starts the current window now, whatever pauses or holds it back; one that has its run answers its state.
   * Null for an unknown key.
   */
  triggerSchedule(key: string, nowMs?: number): Promise<RunResult | null>
  /** Schedules kept in the store and managed while the application runs. */
  readonly schedules: ScheduleClient
}
