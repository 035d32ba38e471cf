/*
 * The schema as data: tables, columns, keys and indexes. DDL, repair and the fingerprint are derived from
 * it; a change here needs a new `DURABLE_SCHEMA_REVISION`. Times are epoch milliseconds, payloads are JSON
 * text, keys compare by code point.
 */
import { columns, type Index, type Table } from '../../../sql/table.ts'

export const DURABLE_TABLES = {
  runs: 'durable_workflow_runs',
  checkpoints: 'durable_step_checkpoints',
  attributes: 'durable_run_attributes',
  signalWaiters: 'durable_signal_waiters',
  bufferedSignals: 'durable_buffered_signals',
  bufferedEvents: 'durable_buffered_events',
  schedules: 'durable_schedules',
} as const

export const DURABLE_SCHEMA_META_TABLE = 'durable_schema_meta'

/** The JSON columns of each table; they hold text, whatever the database offers. */
export const DURABLE_JSON_COLUMNS = {
  [DURABLE_TABLES.runs]: ['input', 'output', 'error', 'tags', 'search_attributes'],
  [DURABLE_TABLES.checkpoints]: ['input', 'output', 'error', 'events', 'heartbeat_progress'],
  [DURABLE_TABLES.bufferedSignals]: ['payload'],
  [DURABLE_TABLES.bufferedEvents]: ['payload'],
  [DURABLE_TABLES.schedules]: ['spec'],
} as const

const index = (
  name: string,
  on: string,
  partial?: Pick<Index, 'where' | 'columnsWithoutWhere'>
) => ({
  name,
  columns: on.split(' '),
  ...partial,
})

const list = (name: string, on: string) =>
  index(name, `${on} id`, { columnsWithoutWhere: on.split(' ') })

/** A run that still moves by itself. */
export const LIVE = "status IN ('pending', 'running', 'suspended', 'blocked')"

export const RUNS_BY_DEADLINE = 'durable_runs_deadline_idx'
export const RUNS_BY_CHANGE = 'durable_runs_updated_idx'
export const RUNS_BY_NAMESPACE = 'durable_runs_by_namespace_idx'

/** Until when a run is held; 0 for one that nobody holds. */
export const LEASE_END = '(CASE WHEN locked_by IS NULL THEN 0 ELSE coalesce(locked_until, 0) END)'

const runs: Table = {
  name: DURABLE_TABLES.runs,
  columns: [
    ...columns({ str: 'id! workflow! workflow_version!' }),
    // Short, so that on MySQL the lists below end with the id: it adds that only while all of it fits a key.
    ...columns({ str32: 'status!' }),
    { name: 'namespace', type: 'str', required: true, default: 'default' },
    ...columns(
      { str: 'origin' },
      { json: 'input output error' },
      { ms: 'wake_at wake_requested_at' },
      { str: 'awaiting_decision_task_id' },
      { int: 'wait_from wait_to' },
      { str: 'locked_by' },
      { ms: 'locked_until' },
      { int: 'recovery_attempts' },
      { json: 'tags search_attributes' },
      { int: 'priority' },
      { ms: 'cancel_requested_at' },
      { str: 'cancel_requested_by' },
      { ms: 'deadline_at claimed_at' },
      { int: 'turns awaited cancel_compensates' },
      { ms: 'created_at! updated_at!' }
    ),
  ],
  primaryKey: ['id'],
  indexes: [
    // The order of every list. A key of MySQL ends with the primary one by itself.
    list('durable_runs_by_status_idx', 'status created_at'),
    index('durable_runs_due_idx', 'status wake_at'),
    list(RUNS_BY_NAMESPACE, 'namespace status created_at'),
    list('durable_runs_by_workflow_idx', 'workflow status created_at'),
    index('durable_runs_created_idx', 'created_at id'),
    index(RUNS_BY_CHANGE, 'status updated_at'),
    index('durable_runs_cancel_idx', 'cancel_requested_at', {
      where: 'cancel_requested_at IS NOT NULL',
    }),
    index(RUNS_BY_DEADLINE, 'deadline_at', {
      where: `deadline_at IS NOT NULL AND ${LIVE}`,
      columnsWithoutWhere: ['status', 'deadline_at'],
    }),
    index('durable_runs_requested_idx', 'wake_requested_at', {
      where: 'wake_requested_at IS NOT NULL',
      columnsWithoutWhere: ['status', 'wake_requested_at'],
    }),
    // SQLite takes it for the longest way unless the status comes first.
    {
      name: 'durable_runs_orphans_idx',
      columns: ['status', LEASE_END, 'id'],
      where: "status = 'running'",
      columnsWithoutWhere: ['status', 'locked_until'],
    },
    { name: 'durable_runs_unheld_idx', columns: ['status', 'locked_by'], onlyWithoutWhere: true },
    index('durable_runs_origin_idx', 'origin status', { where: 'origin IS NOT NULL' }),
  ],
}

const checkpoints: Table = {
  name: DURABLE_TABLES.checkpoints,
  columns: columns(
    { str: 'run_id!' },
    { int: 'seq!' },
    { str512: 'name!' },
    { str: 'kind!' },
    { str512: 'step_id!' },
    { str: 'status!' },
    { json: 'input output error events' },
    { int: 'attempts! max_attempts' },
    { ms: 'timeout_ms' },
    { str: 'worker_group' },
    { ms: 'wake_at' },
    { str: 'parallel_group' },
    { int: 'delivery_order' },
    { ms: 'enqueued_at started_at! finished_at! last_heartbeat_at' },
    { json: 'heartbeat_progress' }
  ),
  primaryKey: ['run_id', 'seq'],
  indexes: [
    // On MySQL there is no room for more.
    index('durable_checkpoints_named_idx', 'run_id name seq', {
      columnsWithoutWhere: ['run_id', 'name'],
    }),
    index('durable_checkpoints_pending_idx', 'run_id seq', {
      where: "status = 'pending'",
      columnsWithoutWhere: ['run_id', 'status', 'seq'],
    }),
  ],
}

const attributes: Table = {
  name: DURABLE_TABLES.attributes,
  columns: [
    ...columns({ str: 'run_id! key! str_value' }, { dbl: 'num_value' }),
    // When the run began. A process of an earlier release leaves it out.
    { name: 'created_at', type: 'ms', required: true, default: 0 },
  ],
  primaryKey: ['run_id', 'key'],
  indexes: [
    // The runs of a value, in the order of every list.
    index('durable_run_attributes_by_num_idx', 'key num_value created_at run_id'),
    index('durable_run_attributes_by_str_idx', 'key str_value created_at run_id'),
  ],
}

const signalWaiters: Table = {
  name: DURABLE_TABLES.signalWaiters,
  columns: columns(
    { str: 'token! run_id!' },
    { int: 'seq!' },
    { str: 'parallel_group' },
    { ms: 'created_at' }
  ),
  primaryKey: ['token'],
  indexes: [index('durable_signal_waiters_run_idx', 'run_id')],
}

const bufferedSignals: Table = {
  name: DURABLE_TABLES.bufferedSignals,
  columns: columns({ id: 'id!' }, { str: 'token!' }, { json: 'payload' }),
  primaryKey: ['id'],
  // The id makes the oldest payload of a token the first entry of its range.
  indexes: [index('durable_buffered_signals_token_idx', 'token id')],
}

const bufferedEvents: Table = {
  name: DURABLE_TABLES.bufferedEvents,
  columns: columns({ str: 'id! name!' }, { json: 'payload' }, { ms: 'published_at!' }),
  primaryKey: ['id'],
  indexes: [
    index('durable_buffered_events_name_idx', 'name published_at'),
    index('durable_buffered_events_published_idx', 'published_at'),
  ],
}

const schedules: Table = {
  name: DURABLE_TABLES.schedules,
  columns: [
    ...columns({ str: 'id! workflow!' }, { json: 'spec' }),
    { name: 'paused', type: 'int', required: true, default: 0 },
    ...columns({ str: 'namespace' }, { ms: 'last_fired_at created_at! updated_at!' }),
  ],
  primaryKey: ['id'],
  indexes: [],
}

const meta: Table = {
  name: DURABLE_SCHEMA_META_TABLE,
  columns: columns({ str32: 'id!' }, { str64: 'fingerprint!' }, { ms: 'applied_at!' }),
  primaryKey: ['id'],
  indexes: [],
}

/** Every table, the one with the marker last. */
export const SCHEMA: readonly Table[] = [
  runs,
  checkpoints,
  attributes,
  signalWaiters,
  bufferedSignals,
  bufferedEvents,
  schedules,
  meta,
]
