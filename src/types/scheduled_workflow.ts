/*
 * Schedules with the workflow they start.
 */
import type { ScheduleOptions } from './schedule.ts'
import type { WorkflowClass, WorkflowInputOf, WorkflowRef } from './workflow.ts'

/** Names a workflow class without importing it: `() => import('#workflows/report')`. */
export type LazyWorkflowImport<C = unknown> = () => Promise<{ default: C }>

/** The workflow of a schedule: a registered name, a class, or a lazy import of one. */
export type ScheduledRef = WorkflowRef | LazyWorkflowImport

/** The input of what a schedule names. */
export type ScheduledInputOf<W> =
  W extends LazyWorkflowImport<infer C>
    ? C extends WorkflowClass
      ? WorkflowInputOf<C>
      : unknown
    : W extends WorkflowClass
      ? WorkflowInputOf<W>
      : unknown

/** One entry of `schedules` in config/durable.ts, and of `runTick`. */
export interface ScheduledWorkflow<W extends ScheduledRef = ScheduledRef> extends ScheduleOptions<
  ScheduledInputOf<W>
> {
  /** Unique among schedules; the runs are named after it. At most 200 bytes. */
  key: string
  workflow: W
}

/** What `engine.schedules.create` takes. */
export interface NewSchedule<TInput = unknown> extends ScheduleOptions<TInput> {
  /** Unique among persisted schedules and those in code; the runs are named after it. */
  id: string
  /** A class or a registered name; this process need not register it. */
  workflow: WorkflowRef
}
