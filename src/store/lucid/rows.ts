/*
 * Row ⇄ object. One table of fields a record decides both directions: which column, and in which form.
 * `undefined` is NULL, `null` is JSON text; dates are epoch ms; a number a driver hands back as text is
 * a number again. A new field of a record does not compile until it is listed here.
 */
import type { SeqRange } from '../../foundation/control_flow.ts'
import { encodeJson } from '../../foundation/json.ts'
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'
import { storedNamespace } from '../ports/run_rules.ts'
import type { Fields, FieldType } from '../../sql/dialect.ts'
import { readJson } from './json_columns.ts'
import type { Row } from '../../sql/session.ts'
import { DURABLE_TABLES } from './schema/tables.ts'

export type Value = string | number | null
export type Columns = Record<string, Value>

/** `count`: int; `ms`: epoch ms, a number in the object; `date`: epoch ms, a Date in the object. */
type Form = 'text' | 'count' | 'ms' | 'date' | 'json' | 'flag'
type Field = readonly [column: string, form: Form]
type FieldsOf<Record> = { readonly [K in keyof Record]-?: Field }

const RUN_FIELDS = {
  id: ['id', 'text'],
  workflow: ['workflow', 'text'],
  workflowVersion: ['workflow_version', 'text'],
  status: ['status', 'text'],
  namespace: ['namespace', 'text'],
  origin: ['origin', 'text'],
  input: ['input', 'json'],
  output: ['output', 'json'],
  error: ['error', 'json'],
  wakeAt: ['wake_at', 'ms'],
  wakeRequestedAt: ['wake_requested_at', 'ms'],
  awaitingDecisionTaskId: ['awaiting_decision_task_id', 'text'],
  lockedBy: ['locked_by', 'text'],
  lockedUntil: ['locked_until', 'ms'],
  cancelRequestedAt: ['cancel_requested_at', 'ms'],
  cancelRequestedBy: ['cancel_requested_by', 'text'],
  cancelCompensates: ['cancel_compensates', 'flag'],
  deadlineAt: ['deadline_at', 'ms'],
  turns: ['turns', 'count'],
  claimedAt: ['claimed_at', 'date'],
  awaited: ['awaited', 'flag'],
  recoveryAttempts: ['recovery_attempts', 'count'],
  tags: ['tags', 'json'],
  searchAttributes: ['search_attributes', 'json'],
  priority: ['priority', 'count'],
  createdAt: ['created_at', 'date'],
  updatedAt: ['updated_at', 'date'],
} as const satisfies FieldsOf<Omit<WorkflowRun, 'waitSeqs'>>

const CHECKPOINT_FIELDS = {
  runId: ['run_id', 'text'],
  seq: ['seq', 'count'],
  name: ['name', 'text'],
  kind: ['kind', 'text'],
  stepId: ['step_id', 'text'],
  status: ['status', 'text'],
  input: ['input', 'json'],
  output: ['output', 'json'],
  error: ['error', 'json'],
  events: ['events', 'json'],
  attempts: ['attempts', 'count'],
  maxAttempts: ['max_attempts', 'count'],
  timeoutMs: ['timeout_ms', 'ms'],
  workerGroup: ['worker_group', 'text'],
  wakeAt: ['wake_at', 'ms'],
  parallelGroup: ['parallel_group', 'text'],
  order: ['delivery_order', 'count'],
  enqueuedAt: ['enqueued_at', 'date'],
  startedAt: ['started_at', 'date'],
  finishedAt: ['finished_at', 'date'],
  lastHeartbeatAt: ['last_heartbeat_at', 'date'],
  heartbeatProgress: ['heartbeat_progress', 'json'],
} as const satisfies FieldsOf<StepCheckpoint>

const WAITER_FIELDS = {
  token: ['token', 'text'],
  runId: ['run_id', 'text'],
  seq: ['seq', 'count'],
  parallelGroup: ['parallel_group', 'text'],
  createdAt: ['created_at', 'date'],
} as const satisfies FieldsOf<SignalWaiter>

const EVENT_FIELDS = {
  id: ['id', 'text'],
  payload: ['payload', 'json'],
  publishedAt: ['published_at', 'ms'],
} as const satisfies FieldsOf<BufferedEvent>

const SCHEDULE_FIELDS = {
  id: ['id', 'text'],
  workflow: ['workflow', 'text'],
  spec: ['spec', 'json'],
  paused: ['paused', 'flag'],
  namespace: ['namespace', 'text'],
  lastFiredAt: ['last_fired_at', 'ms'],
  createdAt: ['created_at', 'date'],
  updatedAt: ['updated_at', 'date'],
} as const satisfies FieldsOf<ScheduleRecord>

/** Columns of a run whose `undefined` in a patch changes nothing: they always have a value. */
const ALWAYS_SET = new Set(['workflow', 'workflowVersion', 'status', 'createdAt', 'updatedAt'])
/** The same of a schedule. */
const ALWAYS_SCHEDULED = new Set(['workflow', 'paused', 'createdAt', 'updatedAt'])
const WAIT_COLUMNS = ['wait_from', 'wait_to']

const columnsOf = (fields: Record<string, Field>): string[] =>
  Object.values(fields).map(([column]) => column)

export const RUN_COLUMNS = [...columnsOf(RUN_FIELDS), ...WAIT_COLUMNS]
export const CHECKPOINT_COLUMNS = columnsOf(CHECKPOINT_FIELDS)
export const WAITER_COLUMNS = columnsOf(WAITER_FIELDS)
export const EVENT_COLUMNS = columnsOf(EVENT_FIELDS)
export const SCHEDULE_COLUMNS = columnsOf(SCHEDULE_FIELDS)

const FIELD_TYPES: Record<Form, FieldType> = {
  text: 'text',
  json: 'long',
  count: 'int',
  flag: 'int',
  ms: 'bigint',
  date: 'bigint',
}

const typesOf = (fields: Record<string, Field>): Fields =>
  Object.fromEntries(Object.values(fields).map(([column, form]) => [column, FIELD_TYPES[form]]))

/** Column types for JSON row sources. */
export const RUN_TYPES: Fields = { ...typesOf(RUN_FIELDS), wait_from: 'int', wait_to: 'int' }
export const CHECKPOINT_TYPES: Fields = typesOf(CHECKPOINT_FIELDS)
export const WAITER_TYPES: Fields = typesOf(WAITER_FIELDS)

/** `a, b, c`, each behind a table alias when one is given. */
export const listed = (columns: readonly string[], alias?: string): string =>
  columns.map((column) => (alias ? `${alias}.${column}` : column)).join(', ')

/** The range a run awaits. */
export function waitOf({ wait_from: from, wait_to: to }: Row): SeqRange | undefined {
  const none = from === null || from === undefined || to === null || to === undefined
  return none ? undefined : { from: Number(from), to: Number(to) }
}

/** Every column of a run; what it does not have is NULL. */
export function runColumns(run: WorkflowRun): Columns {
  return {
    ...encode(RUN_FIELDS, run),
    namespace: storedNamespace(run.namespace),
    wait_from: run.waitSeqs?.from ?? null,
    wait_to: run.waitSeqs?.to ?? null,
  }
}

/** The columns that a patch of a run writes, in one order whatever that of its keys. */
export function runPatchColumns(patch: Partial<WorkflowRun>): Columns {
  const columns = patched(RUN_FIELDS, patch, ALWAYS_SET)
  if (Object.hasOwn(patch, 'namespace')) columns.namespace = storedNamespace(patch.namespace)
  if (Object.hasOwn(patch, 'waitSeqs')) {
    columns.wait_from = patch.waitSeqs?.from ?? null
    columns.wait_to = patch.waitSeqs?.to ?? null
  }
  return columns
}

export function readRun(row: Row): WorkflowRun {
  const run = decode<WorkflowRun>(RUN_FIELDS, row, DURABLE_TABLES.runs, () => String(row.id))
  run.namespace = storedNamespace(run.namespace)
  const waitSeqs = waitOf(row)
  if (waitSeqs) run.waitSeqs = waitSeqs
  return run
}

/** Every column of a checkpoint; what it does not have is NULL. */
export function checkpointColumns(checkpoint: StepCheckpoint): Columns {
  const columns = encode(CHECKPOINT_FIELDS, checkpoint)
  columns.enqueued_at ??= columns.started_at
  return columns
}

export function readCheckpoint(row: Row): StepCheckpoint {
  const key = () => `${String(row.run_id)}:${String(row.seq)}`
  const table = DURABLE_TABLES.checkpoints
  const checkpoint = decode<StepCheckpoint>(CHECKPOINT_FIELDS, row, table, key)
  checkpoint.attempts ??= 0
  checkpoint.enqueuedAt ??= checkpoint.startedAt
  return checkpoint
}

export const waiterColumns = (waiter: SignalWaiter): Columns => encode(WAITER_FIELDS, waiter)

export const readWaiter = (row: Row): SignalWaiter =>
  decode<SignalWaiter>(WAITER_FIELDS, row, DURABLE_TABLES.signalWaiters, () => String(row.token))

export const eventColumns = (event: BufferedEvent): Columns => encode(EVENT_FIELDS, event)

export function readEvent(row: Row): BufferedEvent {
  const key = () => String(row.id)
  return decode<BufferedEvent>(EVENT_FIELDS, row, DURABLE_TABLES.bufferedEvents, key)
}

export const scheduleColumns = (record: ScheduleRecord): Columns => encode(SCHEDULE_FIELDS, record)

/** The columns that a patch of a schedule writes; when it was created never changes. */
export function schedulePatchColumns(patch: Partial<ScheduleRecord>): Columns {
  const columns = patched(SCHEDULE_FIELDS, patch, ALWAYS_SCHEDULED)
  delete columns.created_at
  return columns
}

export const readSchedule = (row: Row): ScheduleRecord =>
  decode<ScheduleRecord>(SCHEDULE_FIELDS, row, DURABLE_TABLES.schedules, () => String(row.id))

/** The columns that have a value: what a JSON row source needs. */
export function compact(columns: Columns): Columns {
  const kept: Columns = {}
  for (const column in columns) {
    if (columns[column] !== null) kept[column] = columns[column]
  }
  return kept
}

/** The stored form of a payload. */
export const jsonText = (value: unknown, what: string): string | null =>
  encodeJson(value, what, Number.POSITIVE_INFINITY) ?? null

/** A number a driver may have handed back as text; undefined for NULL and for what is no number. */
export function numberOf(value: unknown): number | undefined {
  if (value === null || value === undefined) return undefined
  const number = Number(value)
  return Number.isNaN(number) ? undefined : number
}

function encode<T extends object>(fields: Record<string, Field>, object: T): Columns {
  const columns: Columns = {}
  for (const key in fields) {
    const [column, form] = fields[key]
    columns[column] = encodeValue(form, object[key as keyof T], column)
  }
  return columns
}

/** The columns of the keys that a patch has, its id left out; an `undefined` for one of `always` is none. */
function patched<T extends object>(
  fields: Record<string, Field>,
  patch: T,
  always: Set<string>
): Columns {
  const columns: Columns = {}
  for (const [key, [column, form]] of Object.entries(fields)) {
    if (key === 'id' || !Object.hasOwn(patch, key)) continue
    const value = patch[key as keyof T]
    if (value === undefined && always.has(key)) continue
    columns[column] = encodeValue(form, value, column)
  }
  return columns
}

function encodeValue(form: Form, value: unknown, column: string): Value {
  if (value === undefined) return null
  switch (form) {
    case 'json':
      return jsonText(value, column)
    case 'text':
      // A lone surrogate has no UTF-8: every path to the database must turn it into the same character.
      return value === null ? null : String(value).toWellFormed()
    case 'date':
      return value === null ? null : Math.round((value as Date).getTime())
    case 'flag':
      return value === null ? null : value ? 1 : 0
    case 'count':
    case 'ms':
      return value === null ? null : Math.round(value as number)
  }
}

/** What a row says, as the object that its columns stand for: NOT NULL columns are its required members. */
function decode<T>(fields: Record<string, Field>, row: Row, table: string, key: () => string): T {
  const object: Record<string, unknown> = {}
  for (const name in fields) {
    const [column, form] = fields[name]
    const value = row[column]
    if (value === null || value === undefined) continue
    const decoded = decodeValue(form, value, table, column, key)
    if (decoded !== undefined) object[name] = decoded
  }
  return object as T
}

function decodeValue(
  form: Form,
  value: unknown,
  table: string,
  column: string,
  key: () => string
): unknown {
  switch (form) {
    case 'text':
      return value
    case 'json':
      return readJson(value, table, column, key)
    case 'flag':
      return Number(value) !== 0
    case 'date': {
      const ms = numberOf(value)
      return ms === undefined ? undefined : new Date(ms)
    }
    case 'count':
    case 'ms':
      return numberOf(value)
  }
}
