/*
 * Checkpoint rows: the native upsert and the reads. Heartbeat columns belong to the beats: a write keeps
 * them unless the object carries their keys. Reads touch one run's key range only.
 */
import { TransactionSpoiledError } from '../../errors.ts'
import { compareText } from '../../foundation/versions.ts'
import type { CheckpointStatus, StepCheckpoint } from '../../types/checkpoint.ts'
import type { CheckpointKey, CheckpointRange } from '../../types/query.ts'
import type { LeaseFence } from '../ports/transactions.ts'
import { type Binding, type Dialect, startsWith } from '../../sql/dialect.ts'
import {
  CHECKPOINT_COLUMNS,
  checkpointColumns,
  jsonText,
  listed,
  numberOf,
  readCheckpoint,
} from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Sql } from '../../sql/session.ts'

const HEARTBEAT_COLUMNS = ['last_heartbeat_at', 'heartbeat_progress']
export const KEY_COLUMNS = ['run_id', 'seq']

export const IS_LIVE = `status IN ('pending', 'running', 'suspended', 'blocked')`
export const IS_SETTLED = `status IN ('completed', 'failed')`

/** Columns that a write replaces whatever it carries. */
export const REPLACED_COLUMNS = CHECKPOINT_COLUMNS.filter(
  (column) => !KEY_COLUMNS.includes(column) && !HEARTBEAT_COLUMNS.includes(column)
)

/** `a = source.a` for each column; `target` is a prefix of the first. */
export const assigned = (columns: readonly string[], source: string, target = ''): string =>
  columns.map((column) => `${target}${column} = ${source}.${column}`).join(', ')

/** The heartbeat columns an object carries: present, if only as `undefined`. */
export const carriedBeats = (checkpoint: StepCheckpoint): string[] =>
  [
    'lastHeartbeatAt' in checkpoint ? 'last_heartbeat_at' : undefined,
    'heartbeatProgress' in checkpoint ? 'heartbeat_progress' : undefined,
  ].filter((column) => column !== undefined)

export const checkpointValues = (checkpoint: StepCheckpoint): Binding[] => {
  const columns = checkpointColumns(checkpoint)
  return CHECKPOINT_COLUMNS.map((column) => columns[column])
}

const replacing = ({ dialect }: Sql, checkpoint: StepCheckpoint): string =>
  dialect.replacing('run_id, seq', [...REPLACED_COLUMNS, ...carriedBeats(checkpoint)])

const PLACES = CHECKPOINT_COLUMNS.map(() => '?').join(', ')
const INSERT = `INSERT INTO ${T.checkpoints} (${listed(CHECKPOINT_COLUMNS)})`

export async function saveCheckpoint(sql: Sql, checkpoint: StepCheckpoint): Promise<void> {
  await sql.change(
    `${INSERT} VALUES (${PLACES}) ${replacing(sql, checkpoint)}`,
    checkpointValues(checkpoint)
  )
}

/** Writes a row only while its run is live and under this lease and turn; the run stays locked. */
export async function saveUnderLease(
  sql: Sql,
  checkpoint: StepCheckpoint,
  { owner, turn }: LeaseFence
): Promise<boolean> {
  const held = `WHERE id = ? AND locked_by = ? AND turns = ? AND ${IS_LIVE}`
  const fence = [checkpoint.runId.toWellFormed(), owner.toWellFormed(), turn]
  if (sql.dialect.name === 'mysql') {
    const { rows, inTransaction } = await sql.change(
      `UPDATE ${T.runs} SET turns = turns ${held}`,
      fence
    )
    // A deadlock, or DDL, has ended it, and what follows would commit by itself.
    if (!inTransaction) throw new TransactionSpoiledError()
    if (rows > 0) await saveCheckpoint(sql, checkpoint)
    return rows > 0
  }
  const { rows } = await sql.change(
    `WITH held AS (SELECT id FROM ${T.runs} ${held} ${sql.dialect.forUpdate}) ${INSERT}
     SELECT ${PLACES} FROM held WHERE 1 = 1 ${replacing(sql, checkpoint)}`,
    [...fence, ...checkpointValues(checkpoint)]
  )
  return rows > 0
}

const ALL = listed(CHECKPOINT_COLUMNS)
const WITHOUT_INPUT = listed(CHECKPOINT_COLUMNS.filter((column) => column !== 'input'))
/** A replay answers completed positions from their output. */
const FOR_REPLAY = `${WITHOUT_INPUT}, CASE WHEN status = 'completed' THEN NULL ELSE input END AS input`

const ofRun = (columns: string): string =>
  `SELECT ${columns} FROM ${T.checkpoints} WHERE run_id = ?`

/** Whole rows of one run; its id is the first parameter. */
export const CHECKPOINTS_OF_RUN = ofRun(ALL)

export async function getCheckpoint(sql: Sql, runId: string, seq: number) {
  const [row] = await sql.run(`${ofRun(ALL)} AND seq = ?`, [runId.toWellFormed(), seq])
  return row ? readCheckpoint(row) : null
}

export async function listCheckpoints(sql: Sql, runId: string): Promise<StepCheckpoint[]> {
  const rows = await sql.run(`${ofRun(ALL)} ORDER BY seq`, [runId.toWellFormed()])
  return rows.map(readCheckpoint)
}

export async function listCheckpointsForReplay(sql: Sql, runId: string): Promise<StepCheckpoint[]> {
  const rows = await sql.run(`${ofRun(FOR_REPLAY)} ORDER BY seq`, [runId.toWellFormed()])
  return rows.map(readCheckpoint)
}

export async function listCheckpointsAt(
  sql: Sql,
  runId: string,
  seqs: number[],
  fromSeq: number
): Promise<StepCheckpoint[]> {
  const id = runId.toWellFormed()
  const before = seqs.filter((seq) => seq < fromSeq)
  const after = `${ofRun(FOR_REPLAY)} AND seq >= ?`
  if (before.length === 0) {
    const rows = await sql.run(`${after} ORDER BY seq`, [id, fromSeq])
    return rows.map(readCheckpoint)
  }
  // Two ranges of the key: one condition with OR would read the whole timeline. Row by row and in order, or
  // a plan for any run takes another index for as good.
  const { dialect } = sql
  const known = `SELECT ${FOR_REPLAY} FROM ${dialect.jsonRows('k', { wanted: 'int' })}
    ${dialect.joinOne(T.checkpoints, 'c', CHECKPOINT_COLUMNS, 'c.run_id = ? AND c.seq = k.wanted')}`
  const rows = await sql.run(
    `${known} UNION ALL SELECT * FROM (${after} ORDER BY seq) AS tail ORDER BY seq`,
    [JSON.stringify([...new Set(before)].map((wanted) => ({ wanted }))), id, id, fromSeq]
  )
  return rows.map(readCheckpoint)
}

const KEYS = { run_id: 'text', seq: 'int' } as const
export const KEY_CHUNK = 500

/** Distinct keys as JSON, in key order, in pieces one statement takes. */
export function keyChunks(keys: CheckpointKey[]): string[] {
  const distinct = new Map(
    keys.map(({ runId, seq }) => [`${seq}:${runId}`, { run_id: runId.toWellFormed(), seq }])
  )
  const sorted = [...distinct.values()].sort(byKey)
  const chunks: string[] = []
  for (let from = 0; from < sorted.length; from += KEY_CHUNK) {
    chunks.push(JSON.stringify(sorted.slice(from, from + KEY_CHUNK)))
  }
  return chunks
}

type KeyRow = { run_id: string; seq: number }

/** The order in which rows are locked, whoever locks them. */
export const byKey = (a: KeyRow, b: KeyRow): number =>
  compareText(a.run_id, b.run_id) || a.seq - b.seq

/** The rows, under `c`, at the keys of a JSON parameter. */
export const rowsByKeys = (dialect: Dialect, columns: readonly string[]): string =>
  `${dialect.jsonRows('k', KEYS)}
   ${dialect.joinOne(T.checkpoints, 'c', columns, 'c.run_id = k.run_id AND c.seq = k.seq')}`

const getAt = async (sql: Sql, keys: CheckpointKey[], columns: readonly string[]) => {
  const text = `SELECT ${listed(columns, 'c')} FROM ${rowsByKeys(sql.dialect, columns)}`
  const found: StepCheckpoint[] = []
  for (const chunk of keyChunks(keys)) {
    const rows = await sql.run(text, [chunk])
    found.push(...rows.map(readCheckpoint))
  }
  return found
}

export const getCheckpoints = (sql: Sql, keys: CheckpointKey[]): Promise<StepCheckpoint[]> =>
  getAt(sql, keys, CHECKPOINT_COLUMNS)

export const getCheckpointsForSettle = (
  sql: Sql,
  keys: CheckpointKey[]
): Promise<StepCheckpoint[]> =>
  getAt(
    sql,
    keys,
    CHECKPOINT_COLUMNS.filter((column) => column !== 'input')
  )

const STATUSES: CheckpointStatus[] = ['pending', 'running', 'completed', 'failed']

/**
 * Conditions of a range. Statuses stand in the text, from a closed list: only so can the partial index
 * over pending rows serve them.
 */
export function within(range: CheckpointRange): { text: string; bindings: Binding[] } {
  const parts: string[] = []
  const bindings: Binding[] = []
  if (range.fromSeq !== undefined) {
    parts.push(' AND seq >= ?')
    bindings.push(range.fromSeq)
  }
  if (range.toSeq !== undefined) {
    parts.push(' AND seq <= ?')
    bindings.push(range.toSeq)
  }
  if (range.statuses) {
    const wanted = STATUSES.filter((status) => range.statuses!.includes(status))
    if (wanted.length === 1) parts.push(` AND status = '${wanted[0]}'`)
    else parts.push(` AND status IN (${wanted.map((status) => `'${status}'`).join(', ')})`)
  }
  return { text: parts.join(''), bindings }
}

export async function countCheckpoints(
  sql: Sql,
  runId: string,
  range: CheckpointRange
): Promise<number> {
  if (range.statuses?.length === 0) return 0
  const { text, bindings } = within(range)
  const [row] = await sql.run(`${ofRun('count(*) AS total')}${text}`, [
    runId.toWellFormed(),
    ...bindings,
  ])
  return numberOf(row.total) ?? 0
}

export async function hasCheckpoints(
  sql: Sql,
  runId: string,
  range: CheckpointRange
): Promise<boolean> {
  if (range.statuses?.length === 0) return false
  const { text, bindings } = within(range)
  // From the end: the last members of a fan are the likeliest to be open.
  const rows = await sql.run(`${ofRun('seq')}${text} ORDER BY seq DESC LIMIT 1`, [
    runId.toWellFormed(),
    ...bindings,
  ])
  return rows.length > 0
}

export async function getLatestCheckpointByName(
  sql: Sql,
  runId: string,
  name: string
): Promise<StepCheckpoint | undefined> {
  // MySQL would rather walk the timeline back from its end.
  const table =
    sql.dialect.name === 'mysql' ? `${T.checkpoints} IGNORE INDEX (PRIMARY)` : T.checkpoints
  const [row] = await sql.run(
    `SELECT ${ALL} FROM ${table} WHERE run_id = ? AND name = ? ORDER BY seq DESC LIMIT 1`,
    [runId.toWellFormed(), name.toWellFormed()]
  )
  return row && readCheckpoint(row)
}

/** MySQL would rather read a whole timeline in order than sort the few rows of a name. */
export const SORTED_SEQ = 'seq + 0'

export async function listCheckpointsByNamePrefix(
  sql: Sql,
  runId: string,
  prefixes: string[]
): Promise<StepCheckpoint[]> {
  if (prefixes.length === 0) return []
  const parts = prefixes.map((prefix) => startsWith('name', prefix.toWellFormed()))
  const rows = await sql.adhoc(
    `${ofRun(ALL)} AND (${parts.map((part) => part.text).join(' OR ')}) ORDER BY ${SORTED_SEQ}`,
    [runId.toWellFormed(), ...parts.flatMap((part) => part.bindings)]
  )
  return rows.map(readCheckpoint)
}

export async function recordStepHeartbeat(
  sql: Sql,
  runId: string,
  seq: number,
  at: Date,
  progress?: unknown
): Promise<void> {
  await sql.change(
    `UPDATE ${T.checkpoints} SET last_heartbeat_at = ?, heartbeat_progress = ?
     WHERE run_id = ? AND seq = ?`,
    [at.getTime(), jsonText(progress, 'heartbeat_progress'), runId.toWellFormed(), seq]
  )
}
