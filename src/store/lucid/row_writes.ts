/*
 * Rows and waiters of several positions at once. A settled row is never replaced; whether one stood there
 * is decided by the write, or on MySQL, which answers nothing of that, by locks taken before it.
 */
import type { SignalWaiter } from '../../types/checkpoint.ts'
import type { RowWrite } from '../ports/turn_commits.ts'
import { assigned, IS_SETTLED, REPLACED_COLUMNS } from './checkpoints.ts'
import type { Dialect } from '../../sql/dialect.ts'
import {
  CHECKPOINT_COLUMNS,
  CHECKPOINT_TYPES,
  checkpointColumns,
  type Columns,
  compact,
  listed,
  WAITER_COLUMNS,
  WAITER_TYPES,
  waiterColumns,
} from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Statement } from './scripts.ts'
import type { Row, Sql } from '../../sql/session.ts'
import { replacingWaiter } from './signals.ts'

const COLUMNS = listed(CHECKPOINT_COLUMNS)

export const UNLESS_SETTLED = `ON CONFLICT (run_id, seq) DO UPDATE
  SET ${assigned(REPLACED_COLUMNS, 'excluded')} WHERE NOT c.${IS_SETTLED}`
/** The settled row that a retry replaces. */
export const RETRIES = `OR (c.status = 'failed' AND c.attempts = ?)`

/** Writes rows of one run, each position once; answers the positions it wrote. */
export function writeUnlessSettled(
  sql: Sql,
  runId: string,
  writes: RowWrite[]
): Promise<Set<number>> {
  return sql.dialect.name === 'mysql'
    ? lockAndWrite(sql, runId, writes)
    : writeReturning(sql, runId, writes)
}

async function writeReturning(sql: Sql, runId: string, writes: RowWrite[]): Promise<Set<number>> {
  const retried = writes.filter((write) => write.retryOf !== undefined)
  const attempts = Object.fromEntries(retried.map(({ row, retryOf }) => [row.seq, retryOf]))
  const columns = CHECKPOINT_COLUMNS.map((column) => (column === 'run_id' ? '?' : `r.${column}`))
  const retries =
    retried.length === 0
      ? ''
      : `OR (c.status = 'failed' AND c.attempts = json_extract(?, '$."' || c.seq || '"'))`
  const written = await sql.run(
    `INSERT INTO ${T.checkpoints} AS c (${COLUMNS})
     SELECT ${columns.join(', ')} FROM ${sql.dialect.jsonRows('r', CHECKPOINT_TYPES)} WHERE true
     ${UNLESS_SETTLED} ${retries} RETURNING seq`,
    [
      runId.toWellFormed(),
      JSON.stringify(writes.map(({ row }) => compact(checkpointColumns(row)))),
      ...(retried.length === 0 ? [] : [JSON.stringify(attempts)]),
    ]
  )
  return new Set(written.map((row) => Number(row.seq)))
}

async function lockAndWrite(sql: Sql, runId: string, writes: RowWrite[]): Promise<Set<number>> {
  const seqs = writes.map(({ row }) => row.seq).sort((a, b) => a - b)
  const standing = await sql.run(
    `SELECT seq, status, attempts FROM ${T.checkpoints} WHERE run_id = ? AND seq IN (?)
     ORDER BY seq FOR UPDATE`,
    [runId.toWellFormed(), sql.dialect.list(seqs)]
  )
  const bySeq = new Map(standing.map((row) => [Number(row.seq), row]))
  const winning = writes.filter(({ row, retryOf }) => isOpen(bySeq.get(row.seq), retryOf))
  for (const { text, bindings } of puttingRows(sql.dialect, columnsOf(runId, winning))) {
    await sql.change(text, bindings)
  }
  return new Set(winning.map(({ row }) => row.seq))
}

function isOpen(row: Row | undefined, retryOf: number | undefined): boolean {
  if (row?.status === 'failed') return row.attempts === retryOf
  return row?.status !== 'completed'
}

/** The rows of a commit are of its run, whatever they say. */
export const columnsOf = (runId: string, writes: RowWrite[]): Columns[] =>
  writes.map(({ row }) => ({ ...checkpointColumns(row), run_id: runId.toWellFormed() }))

/** A packet may be no larger than the server takes; the smallest default is 16 MiB. */
const MOST_BYTES = 2_000_000

/** MySQL: statements that write rows over what stands there, in key order. */
export function puttingRows(dialect: Dialect, rows: Columns[]): Statement[] {
  const statements: Statement[] = []
  let piece: (string | number | null)[][] = []
  let bytes = 0
  const flush = () => {
    if (piece.length === 0) return
    const text = `INSERT INTO ${T.checkpoints} (${COLUMNS}) VALUES ?
      ${dialect.replacing('run_id, seq', REPLACED_COLUMNS)}`
    statements.push({ text, bindings: [piece] })
    piece = []
    bytes = 0
  }
  for (const row of rows) {
    const values = CHECKPOINT_COLUMNS.map((column) => row[column])
    const size = sizeOf(values)
    if (bytes + size > MOST_BYTES) flush()
    piece.push(values)
    bytes += size
  }
  flush()
  return statements
}

export const sizeOf = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 10), 0)

/** Puts waiters with distinct tokens, in their order. */
export async function putWaiters(sql: Sql, waiters: SignalWaiter[]): Promise<void> {
  if (waiters.length === 0) return
  const { text, bindings } = puttingWaiters(sql.dialect, waiters)
  await sql.change(text, bindings)
}

export function puttingWaiters(dialect: Dialect, waiters: SignalWaiter[]): Statement {
  const columns = listed(WAITER_COLUMNS)
  return {
    text: `INSERT INTO ${T.signalWaiters} (${columns})
      SELECT ${columns} FROM ${dialect.jsonRows('w', WAITER_TYPES)}
      WHERE 1 = 1 ORDER BY token ${replacingWaiter(dialect)}`,
    bindings: [JSON.stringify(waiters.map((waiter) => compact(waiterColumns(waiter))))],
  }
}
