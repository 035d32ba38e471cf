/*
 * The verbs of whoever operates and looks at runs: acting on many of them, deleting, run detail, facets.
 */
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { RunExplanation } from '../types/explanation.ts'
import type {
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../types/query.ts'
import type { RunResult, RunWaiting } from '../types/run.ts'
import type {
  FanPage,
  FanPageQuery,
  PurgeOptions,
  RunDetail,
  RunDetailOptions,
  RunScope,
} from '../types/run_detail.ts'
import type { CancelOptions } from './runs/canceller.ts'
import type { RedispatchResult } from './runs/redispatcher.ts'

export type { RedispatchResult }

export interface OperatingApi {
  /**
   * Cancels every live run that matches, each as `cancel` does, newest first, and answers each one's
   * state; a run that ended meanwhile is answered as it ended. Runs that were over before are neither
   * touched nor answered. Throws `InvalidArgumentError`, nothing cancelled, for a filter of nothing but
   * empty values; `{}` means every run.
   */
  cancelWhere(filter: RunFilter, options?: CancelOptions): Promise<RunResult[]>
  /**
   * Sends every dispatched step of a run that has no result yet again, under its own step id, and answers
   * how many went out; null for an unknown run. For tasks that are known to be lost: one that is still
   * alive is worked on twice, and its first result counts. Durable before each send: the row with one more
   * attempt. A run that is over is answered untouched. Rejects when steps are out and none could be sent.
   */
  redispatchPending(runId: string): Promise<RedispatchResult | null>
  /**
   * Starts a new run of the same workflow, in its newest version, with another input and no history;
   * null when `runId` is unknown. It gets the namespace, priority and own tags of the original, which
   * stays as it is. `newRunId` defaults to `<runId>~retry~<uuid>`; a taken one is answered as it is, as
   * `start` does. If the original is a child and the new run succeeds, its parent takes that output when it
   * is brought back. Rejects like `start`.
   */
  retryWithInput(
    runId: string,
    input: unknown,
    newRunId?: string
  ): Promise<{ runId: string } | null>
  /**
   * Deletes a run and every run below it for good, with their checkpoints, waits, attributes and buffered
   * signals; answers how many runs went, 0 for an unknown one. Asks for no status and cancels nothing:
   * cancel a live run first, or its undos never run and its parent is not told.
   */
  deleteRun(runId: string): Promise<number>
  /**
   * Deletes every run of a scope that is over, `batchSize` (100) at a time; answers how many went. Live
   * runs are skipped unless `cancelLive`; a run that is brought back meanwhile stays. With `children`
   * also the runs below them, whatever the scope; one with a live descendant then stays. Throws
   * `InvalidArgumentError`, nothing deleted, for a scope of nothing but empty values and for an unusable
   * `batchSize`; `{}` means every run.
   */
  purgeRuns(scope: RunScope, options?: PurgeOptions): Promise<number>
  /** `purgeRuns({ namespace })`. Throws `InvalidArgumentError` for an empty namespace. */
  purgeNamespace(namespace: string, options?: Omit<PurgeOptions, 'children'>): Promise<number>
}

export interface InsightApi {
  /**
   * A run with its timeline and children; null for an unknown one. With `summarizeFansOver` every wider
   * fan is told in one line of `fans` instead, and where the store counts (`checkpointStats`,
   * `queryCheckpoints`) the answer has an `etag`: named in `ifNoneMatch`, it is answered with
   * `notModified` and nothing is read.
   */
  getRunDetail(runId: string, options?: RunDetailOptions): Promise<RunDetail | null>
  /** One page of a fan's members, by position; null for an unknown run or group. */
  getFanMembers(runId: string, group: string, query?: FanPageQuery): Promise<FanPage | null>
  /** How the runs that match split by status and origin; no origin is `null`, empty cells are absent. */
  runFacets(query?: RunFacetQuery): Promise<RunFacetRow[]>
  /**
   * The distinct values of one axis over the runs that match, with counts, highest first, then by value;
   * `search` narrows the values, `limit` cuts them. Tags are counted over the newest
   * `RUN_VALUE_FACET_SCAN` runs on SQL. Throws `InvalidArgumentError` for an unknown axis.
   */
  runValueFacets(
    axis: RunValueAxis,
    query?: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]>
  /** What each suspended run is parked on, by run id; runs that wait for time alone are absent. */
  waitingFor(runIds: readonly string[]): Promise<Record<string, RunWaiting>>
  /** Positions of a run that have no end yet, ascending, at most 500 (ours). */
  getOpenCheckpoints(runId: string): Promise<StepCheckpoint[]>
  /**
   * Why a run is where it is, what happens next and what can be done about it, as data and in words; null
   * for an unknown run (ours). Reads a bounded number of rows, of awaited children too.
   */
  explainRun(runId: string): Promise<RunExplanation | null>
}
