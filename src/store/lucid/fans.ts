/*
 * Waits of a whole fan in one transaction. Whether a position is still open is decided by the statement
 * that writes its placeholder, and only the positions that it wrote get their waiters (invariant 4).
 */
import type { SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import { batches } from './batches.ts'
import { compareText } from '../../foundation/versions.ts'
import { putWaiters, UNLESS_SETTLED, writeUnlessSettled } from './row_writes.ts'
import { CHECKPOINT_COLUMNS, CHECKPOINT_TYPES, checkpointColumns, compact, listed } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from '../../sql/session.ts'

interface ChildWait {
  waiter: SignalWaiter
  checkpoint: StepCheckpoint
}

/** All or nothing. A settled position keeps its row and gets no waiter. */
export async function registerChildWaits(session: Session, waits: ChildWait[]): Promise<void> {
  if (waits.length === 0) return
  const pieces = batches(waits, ({ waiter, checkpoint }) => [
    `token ${waiter.token.toWellFormed()}`,
    `row ${keyOf(checkpoint)}`,
  ])
  await session.atomically(async (sql) => {
    await lockRuns(sql, waits)
    for (const piece of pieces) {
      const open = await writePlaceholders(sql, piece)
      await putWaiters(
        sql,
        piece.filter(({ checkpoint }) => open.has(keyOf(checkpoint))).map(({ waiter }) => waiter)
      )
    }
  })
}

const keyOf = ({ runId, seq }: { runId: string; seq: number }): string =>
  `${seq}:${runId.toWellFormed()}`

/** Whoever else writes waiters and rows of these runs holds them too, so the order below is safe. */
async function lockRuns(sql: Sql, waits: ChildWait[]): Promise<void> {
  if (sql.dialect.name === 'sqlite') return
  const ids = new Set(waits.map(({ checkpoint }) => checkpoint.runId.toWellFormed()))
  await sql.run(
    `SELECT id FROM ${T.runs} WHERE ${sql.dialect.isIn('id', 'text')} ORDER BY id
     ${sql.dialect.forUpdate}`,
    [sql.dialect.list([...ids])]
  )
}

/** The keys of the positions that were open. */
async function writePlaceholders(sql: Sql, waits: ChildWait[]): Promise<Set<string>> {
  if (sql.dialect.name === 'mysql') return writeByRun(sql, waits)
  const written = await sql.run(
    `INSERT INTO ${T.checkpoints} AS c (${listed(CHECKPOINT_COLUMNS)})
     SELECT ${listed(CHECKPOINT_COLUMNS, 'r')} FROM ${sql.dialect.jsonRows('r', CHECKPOINT_TYPES)}
     WHERE 1 = 1 ORDER BY r.run_id, r.seq ${UNLESS_SETTLED} RETURNING run_id, seq`,
    [JSON.stringify(waits.map(({ checkpoint }) => compact(checkpointColumns(checkpoint))))]
  )
  return new Set(written.map((row) => keyOf({ runId: String(row.run_id), seq: Number(row.seq) })))
}

/** A fan is of one run. */
async function writeByRun(sql: Sql, waits: ChildWait[]): Promise<Set<string>> {
  const written = new Set<string>()
  const byRun = Map.groupBy(waits, ({ checkpoint }) => checkpoint.runId)
  for (const [runId, own] of [...byRun].sort(([a], [b]) => compareText(a, b))) {
    const writes = own.map(({ checkpoint }) => ({ row: checkpoint }))
    for (const seq of await writeUnlessSettled(sql, runId, writes)) {
      written.add(keyOf({ runId, seq }))
    }
  }
  return written
}
