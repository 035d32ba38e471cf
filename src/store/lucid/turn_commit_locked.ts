/*
 * A turn's commit in a transaction that holds the run row, or SQLite's write lock, from its begin: one
 * statement a table and kind of entry, one after the other. What nobody else may write meanwhile stays as
 * it was read; buffered payloads, which others may take, are asked for when they are taken.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import {
  type ChildState,
  eachOnce,
  type OrderStamp,
  refusedByIntent,
  type RowWrite,
  type SignalWait,
  type TurnCommit,
  type TurnVerdict,
  type WaitExpiry,
} from '../ports/turn_commits.ts'
import { ATTRIBUTE_COLUMNS, ATTRIBUTE_TYPES, attributeRows } from './attributes.ts'
import { batches } from './batches.ts'
import { IS_LIVE, IS_SETTLED } from './checkpoints.ts'
import { putWaiters, writeUnlessSettled } from './row_writes.ts'
import { compact, listed, numberOf, RUN_COLUMNS, RUN_TYPES, runColumns } from './rows.ts'
import { assignments, patchColumns, reindex } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Sql } from '../../sql/session.ts'
import {
  oldestOf,
  putSignalWaiter,
  removeSignalWaiter,
  takeBufferedSignal,
  takeSignalWaiter,
} from './signals.ts'
import { applyExtras } from './turn_extras.ts'
import { childStates, completedBy, rowsAt, settlePatch, verdict } from './turn_verdict.ts'

export const MARKS = ['status', 'wake_requested_at', 'cancel_requested_at', 'awaited']

export async function commitAll(sql: Sql, commit: TurnCommit): Promise<TurnVerdict> {
  const run = await readHolder(sql, commit.runId)
  if (!run || !mayApply(run, commit)) return verdict(run, false, [])
  const stored: StepCheckpoint[] = []
  await writeRows(sql, commit, commit.rows ?? [], stored)
  await applyWaits(sql, commit, commit.waits ?? [], stored)
  await expire(sql, commit, commit.expiries ?? [], stored)
  await applyExtras(sql, commit, stored)
  await insertRuns(sql, commit.runs ?? [])
  const children = commit.children && (await beget(sql, commit.children))
  await stamp(sql, commit.runId, commit.stamps ?? [])
  const after = commit.settle ? await settle(sql, commit, stored) : {}
  return { ...verdict({ ...run, ...after }, true, stored), ...(children ? { children } : {}) }
}

/** Inserts children, or marks those that exist; answers the state of the latter. */
async function beget(sql: Sql, children: WorkflowRun[]): Promise<ChildState[]> {
  const born = await insertRuns(sql, children)
  const standing = children.map(({ id }) => id.toWellFormed()).filter((id) => !born.has(id))
  if (standing.length === 0) return []
  const { dialect } = sql
  const given = [dialect.list(standing)]
  const chosen = dialect.isIn('id', 'text')
  await sql.change(`UPDATE ${T.runs} SET awaited = 1 WHERE ${chosen}`, given)
  const rows = await sql.run(
    `SELECT id, status, output, error FROM ${T.runs} WHERE ${chosen}`,
    given
  )
  return childStates(
    JSON.stringify(rows.map(({ id, status, output, error }) => [id, status, output, error]))
  )
}

async function readHolder(sql: Sql, runId: string): Promise<Row | undefined> {
  const [run] = await sql.run(
    `SELECT locked_by, turns, ${listed(MARKS)}, ${IS_LIVE} AS live FROM ${T.runs} WHERE id = ?
     ${sql.dialect.forUpdate}`,
    [runId.toWellFormed()]
  )
  return run
}

function mayApply(run: Row, { owner, turn, settle: end }: TurnCommit): boolean {
  if (run.locked_by !== owner.toWellFormed() || run.turns !== turn || run.live !== 1) return false
  return !refusedByIntent(end, { cancelRequestedAt: numberOf(run.cancel_requested_at) })
}

/** Writes rows unless what stands is settled; `stored` gets what stands where one lost. */
async function writeRows(
  sql: Sql,
  { runId }: TurnCommit,
  writes: RowWrite[],
  stored: StepCheckpoint[]
): Promise<void> {
  for (const batch of batches(writes, ({ row }) => [row.seq])) {
    const done = await writeUnlessSettled(sql, runId, batch)
    const lost = batch.filter(({ row }) => !done.has(row.seq)).map(({ row }) => row.seq)
    if (lost.length > 0) stored.push(...(await rowsAt(sql, runId, lost)))
  }
}

/** Takes a payload for each wait that has one, registers the others; answers whether any took one. */
async function applyWaits(
  sql: Sql,
  commit: TurnCommit,
  waits: SignalWait[],
  stored: StepCheckpoint[],
  look = false
): Promise<boolean> {
  let hit = false
  for (const batch of batches(waits, ({ waiter, row }) => [waiter.token, row.seq])) {
    const seen = await lookAtWaits(sql, commit.runId, batch)
    // A replaced waiter means that the payload is somebody else's; a taken one, that it was delivered.
    const asked = batch.filter((_, index) => !look || seen[index].stands === 1)
    const of = (wait: SignalWait) => seen[batch.indexOf(wait)]
    const settled = asked.filter((wait) => of(wait).settled === 1)
    const open = asked.filter((wait) => of(wait).settled === 0)
    const [hits, misses] = [
      open.filter((wait) => of(wait).payload_id !== null),
      open.filter((wait) => of(wait).payload_id === null),
    ]
    const emptied = await complete(sql, commit, hits, stored)
    hit ||= hits.length > emptied.length
    if (look) continue
    if (settled.length > 0) {
      const seqs = settled.map(({ row }) => row.seq)
      stored.push(...(await rowsAt(sql, commit.runId, seqs)))
    }
    await putWaiters(
      sql,
      [...misses, ...emptied].map(({ waiter }) => waiter)
    )
  }
  return hit
}

/** Of each wait: whether its position is settled, its waiter stands, a payload lies. */
async function lookAtWaits(sql: Sql, runId: string, waits: SignalWait[]): Promise<Row[]> {
  const id = runId.toWellFormed()
  return sql.run(
    `SELECT (${oldestOf(sql, 'w.token')}) AS payload_id,
       EXISTS (SELECT 1 FROM ${T.signalWaiters} x
         WHERE x.token = w.token AND x.run_id = ? AND x.seq = w.seq) AS stands,
       EXISTS (SELECT 1 FROM ${T.checkpoints} c
         WHERE c.run_id = ? AND c.seq = w.seq AND c.${IS_SETTLED}) AS settled
     FROM ${sql.dialect.jsonRows('w', { place: 'int', token: 'text', seq: 'int' })} ORDER BY w.place`,
    [
      id,
      id,
      JSON.stringify(
        waits.map(({ waiter, row }, place) => ({
          place,
          token: waiter.token.toWellFormed(),
          seq: row.seq,
        }))
      ),
    ]
  )
}

/** Answers the waits whose payload somebody else took. */
async function complete(
  sql: Sql,
  commit: TurnCommit,
  hits: SignalWait[],
  stored: StepCheckpoint[]
): Promise<SignalWait[]> {
  const rows: StepCheckpoint[] = []
  const emptied: SignalWait[] = []
  for (const wait of hits) {
    const taken = await takeBufferedSignal(sql, wait.waiter.token)
    if (!taken) {
      emptied.push(wait)
      continue
    }
    await removeSignalWaiter(sql, wait.waiter)
    rows.push(completedBy(wait, taken.payload))
  }
  await writeRows(
    sql,
    commit,
    rows.map((row) => ({ row })),
    []
  )
  stored.push(...rows)
  return emptied
}

async function expire(
  sql: Sql,
  commit: TurnCommit,
  expiries: WaitExpiry[],
  stored: StepCheckpoint[]
): Promise<void> {
  if (expiries.length === 0) return
  await writeRows(sql, commit, expiries, stored)
  for (const { waiter } of expiries) await removeSignalWaiter(sql, waiter)
}

/** Inserts runs unless their ids exist; answers those it inserted. */
async function insertRuns(sql: Sql, given: WorkflowRun[]): Promise<Set<string>> {
  const runs = eachOnce(given)
  if (runs.length === 0) return new Set()
  const ids = await insertNewRuns(sql, runs)
  const attributes = runs.flatMap(attributeRows).filter((row) => ids.has(row.run_id))
  if (attributes.length === 0) return ids
  await sql.change(
    `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
     SELECT ${ATTRIBUTE_COLUMNS} FROM ${sql.dialect.jsonRows('a', ATTRIBUTE_TYPES)}`,
    [JSON.stringify(attributes)]
  )
  return ids
}

async function insertNewRuns(sql: Sql, runs: WorkflowRun[]): Promise<Set<string>> {
  const rows = (wanted: WorkflowRun[]) =>
    JSON.stringify(wanted.map((run) => compact(runColumns(run))))
  const insert = `INSERT INTO ${T.runs} (${listed(RUN_COLUMNS)})
    SELECT ${listed(RUN_COLUMNS)} FROM ${sql.dialect.jsonRows('n', RUN_TYPES)} WHERE true`
  if (sql.dialect.returns) {
    const born = await sql.run(`${insert} ON CONFLICT (id) DO NOTHING RETURNING id`, [rows(runs)])
    return new Set(born.map((row) => String(row.id)))
  }
  const standing = await sql.run(
    `SELECT id FROM ${T.runs} WHERE ${sql.dialect.isIn('id', 'text')} ORDER BY id FOR UPDATE`,
    [sql.dialect.list(runs.map(({ id }) => id.toWellFormed()).sort())]
  )
  const taken = new Set(standing.map((row) => row.id))
  const fresh = runs.filter(({ id }) => !taken.has(id.toWellFormed()))
  // Whoever inserts one of them meanwhile makes this fail, and all of it begin again.
  if (fresh.length > 0) await sql.change(insert, [rows(fresh)])
  return new Set(fresh.map(({ id }) => id.toWellFormed()))
}

async function stamp(sql: Sql, runId: string, stamps: OrderStamp[]): Promise<void> {
  if (stamps.length === 0) return
  const first = new Map<number, number>()
  for (const { seq, order } of stamps) if (!first.has(seq)) first.set(seq, order)
  const places = JSON.stringify([...first].map(([position, place]) => ({ position, place })))
  const source = sql.dialect.jsonRows('s', { position: 'int', place: 'int' })
  await sql.change(
    `UPDATE ${T.checkpoints} SET delivery_order = (SELECT place FROM ${source} WHERE position = seq)
     WHERE run_id = ? AND seq IN (SELECT position FROM ${source}) AND delivery_order IS NULL`,
    [places, runId.toWellFormed(), places]
  )
}

async function settle(sql: Sql, commit: TurnCommit, stored: StepCheckpoint[]): Promise<Row> {
  const { rekey } = commit.settle!
  const waiter = rekey && (await takeSignalWaiter(sql, rekey.from))
  if (waiter) await putSignalWaiter(sql, { ...waiter, token: rekey.to })
  const hit = await applyWaits(sql, commit, commit.settle!.looks ?? [], stored, true)
  const patch = settlePatch(commit)
  const columns = { ...patchColumns(patch), locked_by: null, locked_until: null }
  const written = hit ? { ...columns, wake_requested_at: commit.nowMs } : columns
  const id = commit.runId.toWellFormed()
  await sql.change(`UPDATE ${T.runs} SET ${assignments(written, patch)} WHERE id = ?`, [
    ...Object.values(written),
    id,
  ])
  await reindex(sql, id, patch)
  return written
}
