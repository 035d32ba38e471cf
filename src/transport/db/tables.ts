/*
 * The tables of the `db` transport as data. A row is unclaimed (`claimed_by` NULL) or held by one claim.
 * Every namespace of a database shares them: each statement names its own.
 */
import { columns, type Index, type Table } from '../../sql/table.ts'

export const TRANSPORT_TABLES = {
  tasks: 'durable_transport_tasks',
  results: 'durable_transport_results',
  heartbeats: 'durable_transport_heartbeats',
  control: 'durable_transport_control',
  messages: 'durable_transport_messages',
  workerKeys: 'durable_transport_worker_keys',
} as const

const NAMESPACE = { name: 'namespace', type: 'str', required: true, default: 'default' } as const
const CLAIM = columns({ str: 'claimed_by' }, { ms: 'claimed_at' })
const COUNTERS = [
  { name: 'priority', type: 'int', required: true, default: 0 },
  { name: 'reclaims', type: 'int', required: true, default: 0 },
] as const

/** The next rows of a list, in the order in which they are taken. */
const free = (name: string, list: string[], order: string[]): Index => ({
  name,
  columns: [...list, ...order],
  where: 'claimed_at IS NULL',
  columnsWithoutWhere: [...list, 'claimed_at', ...order],
})

/** The rows that somebody holds: few, whatever waits. */
const held = (name: string): Index => ({
  name,
  columns: ['namespace', 'claimed_at'],
  where: 'claimed_at IS NOT NULL',
})

const tasks: Table = {
  name: TRANSPORT_TABLES.tasks,
  columns: [
    ...columns({ str512: 'step_id!' }, { str: 'run_id!' }, { int: 'seq!' }, { str: 'name! grp!' }),
    NAMESPACE,
    { name: 'kind', type: 'str32', required: true, default: 'step' },
    ...columns(
      { json: 'input' },
      { str: 'traceparent' },
      { json: 'context' },
      { str: 'transport' }
    ),
    { name: 'attempt', type: 'int', required: true, default: 1 },
    ...COUNTERS,
    ...columns({ str: 'reply_to' }),
    ...CLAIM,
    ...columns({ ms: 'created_at!' }),
  ],
  primaryKey: ['step_id'],
  indexes: [
    free('durable_transport_tasks_free_idx', ['namespace', 'grp'], ['priority DESC', 'created_at']),
    held('durable_transport_tasks_held_idx'),
  ],
}

const results: Table = {
  name: TRANSPORT_TABLES.results,
  columns: [
    ...columns({ str512: 'step_id!' }, { str: 'run_id!' }, { int: 'seq!' }, { str32: 'status!' }),
    NAMESPACE,
    ...columns({ json: 'output error' }, { ms: 'started_at' }, { json: 'events' }),
    { name: 'attempt', type: 'int' },
    ...CLAIM,
    ...columns({ ms: 'created_at!' }),
  ],
  primaryKey: ['step_id'],
  indexes: [
    free('durable_transport_results_free_idx', ['namespace'], ['created_at']),
    held('durable_transport_results_held_idx'),
  ],
}

const heartbeats: Table = {
  name: TRANSPORT_TABLES.heartbeats,
  columns: [
    ...columns({ id: 'id!' }, { str: 'run_id!' }, { int: 'seq!' }, { str512: 'step_id' }),
    ...columns({ str: 'grp!' }),
    NAMESPACE,
    ...columns({ ms: 'at' }, { json: 'progress' }),
    ...CLAIM,
    ...columns({ ms: 'created_at!' }),
  ],
  primaryKey: ['id'],
  indexes: [{ name: 'durable_transport_heartbeats_idx', columns: ['namespace', 'id'] }],
}

/** Made for peers that publish here; control messages of engines go over a control plane. */
const control: Table = {
  name: TRANSPORT_TABLES.control,
  columns: [
    ...columns({ id: 'id!' }, { json: 'payload' }),
    NAMESPACE,
    ...CLAIM,
    ...columns({ ms: 'created_at!' }),
  ],
  primaryKey: ['id'],
  indexes: [],
}

const messages: Table = {
  name: TRANSPORT_TABLES.messages,
  columns: [
    ...columns({ str64: 'id!' }),
    NAMESPACE,
    ...columns({ str32: 'kind!' }, { str: 'recipient' }, { json: 'payload' }),
    ...COUNTERS,
    ...CLAIM,
    ...columns({ ms: 'created_at!' }),
  ],
  primaryKey: ['id'],
  indexes: [
    free(
      'durable_transport_messages_free_idx',
      ['namespace', 'kind'],
      ['priority DESC', 'created_at']
    ),
    held('durable_transport_messages_held_idx'),
    {
      name: 'durable_transport_messages_recipient_idx',
      columns: ['recipient', 'created_at'],
      where: 'recipient IS NOT NULL',
    },
  ],
}

const workerKeys: Table = {
  name: TRANSPORT_TABLES.workerKeys,
  columns: columns({ str512: 'key_name!' }, { json: 'value' }, { ms: 'beat_at! expires_at!' }),
  primaryKey: ['key_name'],
  indexes: [{ name: 'durable_transport_worker_keys_expiry_idx', columns: ['expires_at'] }],
}

/** In the order in which they are created. */
export const TRANSPORT_SCHEMA: readonly Table[] = [
  tasks,
  results,
  heartbeats,
  control,
  messages,
  workerKeys,
]
