/*
 * A turn's commit on SQLite: one statement for one row or a bare settle, otherwise one statement a table
 * and kind of entry in a transaction that holds the write lock from its begin, so that what it read stays
 * true. Inside it entries simply follow one another.
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
import { batches } from './batches.ts'
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
  WAITER_COLUMNS,
  WAITER_TYPES,
  waiterColumns,
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
import {
  oldestOf,
  putSignalWaiter,
  removeSignalWaiter,
  REPLACE_WAITER,
  takeBufferedSignal,
  takeSignalWaiter,
} from './signals.ts'
import { applyExtras, hasExtras } from './turn_extras.ts'
import { childStates, completedBy, rowsAt, settlePatch, verdict } from './turn_verdict.ts'

export async function commitOnSqlite(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  const done = await commitAtOnce(session, commit)
  if (done) return verdict(done, true, [])
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

/** The run after a commit that one statement can make; undefined when it cannot, or nothing was written. */
async function commitAtOnce(sql: Sql, commit: TurnCommit): Promise<Row | undefined> {
  const { rows = [], stamps, waits, expiries, runs, children, settle: end } = commit
  const others = [stamps, waits, expiries, runs, children]
  if (end?.rekey || hasExtras(commit) || others.some((part) => part?.length)) return undefined
  if (!end) return rows.length === 1 ? writeOne(sql, commit, rows[0]) : undefined
  const indexes = 'searchAttributes' in end.patch
  return rows.length > 0 || end.looks?.length || indexes ? undefined : settleOnly(sql, commit)
}

async function settleOnly(sql: Sql, commit: TurnCommit): Promise<Row | undefined> {
  const patch = settlePatch(commit)
  const columns = { ...patchColumns(patch), locked_by: null, locked_until: null }
  const yields = refusedByIntent(commit.settle, { cancelRequestedAt: 0 })
  const [run] = await sql.run(
    `UPDATE ${T.runs} SET ${assignments(columns, patch)}
     WHERE ${HELD} ${yields ? 'AND cancel_requested_at IS NULL' : ''} RETURNING ${listed(MARKS)}`,
    [...Object.values(columns), ...heldValues(commit)]
  )
  return run
}

/** Lease check, write and verdict in one statement. */
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
  const rows = await sql.run(
    `UPDATE ${T.runs} SET awaited = 1 WHERE ${sqlite.isIn('id', 'text')}
     RETURNING id, status, output, error`,
    [sqlite.list(standing)]
  )
  return childStates(
    JSON.stringify(rows.map(({ id, status, output, error }) => [id, status, output, error]))
  )
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
  for (const batch of batches(writes, ({ row }) => [row.seq])) {
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
    hit ||= hits.length > 0
    await complete(sql, commit, hits, stored)
    if (look) continue
    if (settled.length > 0) {
      const seqs = settled.map(({ row }) => row.seq)
      stored.push(...(await rowsAt(sql, commit.runId, seqs)))
    }
    await register(sql, misses)
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
     FROM ${sqlite.jsonRows('w', { place: 'int', token: 'text', seq: 'int' })} ORDER BY w.place`,
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

async function complete(
  sql: Sql,
  commit: TurnCommit,
  hits: SignalWait[],
  stored: StepCheckpoint[]
): Promise<void> {
  const rows: StepCheckpoint[] = []
  for (const wait of hits) {
    const taken = await takeBufferedSignal(sql, wait.waiter.token)
    await removeSignalWaiter(sql, wait.waiter)
    rows.push(completedBy(wait, taken?.payload))
  }
  await writeRows(
    sql,
    commit,
    rows.map((row) => ({ row })),
    []
  )
  stored.push(...rows)
}

async function register(sql: Sql, waits: SignalWait[]): Promise<void> {
  if (waits.length === 0) return
  const columns = listed(WAITER_COLUMNS)
  await sql.run(
    `INSERT INTO ${T.signalWaiters} (${columns})
     SELECT ${columns} FROM ${sqlite.jsonRows('w', WAITER_TYPES)} WHERE true ${REPLACE_WAITER}`,
    [JSON.stringify(waits.map(({ waiter }) => compact(waiterColumns(waiter))))]
  )
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
async function insertRuns(sql: Sql, given: WorkflowRun[]): Promise<Set<unknown>> {
  const runs = eachOnce(given)
  if (runs.length === 0) return new Set()
  const born = await sql.run(
    `INSERT INTO ${T.runs} (${listed(RUN_COLUMNS)})
     SELECT ${listed(RUN_COLUMNS)} FROM ${sqlite.jsonRows('n', RUN_TYPES)} WHERE true
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [JSON.stringify(runs.map((run) => compact(runColumns(run))))]
  )
  const ids = new Set(born.map((row) => row.id))
  const attributes = runs.flatMap(attributeRows).filter((row) => ids.has(row.run_id))
  if (attributes.length === 0) return ids
  await sql.run(
    `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
     SELECT ${ATTRIBUTE_COLUMNS} FROM ${sqlite.jsonRows('a', ATTRIBUTE_TYPES)}`,
    [JSON.stringify(attributes)]
  )
  return ids
}

async function stamp(sql: Sql, runId: string, stamps: OrderStamp[]): Promise<void> {
  if (stamps.length === 0) return
  const first = new Map<number, number>()
  for (const { seq, order } of stamps) if (!first.has(seq)) first.set(seq, order)
  const places = JSON.stringify([...first].map(([position, place]) => ({ position, place })))
  const source = sqlite.jsonRows('s', { position: 'int', place: 'int' })
  await sql.run(
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
