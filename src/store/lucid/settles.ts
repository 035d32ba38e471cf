/*
 * Conditional writes of results: a row is written only while it is `pending`, decided by the write itself,
 * so a late or repeated result never touches a settled one (invariant 4). A batch locks its rows in key
 * order, so that overlapping ones cannot deadlock: in one statement on Postgres, before the write on MySQL.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { CheckpointKey } from '../../types/query.ts'
import type { RunStatus } from '../../types/run.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import type { SettleTarget } from '../ports/turn_commits.ts'
import {
  assigned,
  byKey,
  carriedBeats,
  KEY_CHUNK,
  keyChunks,
  REPLACED_COLUMNS,
  rowsByKeys,
} from './checkpoints.ts'
import type { Dialect, Fields } from '../../sql/dialect.ts'
import {
  CHECKPOINT_COLUMNS,
  CHECKPOINT_TYPES,
  checkpointColumns,
  type Columns,
  compact,
  jsonText,
  listed,
  readCheckpoint,
  waitOf,
} from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'

type Entry = Columns & { run_id: string; seq: number }

export async function saveCheckpointIfPending(
  session: Session,
  checkpoint: StepCheckpoint
): Promise<boolean> {
  const columns = checkpointColumns(checkpoint)
  const written = [...REPLACED_COLUMNS, ...carriedBeats(checkpoint)]
  const { rows } = await session.change(
    `UPDATE ${T.checkpoints} SET ${written.map((column) => `${column} = ?`).join(', ')}
     WHERE run_id = ? AND seq = ? AND status = 'pending'`,
    [...written.map((column) => columns[column]), columns.run_id, columns.seq]
  )
  return rows > 0
}

/** Which heartbeat columns an entry carries, as columns of the row source. */
const CARRIES: Fields = { carries_at: 'int', carries_progress: 'int' }

type Assigns = (target: string) => string

const SAVE: Assigns = (target) => `${assigned(REPLACED_COLUMNS, 's', target)},
  ${target}last_heartbeat_at = CASE WHEN s.carries_at = 1 THEN s.last_heartbeat_at ELSE c.last_heartbeat_at END,
  ${target}heartbeat_progress =
    CASE WHEN s.carries_progress = 1 THEN s.heartbeat_progress ELSE c.heartbeat_progress END`

export async function saveCheckpointsIfPending(
  session: Session,
  checkpoints: StepCheckpoint[]
): Promise<boolean[]> {
  const entries = checkpoints.map((checkpoint) => {
    const beats = carriedBeats(checkpoint)
    return {
      ...compact(checkpointColumns(checkpoint)),
      ...(beats.includes('last_heartbeat_at') ? { carries_at: 1 } : {}),
      ...(beats.includes('heartbeat_progress') ? { carries_progress: 1 } : {}),
    } as Entry
  })
  return whilePending(session, entries, SAVE, { ...CHECKPOINT_TYPES, ...CARRIES })
}

const SETTLEMENT_TYPES: Fields = {
  run_id: 'text',
  seq: 'int',
  status: 'text',
  finished_at: 'bigint',
  output: 'long',
  error: 'long',
  events: 'long',
  started_at: 'bigint',
  clears_wake: 'int',
  up_to: 'int',
}

const SETTLES = 'AND c.attempts <= coalesce(s.up_to, c.attempts)'

const CARRIED = ['output', 'error', 'events', 'started_at']

const SETTLE: Assigns = (target) => `${assigned(['status', 'finished_at'], 's', target)},
  ${CARRIED.map((column) => `${target}${column} = coalesce(s.${column}, c.${column})`).join(', ')},
  ${target}wake_at = CASE WHEN s.clears_wake = 1 THEN NULL ELSE c.wake_at END`

export async function settleCheckpointsIfPending(
  session: Session,
  settlements: CheckpointSettlement[]
): Promise<boolean[]> {
  const entries = settlements.map(
    (settlement) =>
      compact({
        run_id: settlement.runId.toWellFormed(),
        seq: settlement.seq,
        status: settlement.status,
        finished_at: settlement.finishedAt.getTime(),
        output: jsonText(settlement.output, 'output'),
        error: jsonText(settlement.error, 'error'),
        events: jsonText(settlement.events, 'events'),
        started_at: settlement.startedAt?.getTime() ?? null,
        clears_wake: settlement.wakeAt === null ? 1 : null,
        up_to: settlement.upToAttempt ?? null,
      }) as Entry
  )
  return whilePending(session, entries, SETTLE, SETTLEMENT_TYPES, SETTLES)
}

/** Applies `set` from each entry to its row while that is pending; of two with one key the first counts. */
async function whilePending(
  session: Session,
  entries: Entry[],
  set: Assigns,
  types: Fields,
  condition = ''
): Promise<boolean[]> {
  if (entries.length === 0) return []
  const first = new Map<string, Entry>()
  for (const entry of entries) {
    const key = keyOf(entry)
    if (!first.has(key)) first.set(key, entry)
  }
  const sorted = [...first.values()].sort(byKey)
  const text = updateWhilePending(session.dialect, set, types, condition)
  const written = new Set<string>()
  const apply = session.dialect.returns ? applyReturning : applyLocked
  const write = async (sql: Sql) => {
    written.clear()
    for (let from = 0; from < sorted.length; from += KEY_CHUNK) {
      const piece = sorted.slice(from, from + KEY_CHUNK)
      for (const key of await apply(sql, text, piece)) written.add(key)
    }
  }
  const alone = sorted.length <= (session.dialect.returns ? KEY_CHUNK : 1)
  await (alone ? write(session) : session.atomically(write))
  return entries.map((entry) => first.get(keyOf(entry)) === entry && written.has(keyOf(entry)))
}

async function applyReturning(sql: Sql, text: string, entries: Entry[]): Promise<string[]> {
  const rows = await sql.run(text, [JSON.stringify(entries)])
  return rows.map(keyOf)
}

/** Of several entries the count of a write does not tell which it took: what is pending is locked first. */
async function applyLocked(sql: Sql, text: string, entries: Entry[]): Promise<string[]> {
  if (entries.length === 1) {
    const { rows } = await sql.change(text, [JSON.stringify(entries)])
    return rows > 0 ? entries.map(keyOf) : []
  }
  const held = await sql.run(
    `SELECT run_id, seq, attempts FROM ${T.checkpoints}
     WHERE (run_id, seq) IN (?) AND status = 'pending' ORDER BY run_id, seq FOR UPDATE`,
    [entries.map(({ run_id, seq }) => [run_id, seq])]
  )
  const attempts = new Map(held.map((row) => [keyOf(row), Number(row.attempts)]))
  const taken = entries.filter((entry) => {
    const standing = attempts.get(keyOf(entry))
    return standing !== undefined && standing <= Number(entry.up_to ?? standing)
  })
  if (taken.length > 0) await sql.change(text, [JSON.stringify(taken)])
  return taken.map(keyOf)
}

const keyOf = (row: Row): string => `${String(row.seq)}:${String(row.run_id)}`

function updateWhilePending(
  dialect: Dialect,
  set: Assigns,
  types: Fields,
  condition: string
): string {
  const source = dialect.jsonRows('s', types)
  if (dialect.name === 'sqlite') {
    // The plus keeps the index over pending rows out of it: the entries lead to the rows, not every
    // pending row to the entries.
    return `UPDATE ${T.checkpoints} AS c SET ${set('')} FROM ${source}
      WHERE c.run_id = s.run_id AND c.seq = s.seq AND +c.status = 'pending' ${condition}
      RETURNING run_id, seq`
  }
  if (dialect.name === 'mysql') {
    return `UPDATE ${source} ${dialect.joinOne(T.checkpoints, 'c', [], 'c.run_id = s.run_id AND c.seq = s.seq')}
      SET ${set('c.')} WHERE c.status = 'pending' ${condition}`
  }
  // The entries come in key order, and so do the locks. The last condition says nothing but "few rows" to
  // the planner, which takes any JSON source for a hundred and would rather read a whole small table.
  return `WITH s AS (
      SELECT s.* FROM ${source} CROSS JOIN LATERAL (
        SELECT c.seq FROM ${T.checkpoints} c
        WHERE c.run_id = s.run_id AND c.seq = s.seq AND c.status = 'pending' ${condition}
        LIMIT 1 FOR NO KEY UPDATE) held
      WHERE s.seq = s.seq + 0)
    UPDATE ${T.checkpoints} c SET ${set('')} FROM s WHERE c.run_id = s.run_id AND c.seq = s.seq
    RETURNING c.run_id, c.seq`
}

/** The rows of a batch of results, with what is needed of their runs. One statement. */
export async function settleTargets(
  session: Session,
  keys: CheckpointKey[]
): Promise<SettleTarget[]> {
  const columns = CHECKPOINT_COLUMNS.filter((column) => column !== 'input')
  const ofRun = ['workflow', 'workflow_version', 'namespace', 'wait_from', 'wait_to']
  const { dialect } = session
  const text = `SELECT ${listed(columns, 'c')}, r.status AS run_status, ${listed(ofRun, 'r')}
    FROM ${rowsByKeys(dialect, columns)}
    ${dialect.joinOne(T.runs, 'r', ['status', ...ofRun], 'r.id = c.run_id')}`
  const targets: SettleTarget[] = []
  for (const chunk of keyChunks(keys)) {
    for (const row of await session.run(text, [chunk])) targets.push(readTarget(row))
  }
  return targets
}

function readTarget(row: Row): SettleTarget {
  const target: SettleTarget = {
    checkpoint: readCheckpoint(row),
    runStatus: row.run_status as RunStatus,
    workflow: String(row.workflow),
    workflowVersion: String(row.workflow_version),
    namespace: String(row.namespace),
  }
  const waitSeqs = waitOf(row)
  return waitSeqs ? { ...target, waitSeqs } : target
}
