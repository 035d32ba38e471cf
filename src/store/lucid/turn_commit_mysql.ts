/*
 * A turn's commit on MySQL and MariaDB: one script for what an ordinary turn writes, which applies while
 * nothing is in the way of it; the long way when something is, or when entries meet.
 */
import type { WorkflowRun } from '../../types/run.ts'
import type { TurnCommit, TurnVerdict } from '../ports/turn_commits.ts'
import { ATTRIBUTE_COLUMNS, type AttributeRow, attributeRows, reindexing } from './attributes.ts'
import { IS_LIVE } from './checkpoints.ts'
import { type Binding, mysql } from '../../sql/dialect.ts'
import { nothingBuffered, payloadsLie, positionsOpen, waiterStands } from './mysql_checks.ts'
import { columnsOf, puttingRows, puttingWaiters, sizeOf } from './row_writes.ts'
import { listed, RUN_COLUMNS, runColumns } from './rows.ts'
import { assignments, patchColumns } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import { runScript, type Script, type Statement } from './scripts.ts'
import type { Session, Sql } from '../../sql/session.ts'
import { exactWaiter, readPayload, REMOVE_WAITER } from './signals.ts'
import { type CommitStep, commitSteps, distinctWaits } from './turn_commit_steps.ts'
import { commitAll, MARKS } from './turn_commit_locked.ts'
import { hasExtras } from './turn_extras.ts'
import { completedBy, settlePatch, verdict } from './turn_verdict.ts'
import { isDuplicate } from './writes.ts'

/** Larger ones go in several packets. */
const MOST_BYTES = 2_000_000
const ATTEMPTS = 3

export async function commitOnMysql(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  const short = await commitAtOnce(session, commit)
  if (short) return short
  for (let tries = 1; ; tries++) {
    try {
      return await session.atomically((sql) => commitAll(sql, commit))
    } catch (error) {
      // Somebody inserted one of the runs after we looked for it.
      if (tries === ATTEMPTS || !isDuplicate(session, error)) throw error
    }
  }
}

/** Undefined when something was in the way, or would be. */
async function commitAtOnce(
  session: Session,
  commit: TurnCommit
): Promise<TurnVerdict | undefined> {
  const [step, ...others] = commitSteps(commit)
  if (others.length > 0 || hasExtras(commit)) return undefined
  const verdictOf = await tryOnce(session, step, new Map())
  if (verdictOf) return verdictOf
  const lying = await readBuffered(session, step)
  return lying.size > 0 ? tryOnce(session, step, lying) : undefined
}

/** A buffered payload that completes a wait. */
interface Lying {
  id: string
  payload: unknown
}

/** Of each wait, by position, the oldest payload of its token. */
async function readBuffered(sql: Sql, step: CommitStep): Promise<Map<number, Lying>> {
  const waits = distinctWaits(step)
  if (waits.length === 0) return new Map()
  const rows = await sql.run(
    `SELECT id, token, payload FROM ${T.bufferedSignals} WHERE id IN (
       SELECT min(id) FROM ${T.bufferedSignals} WHERE token IN (?) GROUP BY token)`,
    [waits.map(({ waiter }) => waiter.token.toWellFormed())]
  )
  const byToken = new Map(rows.map((row) => [row.token, row]))
  const lying = new Map<number, Lying>()
  for (const { waiter, row } of waits) {
    const found = byToken.get(waiter.token.toWellFormed())
    if (!found) continue
    const id = String(found.id)
    lying.set(row.seq, { id, payload: readPayload(found.payload, id) })
  }
  return lying
}

async function tryOnce(
  session: Session,
  step: CommitStep,
  lying: Map<number, Lying>
): Promise<TurnVerdict | undefined> {
  const { script, after, stored } = commitScript(step, lying)
  const bytes = script.writes.reduce((sum, { bindings }) => sum + sizeOf(bindings.flat(2)), 0)
  if (bytes > MOST_BYTES) return undefined
  try {
    const outcome = await runScript(session, script)
    if (!outcome.held) return verdict(outcome.row, false, [])
    if (!outcome.applied) return undefined
    const done = verdict({ ...outcome.row, ...after }, true, stored)
    return { ...done, ...(step.children ? { children: [] } : {}) }
  } catch (error) {
    if (isDuplicate(session, error)) return undefined
    throw error
  }
}

function commitScript(step: CommitStep, lying: Map<number, Lying>) {
  const { rows = [], expiries = [], stamps = [], children = [], runs = [], settle } = step
  const runId = step.runId.toWellFormed()
  const waits = distinctWaits(step)
  const taking = waits.filter(({ row }) => lying.has(row.seq))
  const missing = waits.filter(({ row }) => !lying.has(row.seq))
  const registered = missing.filter(({ look }) => !look)
  const looks = taking.filter(({ look }) => look)
  const stored = taking.map((wait) => completedBy(wait, lying.get(wait.row.seq)!.payload))
  // What a position waits for says nothing once it has what it waited for.
  const own = [...rows, ...expiries].filter(({ row }) => !lying.has(row.seq))
  const completed = stored.map((row) => ({ row }))
  const positions = [...own, ...completed, ...registered.map(({ row }) => ({ row }))]
  const born = [...runs, ...children]
  const end = settle ? settling(step, looks.length > 0) : { writes: [], after: {} }
  const gone = [...expiries, ...taking].map(({ waiter }) => waiter)
  const clear: Statement[] = []
  if (looks.length > 0) clear.push(...looks.map(({ waiter }) => waiterStands(waiter)))
  if (positions.length > 0) clear.push(positionsOpen(runId, positions))
  if (missing.length > 0) clear.push(nothingBuffered(missing.map(({ waiter }) => waiter.token)))
  if (taking.length > 0) clear.push(payloadsLie([...lying.values()].map(({ id }) => id)))
  const writes: Statement[] = gone.map((waiter) => ({
    text: REMOVE_WAITER,
    bindings: exactWaiter(waiter),
  }))
  if (registered.length > 0) {
    const waiters = registered.map(({ waiter }) => waiter)
    writes.push(puttingWaiters(mysql, waiters))
  }
  writes.push(...puttingRows(mysql, columnsOf(runId, [...own, ...completed])))
  if (taking.length > 0) writes.push(dropping([...lying.values()].map(({ id }) => id)))
  if (born.length > 0) writes.push(inserting(born))
  writes.push(...indexing(born.flatMap(attributeRows)))
  if (stamps.length > 0) writes.push(stamping(runId, stamps))
  writes.push(...end.writes)
  return { script: { hold: holding(step), clear, writes }, after: end.after, stored }
}

const dropping = (ids: string[]): Statement => ({
  text: `DELETE FROM ${T.bufferedSignals} WHERE id IN (?)`,
  bindings: [ids],
})

function holding({ runId, owner, turn, yieldsToCancel }: CommitStep): Script['hold'] {
  const conditions = [
    'locked_by = ?',
    'turns = ?',
    IS_LIVE,
    ...(yieldsToCancel ? ['cancel_requested_at IS NULL'] : []),
  ]
  return {
    held: {
      text: `coalesce(${conditions.join(' AND ')}, 0)`,
      bindings: [owner.toWellFormed(), turn],
    },
    answers: Object.fromEntries(MARKS.map((mark) => [mark, mark])),
    from: { text: `FROM ${T.runs} WHERE id = ? FOR UPDATE`, bindings: [runId.toWellFormed()] },
  }
}

/** In key order, as everybody locks. */
function inserting(runs: WorkflowRun[]): Statement {
  const values = runs
    .map((run) => runColumns(run))
    .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
    .map((columns) => RUN_COLUMNS.map((column) => columns[column]))
  return { text: `INSERT INTO ${T.runs} (${listed(RUN_COLUMNS)}) VALUES ?`, bindings: [values] }
}

function indexing(attributes: AttributeRow[]): Statement[] {
  if (attributes.length === 0) return []
  const values = attributes.map((row) => [
    row.run_id,
    row.key,
    row.str_value ?? null,
    row.num_value ?? null,
    row.created_at,
  ])
  return [
    { text: `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS}) VALUES ?`, bindings: [values] },
  ]
}

function stamping(runId: string, stamps: NonNullable<CommitStep['stamps']>): Statement {
  const places: Binding[] = stamps.flatMap(({ seq, order }) => [seq, order])
  return {
    text: `UPDATE ${T.checkpoints}
      SET delivery_order = CASE seq ${stamps.map(() => 'WHEN ? THEN ?').join(' ')} END
      WHERE run_id = ? AND seq IN (?) AND delivery_order IS NULL`,
    bindings: [...places, runId, stamps.map(({ seq }) => seq)],
  }
}

function settling(step: CommitStep, wakes: boolean): { writes: Statement[]; after: object } {
  const { rekey } = step.settle!
  const id = step.runId.toWellFormed()
  const patch = settlePatch(step)
  const ended = { ...patchColumns(patch), locked_by: null, locked_until: null }
  const after = wakes ? { ...ended, wake_requested_at: step.nowMs } : ended
  const writes: Statement[] = []
  // Fails when somebody waits on the new token already: the long way replaces that waiter.
  if (rekey) {
    writes.push({
      text: `UPDATE ${T.signalWaiters} SET token = ? WHERE token = ?`,
      bindings: [rekey.to.toWellFormed(), rekey.from.toWellFormed()],
    })
  }
  writes.push({
    text: `UPDATE ${T.runs} SET ${assignments(after, patch)} WHERE id = ?`,
    bindings: [...Object.values(after), id],
  })
  writes.push(...reindexing(mysql, id, patch))
  return { writes, after }
}
