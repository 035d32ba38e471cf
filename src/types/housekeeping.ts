/*
 * Housekeeping: how long runs that are over are kept, and what is said of runs that do not move.
 */
import type { StepCheckpoint } from './checkpoint.ts'
import type { RunScope } from './run_detail.ts'
import type { TerminalRunStatus, WorkflowRun } from './run.ts'

/** Runs of a scope that are deleted once they are over; at least one of the two bounds. */
export interface RetentionPolicy {
  /** Which ends are meant; at least one. */
  statuses: TerminalRunStatus[]
  /** Since the last change of the run: '30d' or ms. */
  maxAge?: string | number
  /** Keep this many of the scope, by start time the newest. */
  maxCount?: number
  /** Which runs; `{}` is every run. Without a namespace it is that of the engine. */
  scope: RunScope
}

/** Ages after which runs are deleted, by the status they ended with ('30d' or ms), and policies. */
export interface RetentionConfig extends Partial<Record<TerminalRunStatus, string | number>> {
  policies?: RetentionPolicy[]
}

/** A dispatched step without a sign of life. */
export interface StalledStep {
  seq: number
  name: string
  attempts: number
  /** Since it was last sent. */
  ageMs: number
  /** Since its last heartbeat; null when there was none. */
  heartbeatAgeMs: number | null
}

/** A run that should have moved and did not. */
export interface StalledRunInfo {
  run: WorkflowRun
  /** Since the last sign of life. */
  idleMs: number
  /** The step it waits for, if it waits for one. */
  pendingStep?: StalledStep
}

/** Called for each run that is found stalled; what it throws is contained. */
export type StalledListener = (info: StalledRunInfo) => void

/**
 * Called before retention deletes a run, with its history. One that throws, rejects or does not end within
 * 30 seconds keeps the run, and what it started, until a later pass.
 */
export type EvictListener = (
  run: WorkflowRun,
  checkpoints: StepCheckpoint[]
) => void | Promise<void>
