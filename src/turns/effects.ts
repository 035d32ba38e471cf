/*
 * What follows from a settled turn, as data. Each is idempotent by a derived id and can be derived again
 * from the store, so losing one costs a delay, never a run.
 */
import { keyTagOf } from '../flow/singletons.ts'
import type { StepError } from '../foundation/failure.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../types/checkpoint.ts'
import type { RunStatus, WorkflowRun } from '../types/run.ts'

/** The successor of a continue-as-new exists; it wants its first turn. */
export interface WakeSuccessor {
  kind: 'wakeSuccessor'
  run: Pick<WorkflowRun, 'id' | 'namespace' | 'priority'>
}

/** A child run was inserted `pending`; it wants its first turn. */
export interface StartChild {
  kind: 'startChild'
  run: Pick<WorkflowRun, 'id' | 'namespace' | 'priority'>
}

/** A run that a parent waits for ended. */
export interface NotifyParent {
  kind: 'notifyParent'
  childId: string
  completion: CompletionEnvelope
}

/** A run that was started in the place of a failed one succeeded; whoever retries its parent takes that. */
export interface OfferRetry {
  kind: 'offerRetry'
  /** The run in whose place it was started. */
  childId: string
  completion: CompletionEnvelope
}

/** A fire-and-forget child could not be started; whoever joins it later hears of it. */
export interface ReportStartFailure {
  kind: 'reportStartFailure'
  childId: string
  completion: CompletionEnvelope
}

/** A run was cancelled; its children follow, then its mark goes. */
export interface TellChildren {
  kind: 'tellChildren'
  runId: string
}

/** A fan failed fast: its unfinished children are cancelled, without undos. */
export interface CancelRuns {
  kind: 'cancelRuns'
  runIds: string[]
}

/** Waves of children that all succeeded: one row may stand for the rows from its position to `toSeq`. */
export interface FoldWaves {
  kind: 'foldWaves'
  runId: string
  folds: { folded: StepCheckpoint; toSeq: number }[]
}

/** A run of a singleton workflow ended: whoever waits longest for its slot may ask for it. */
export interface ReleaseSingleton {
  kind: 'releaseSingleton'
  run: Pick<WorkflowRun, 'workflow' | 'workflowVersion' | 'tags'>
}

/** A run failed; the workflow that its own names for the error is started. */
export interface StartHandler {
  kind: 'startHandler'
  run: Pick<WorkflowRun, 'id' | 'workflow' | 'workflowVersion' | 'namespace' | 'input' | 'error'>
}

/** A run is dead; the workflow that handles it is started. */
export interface StartDeadLetter {
  kind: 'deadLetter'
  run: StartHandler['run']
}

/** A run ended while waits of it were open: nobody takes what they wait for any more, so they go. */
export interface DropWaits {
  kind: 'dropWaits'
  runId: string
}

export type Effect =
  | WakeSuccessor
  | StartChild
  | NotifyParent
  | OfferRetry
  | ReportStartFailure
  | TellChildren
  | CancelRuns
  | FoldWaves
  | ReleaseSingleton
  | StartHandler
  | StartDeadLetter
  | DropWaits

/** How a turn left its run. */
export interface TurnReport {
  runId: string
  status: RunStatus
  output?: unknown
  error?: StepError
  effects: Effect[]
  /** When the parked run falls due (epoch ms); absent for one that only news wakes. */
  dueAt?: number
  /** News came that this turn has not seen: the run wants another turn at once. */
  again: boolean
  /** The turn ended without settling: fenced, or a store call of unknown outcome. */
  lost?: boolean
  /** Why this process cannot run it; nothing happened to the run. */
  refused?: Error
}

/** What a run of a singleton workflow leaves when it ends. */
export const releases = (run: WorkflowRun): ReleaseSingleton[] =>
  keyTagOf(run) === undefined ? [] : [{ kind: 'releaseSingleton', run }]
