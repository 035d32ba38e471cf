/*
 * Run detail: a run with its timeline, wide fans told in one line each. What reading a run answers, and
 * the scope of verbs that act on many runs.
 */
import type { CheckpointStatus, StepCheckpoint } from './checkpoint.ts'
import type { RunFilter } from './query.ts'
import type { WorkflowRun } from './run.ts'

/** Child ids a summarized detail lists at most. */
export const SUMMARY_CHILD_LIMIT = 200

/** Failed members a fan summary lists at most. */
export const FAN_SUMMARY_FAILURES = 20

/** Members of a fan page when `limit` is not given, and at most. */
export const FAN_PAGE_DEFAULT_LIMIT = 100
export const FAN_PAGE_MAX_LIMIT = 500

/** A failed member of a fan; `id` is its child run id or its step id. */
export interface FanFailure {
  seq: number
  id: string
  error: string
  code?: string
}

/** One fan. A child that ended with a failure counts as failed; times are epoch ms. */
export interface FanSummary {
  /** Tag of its rows: `parallelGroup`. */
  group: string
  /** The step's name; of children the workflow if it is known, else what their ids begin with. */
  label: string
  firstSeq: number
  lastSeq: number
  /** Members that were placed so far. */
  size: number
  /** Members there will be; only of fans that start in waves. */
  total?: number
  notStarted?: number
  failFast: boolean
  counts: Record<CheckpointStatus, number>
  /** When the first member was placed. */
  startedAt?: number
  /** When the last member ended; absent while any is open or not started. */
  finishedAt?: number
  /** The first failed members by position, at most `FAN_SUMMARY_FAILURES`. */
  failures: FanFailure[]
}

export interface RunDetailOptions {
  /** Summarize every fan with more members than this; 0, negative or absent: none. */
  summarizeFansOver?: number
  /** ETag of an earlier answer, or a list of them; ignored where no etag can be computed. */
  ifNoneMatch?: string
}

export interface RunDetail {
  run: WorkflowRun
  /** Ascending by position; without the members of summarized fans. */
  timeline: StepCheckpoint[]
  /** Ids of the runs it started; when summarizing, at most `SUMMARY_CHILD_LIMIT`. */
  children: string[]
  /** When summarizing: the wide fans, by their first position. */
  fans?: FanSummary[]
  /** When summarizing: how many children there are. */
  childCount?: number
  etag?: string
  /** `ifNoneMatch` named the current state: timeline and children were not read and are empty. */
  notModified?: boolean
}

export interface FanPageQuery {
  /** Members to skip; default 0. */
  offset?: number
  /** Default 100, clamped to 1–500. */
  limit?: number
  /** Only members that failed; filtered before paging. */
  failedOnly?: boolean
  ifNoneMatch?: string
}

export interface FanPage {
  /** Members by position. */
  items: StepCheckpoint[]
  /** Members that the query matches on all pages. */
  total: number
  etag?: string
  notModified?: boolean
}

/**
 * Which runs a verb on many runs concerns; every predicate must hold. `{}` is every run. A scope of
 * nothing but empty predicates is refused: it is a value that got lost.
 */
export type RunScope = RunFilter

export interface PurgeOptions {
  /** Runs listed and deleted at a time; default 100. */
  batchSize?: number
  /** Cancel live runs first, without undos; default: they are skipped. */
  cancelLive?: boolean
  /** Delete the child runs too where the scope does not match them. */
  children?: boolean
}
