/*
 * What an explanation is made of.
 */
import type { SignalWaiter, StepCheckpoint } from '../types/checkpoint.ts'
import type { Explanation } from '../types/explanation.ts'
import type { CheckpointGroupStats } from '../types/query.ts'
import type { WorkflowRun } from '../types/run.ts'

/** Windows of the engine, in ms. */
export interface ExplainWindows {
  reconcileMs: number
  stalledAfterMs: number
  remoteRedispatchMs?: number
  /** Infinity: unlimited. */
  maxRecoveryAttempts: number
}

/** What is known of the workers of a routing token. */
export interface GroupFacts {
  depth: number
  liveWorkers: number
}

/** A step that may not be dispatched yet; `retryAt` in epoch ms. */
export interface SlotFacts {
  queue: string
  seq: number
  retryAt: number
}

export interface ExplainFacts {
  run: WorkflowRun
  /** Rows without an end, and failed ones that are tried again. */
  open: readonly StepCheckpoint[]
  /** The last rows by position: sleeps and time limits are among them. */
  last: readonly StepCheckpoint[]
  /** Rows of saga undos. */
  undos: readonly StepCheckpoint[]
  waiters: readonly SignalWaiter[]
  /** Counts of the fans that are open, by group. */
  fans: ReadonlyMap<string, CheckpointGroupStats>
  /** Workers by routing token; a token that is absent is not reported. */
  groups: ReadonlyMap<string, GroupFacts>
  /** Awaited children that were looked at, by id; null for one that is not there. */
  children: ReadonlyMap<string, { run: WorkflowRun; explanation: Explanation } | null>
  /** Slots of flow-control queues that this process waits for. */
  slots: readonly SlotFacts[]
  /** Of a run that waits for its turn: how many are before it, and who is inside. */
  singleton?: { key: string; before: number; holders: readonly WorkflowRun[] }
  /** The run that deals with its end, or that it continued as. */
  follower?: string
  windows: ExplainWindows
  nowMs: number
}
