/*
 * A turn's commit on SQLite: one statement for one row or a bare settle, otherwise one statement a table
 * and kind of entry in a transaction that holds the write lock from its begin, so that what it read stays
 * true. Inside it entries simply follow one another.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import {
  type OrderStamp,
  refusedByIntent,
  type RowWrite,
  type SignalWait,
  type TurnCommit,
  type TurnVerdict,
  type WaitExpiry,
} from '../ports/turn_commits.ts'
import { assigned, IS_LIVE, IS_SETTLED, REPLACED_COLUMNS } from './checkpoints.ts'
import { type Binding, sqlite } from './dialect.ts'
import {
  CHECKPOINT_COLUMNS,
  CHECKPOINT_TYPES,
  checkpointColumns,
  compact,
  listed,
  numberOf,
  RUN_COLUMNS,
  RUN_TYPES,
  runColumns,
} from './rows.ts'
import {
  ATTRIBUTE_COLUMNS,
  ATTRIBUTE_TYPES,
  assignments,
  attributeRows,
  patchColumns,
  reindex,
} from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session, Sql } from './session.ts'
import { putSignalWaiter, removeSignalWaiter, takeBufferedSignal } from './signals.ts'
import { completedBy, rowsAt, settlePatch, verdict } from './turn_verdict.ts'

export async function commitOnSqlite(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  const write = onlyRow(commit)
  if (write) {
    const done = await writeOne(session, commit, write)
    if (done) return verdict(done, true, [])
  }
  return session.atomically((sql) => commitAll(sql, commit))
}

const HELD = `id = ? AND locked_by = ? AND turns = ? AND ${IS_LIVE}`

const heldValues = ({ runId, owner, turn }: TurnCommit): Binding[] => [
  runId.toWellFormed(),
  owner.toWellFormed(),
  turn,
]

const COLUMNS = listed(CHECKPOINT_COLUMNS)
const UNLESS_SETTLED = `ON CONFLICT (run_id, seq) DO UPDATE SET ${assigned(REPLACED_COLUMNS, 'excluded')}
  WHERE NOT c.${IS_SETTLED}`
const RETRIES = `OR (c.status = 'failed' AND c.attempts = ?)`
const MARKS = ['status', 'wake_requested_at', 'cancel_requested_at', 'awaited']

/** The row of a commit that is nothing but one row. */
function onlyRow(commit: TurnCommit): RowWrite | undefined {
  const others = [commit.stamps, commit.waits, commit.expiries, commit.runs]
  if (commit.settle || others.some((part) => part?.length) || commit.rows?.length !== 1) {
    return undefined
  }
  return commit.rows[0]
}

/** Lease check, write and verdict in one statement; undefined when nothing was written. */
async function writeOne(sql: Sql, commit: TurnCommit, { row, retryOf }: RowWrite) {
  const columns = { ...checkpointColumns(row), run_id: commit.runId.toWellFormed() }
  const answers = MARKS.map(
    (mark) => `(SELECT r.${mark} FROM ${T.runs} r WHERE r.id = run_id) AS "run_${mark}"`
  )
  const [written] = await sql.run(
    `INSERT INTO ${T.checkpoints} AS c (${COLUMNS})
     SELECT ${CHECKPOINT_COLUMNS.map(() => '?').join(', ')} FROM ${T.runs} WHERE ${HELD}
     ${UNLESS_SETTLED} ${retryOf === undefined ? '' : RETRIES} RETURNING ${answers.join(', ')}`,
    [
      ...CHECKPOINT_COLUMNS.map((column) => columns[column as keyof typeof columns]),
      ...heldValues(commit),
      ...(retryOf === undefined ? [] : [retryOf]),
    ]
  )
  return written && Object.fromEntries(MARKS.map((mark) => [mark, written[`run_${mark}`]]))
}

async function commitAll(sql: Sql, commit: TurnCommit): Promise<TurnVerdict> {
  const run = await readHolder(sql, commit.runId)
  if (!run || !mayApply(run, commit)) return verdict(run, false, [])
  const stored: StepCheckpoint[] = []
  await writeRows(sql, commit, commit.rows ?? [], stored)
  for (const wait of commit.waits ?? []) {
    if (!(await settleByBuffer(sql, commit, wait, stored))) await putSignalWaiter(sql, wait.waiter)
  }
  await expire(sql, commit, commit.expiries ?? [], stored)
  await insertRuns(sql, commit)
  await stamp(sql, commit.runId, commit.stamps ?? [])
  const after = commit.settle ? await settle(sql, commit, stored) : {}
  return verdict({ ...run, ...after }, true, stored)
}

async function readHolder(sql: Sql, runId: string): Promise<Row | undefined> {
  const [run] = await sql.run(
    `SELECT locked_by, turns, ${listed(MARKS)}, ${IS_LIVE} AS live FROM ${T.runs} WHERE id = ?`,
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
  for (const batch of distinctPositions(writes)) {
    const retried = batch.filter((write) => write.retryOf !== undefined)
    const attempts = Object.fromEntries(retried.map(({ row, retryOf }) => [row.seq, retryOf]))
    const rows = batch.map(({ row }) => compact(checkpointColumns(row)))
    const columns = CHECKPOINT_COLUMNS.map((column) => (column === 'run_id' ? '?' : `r.${column}`))
    const retries =
      retried.length === 0
        ? ''
        : `OR (c.status = 'failed' AND c.attempts = json_extract(?, '$."' || c.seq || '"'))`
    const written = await sql.run(
      `INSERT INTO ${T.checkpoints} AS c (${COLUMNS})
       SELECT ${columns.join(', ')} FROM ${sqlite.jsonRows('r', CHECKPOINT_TYPES)} WHERE true
       ${UNLESS_SETTLED} ${retries} RETURNING seq`,
      [
        runId.toWellFormed(),
        JSON.stringify(rows),
        ...(retried.length === 0 ? [] : [JSON.stringify(attempts)]),
      ]
    )
    const done = new Set(written.map((row) => row.seq))
    const lost = batch.filter(({ row }) => !done.has(row.seq)).map(({ row }) => row.seq)
    if (lost.length > 0) stored.push(...(await rowsAt(sql, runId, lost)))
  }
}

/** Batches in which no position comes twice: of two rows for one position the later is written later. */
function distinctPositions(writes: RowWrite[]): RowWrite[][] {
  const batches: RowWrite[][] = []
  const seen = new Map<number, number>()
  for (const write of writes) {
    const index = seen.get(write.row.seq) ?? 0
    seen.set(write.row.seq, index + 1)
    if (batches[index]) batches[index].push(write)
    else batches[index] = [write]
  }
  return batches
}

/** True when nothing is left to wait for: the position is settled, before or by a buffered payload. */
async function settleByBuffer(
  sql: Sql,
  commit: TurnCommit,
  wait: SignalWait,
  stored: StepCheckpoint[]
): Promise<boolean> {
  if (await isSettled(sql, commit.runId, wait.row.seq)) {
    stored.push(...(await rowsAt(sql, commit.runId, [wait.row.seq])))
    return true
  }
  const taken = await takeBufferedSignal(sql, wait.waiter.token)
  if (!taken) return false
  const row = completedBy(wait, taken.payload)
  await writeRows(sql, commit, [{ row }], [])
  await removeSignalWaiter(sql, wait.waiter)
  stored.push(row)
  return true
}

async function isSettled(sql: Sql, runId: string, seq: number): Promise<boolean> {
  const rows = await sql.run(
    `SELECT seq FROM ${T.checkpoints} WHERE run_id = ? AND seq = ? AND ${IS_SETTLED}`,
    [runId.toWellFormed(), seq]
  )
  return rows.length > 0
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

async function insertRuns(sql: Sql, { runs = [] }: TurnCommit): Promise<void> {
  if (runs.length === 0) return
  const born = await sql.run(
    `INSERT INTO ${T.runs} (${listed(RUN_COLUMNS)})
     SELECT ${listed(RUN_COLUMNS)} FROM ${sqlite.jsonRows('n', RUN_TYPES)} WHERE true
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [JSON.stringify(runs.map((run) => compact(runColumns(run))))]
  )
  const ids = new Set(born.map((row) => row.id))
  const attributes = runs.flatMap(attributeRows).filter((row) => ids.has(row.run_id))
  if (attributes.length === 0) return
  await sql.run(
    `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
     SELECT ${ATTRIBUTE_COLUMNS} FROM ${sqlite.jsonRows('a', ATTRIBUTE_TYPES)}`,
    [JSON.stringify(attributes)]
  )
}

async function stamp(sql: Sql, runId: string, stamps: OrderStamp[]): Promise<void> {
  if (stamps.length === 0) return
  const first = new Map<number, number>()
  for (const { seq, order } of stamps) if (!first.has(seq)) first.set(seq, order)
  const rows = [...first].map(([position, place]) => ({ position, place }))
  await sql.run(
    `UPDATE ${T.checkpoints} SET delivery_order = place
     FROM ${sqlite.jsonRows('s', { position: 'int', place: 'int' })}
     WHERE run_id = ? AND seq = position AND delivery_order IS NULL`,
    [JSON.stringify(rows), runId.toWellFormed()]
  )
}

async function settle(sql: Sql, commit: TurnCommit, stored: StepCheckpoint[]): Promise<Row> {
  let hit = false
  for (const look of commit.settle!.looks ?? []) {
    if (!(await stands(sql, look)) || (await isSettled(sql, commit.runId, look.row.seq))) continue
    hit = (await settleByBuffer(sql, commit, look, stored)) || hit
  }
  const patch = settlePatch(commit)
  const columns = { ...patchColumns(patch), locked_by: null, locked_until: null }
  const written = hit ? { ...columns, wake_requested_at: commit.nowMs } : columns
  const id = commit.runId.toWellFormed()
  await sql.run(`UPDATE ${T.runs} SET ${assignments(written, patch)} WHERE id = ?`, [
    ...Object.values(written),
    id,
  ])
  if ('searchAttributes' in patch) {
    const { searchAttributes } = patch
    await reindex(sql, id, JSON.stringify(attributeRows({ id, searchAttributes })))
  }
  return written
}

async function stands(sql: Sql, { waiter }: SignalWait): Promise<boolean> {
  const rows = await sql.run(
    `SELECT token FROM ${T.signalWaiters} WHERE token = ? AND run_id = ? AND seq = ?`,
    [waiter.token.toWellFormed(), waiter.runId.toWellFormed(), waiter.seq]
  )
  return rows.length > 0
}
