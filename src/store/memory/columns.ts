/*
 * Rows as this store keeps them: payloads as JSON text, dates as epoch ms, everything else as it is. What
 * goes in or out is therefore a copy, and what cannot be JSON fails here as it would in a database
 * (invariant 12). A new field of a row does not compile until it is listed here.
 */
import { decodeJson, encodeJson } from '../../foundation/json.ts'
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'

type ColumnKind = 'plain' | 'json' | 'date'

type Columns<Row> = { readonly [K in keyof Row]-?: ColumnKind }

/** A row in stored form. */
export type Stored<Row, C extends Columns<Row>> = {
  [K in keyof Row]: C[K] extends 'json' ? string | undefined : C[K] extends 'date' ? number : Row[K]
}

export const RUN_COLUMNS = {
  id: 'plain',
  workflow: 'plain',
  workflowVersion: 'plain',
  status: 'plain',
  namespace: 'plain',
  origin: 'plain',
  input: 'json',
  output: 'json',
  error: 'json',
  wakeAt: 'plain',
  wakeRequestedAt: 'plain',
  awaitingDecisionTaskId: 'plain',
  waitSeqs: 'json',
  lockedBy: 'plain',
  lockedUntil: 'plain',
  cancelRequestedAt: 'plain',
  cancelRequestedBy: 'plain',
  cancelCompensates: 'plain',
  deadlineAt: 'plain',
  turns: 'plain',
  claimedAt: 'date',
  awaited: 'plain',
  recoveryAttempts: 'plain',
  tags: 'json',
  searchAttributes: 'json',
  priority: 'plain',
  createdAt: 'date',
  updatedAt: 'date',
} as const satisfies Columns<WorkflowRun>

export const CHECKPOINT_COLUMNS = {
  runId: 'plain',
  seq: 'plain',
  name: 'plain',
  kind: 'plain',
  stepId: 'plain',
  status: 'plain',
  input: 'json',
  output: 'json',
  error: 'json',
  events: 'json',
  attempts: 'plain',
  maxAttempts: 'plain',
  timeoutMs: 'plain',
  workerGroup: 'plain',
  wakeAt: 'plain',
  parallelGroup: 'plain',
  order: 'plain',
  enqueuedAt: 'date',
  startedAt: 'date',
  finishedAt: 'date',
  lastHeartbeatAt: 'date',
  heartbeatProgress: 'json',
} as const satisfies Columns<StepCheckpoint>

export const WAITER_COLUMNS = {
  token: 'plain',
  runId: 'plain',
  seq: 'plain',
  parallelGroup: 'plain',
  createdAt: 'date',
} as const satisfies Columns<SignalWaiter>

export const EVENT_COLUMNS = {
  id: 'plain',
  payload: 'json',
  publishedAt: 'plain',
} as const satisfies Columns<BufferedEvent>

export const SCHEDULE_COLUMNS = {
  id: 'plain',
  workflow: 'plain',
  spec: 'json',
  paused: 'plain',
  namespace: 'plain',
  lastFiredAt: 'plain',
  createdAt: 'date',
  updatedAt: 'date',
} as const satisfies Columns<ScheduleRecord>

/** A run in stored form; its namespace is always set. */
export type StoredRun = Stored<WorkflowRun, typeof RUN_COLUMNS> & { namespace: string }
export type StoredCheckpoint = Stored<StepCheckpoint, typeof CHECKPOINT_COLUMNS>
export type StoredWaiter = Stored<SignalWaiter, typeof WAITER_COLUMNS>
export type StoredEvent = Stored<BufferedEvent, typeof EVENT_COLUMNS>
export type StoredSchedule = Stored<ScheduleRecord, typeof SCHEDULE_COLUMNS>

/** The stored form of every column a row has; `undefined` is not there. */
export function encodeRow<Row extends object, C extends Columns<Row>>(
  columns: C,
  row: Partial<Row>
): Partial<Stored<Row, C>> {
  const stored: Record<string, unknown> = {}
  for (const [column, kind] of Object.entries<ColumnKind>(columns)) {
    const value = encodeValue(kind, row[column as keyof Row], column)
    if (value !== undefined) stored[column] = value
  }
  return stored as Partial<Stored<Row, C>>
}

/** The row a stored one stands for; absent columns stay absent. */
export function decodeRow<Row extends object, C extends Columns<Row>>(
  columns: C,
  stored: Stored<Row, C>
): Row {
  const row: Record<string, unknown> = {}
  for (const [column, kind] of Object.entries<ColumnKind>(columns)) {
    const value = stored[column as keyof Row]
    if (value !== undefined) row[column] = decodeValue(kind, value)
  }
  return row as Row
}

/**
 * A stored row with a patch applied: a present key is written, `undefined` clears it, except where the
 * column must have a value.
 */
export function patchRow<Row extends object, C extends Columns<Row>, S extends Stored<Row, C>>(
  columns: C,
  stored: S,
  patch: Partial<Row>,
  keep: readonly (keyof Row)[]
): S {
  const next: Record<string, unknown> = { ...stored }
  for (const key of Object.keys(patch)) {
    const column = key as keyof Row
    if (!Object.hasOwn(columns, key)) continue
    const value = encodeValue(columns[column], patch[column], key)
    if (value !== undefined) next[key] = value
    else if (!keep.includes(column)) delete next[key]
  }
  return next as S
}

/** Throws for what cannot be JSON, before a write of several rows has begun. */
export function assertStorable(value: unknown, what: string): void {
  encodeJson(value, what, Number.POSITIVE_INFINITY)
}

function encodeValue(kind: ColumnKind, value: unknown, column: string): unknown {
  if (value === undefined) return undefined
  if (kind === 'json') return encodeJson(value, column, Number.POSITIVE_INFINITY)
  return kind === 'date' ? (value as Date).getTime() : value
}

function decodeValue(kind: ColumnKind, value: unknown): unknown {
  if (kind === 'json') return decodeJson(value as string)
  return kind === 'date' ? new Date(value as number) : value
}
