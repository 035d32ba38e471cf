/*
 * Claims on MySQL and MariaDB. Neither answers the rows of an UPDATE, so what a run was travels in the
 * number that LAST_INSERT_ID(…) hands back with the write itself, and the row is read afterwards: under the
 * lease just taken only this owner's turn changes what it will need.
 */
import type { RunStatus } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import { CLAIM, claimable, claimedRun, claimValues, dueRows, type Taken } from './claim_rows.ts'
import { FREE } from './due_runs.ts'
import { listed, numberOf, RUN_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session } from '../../sql/session.ts'

const STATUSES: RunStatus[] = [
  'pending',
  'running',
  'suspended',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'dead',
]

/** Status and turn of the run as one number; assignments run from left to right, so it comes first. */
const BEFORE = `field(status, ${STATUSES.map((status) => `'${status}'`).join(', ')})
  + 16 * coalesce(turns + 1, 0)`
const CLAIM_TELLING = CLAIM.replace(
  `status = 'running'`,
  `status = if(last_insert_id(${BEFORE}) IS NULL, status, 'running')`
)

const SELECT = `SELECT ${listed(RUN_COLUMNS)} FROM ${T.runs}`

/** `seen`: only while its turn is still this one. */
export async function claimOnMysql(
  session: Session,
  claim: RunClaim,
  seen?: { turns: number | null }
): Promise<ClaimedRun | null> {
  const { text, bindings } = claimable(session, claim)
  const { rows, id } = await session.change(
    `UPDATE ${T.runs} SET ${CLAIM_TELLING} WHERE ${text}${seen ? ' AND turns <=> ?' : ''}`,
    [...claimValues(claim), ...bindings, ...(seen ? [seen.turns] : [])]
  )
  if (rows === 0) return null
  const turns = Math.floor(id! / 16)
  const was = { was_status: STATUSES[(id! % 16) - 1], was_turns: turns === 0 ? null : turns - 1 }
  const [row] = await session.run(`${SELECT} WHERE id = ? AND locked_by = ? AND turns = ?`, [
    claim.runId.toWellFormed(),
    claim.owner.toWellFormed(),
    Math.max(turns, 1),
  ])
  // Gone, or taken over: a lease that short is nobody's.
  return row ? claimedRun({ ...row, ...was, ...CLEARED }) : null
}

/** What the claim wrote, whatever others asked for since. */
const CLEARED = { status: 'running', wake_requested_at: null, wait_from: null, wait_to: null }

export async function takeOnMysql(session: Session, claim: DueClaim): Promise<Taken[]> {
  const due = dueRows(session, claim, '')
  const seen = await session.run(`WITH ${due.text} SELECT * FROM due`, due.bindings)
  if (seen.length === 0) return []
  if (seen.length === 1) return takeOne(session, claim, seen[0])
  const bySeen = new Map(seen.map((row) => [String(row.was_id), row]))
  return session.atomically(async (sql) => {
    const rows = await sql.run(
      `${SELECT} WHERE ${sql.dialect.isIn('id', 'text')} AND ${FREE} ORDER BY id ${sql.dialect.skipLocked}`,
      [sql.dialect.list([...bySeen.keys()]), claim.nowMs]
    )
    const same = rows.filter((row) => isAsSeen(row, bySeen.get(String(row.id))))
    if (same.length === 0) return []
    await sql.change(`UPDATE ${T.runs} SET ${CLAIM} WHERE ${sql.dialect.isIn('id', 'text')}`, [
      ...claimValues(claim),
      sql.dialect.list(same.map((row) => String(row.id))),
    ])
    return same.map((row) => taken(claim, row, bySeen.get(String(row.id))!))
  })
}

const isAsSeen = (row: Row, seen: Row | undefined): boolean =>
  row.status === seen?.was_status && numberOf(row.turns) === numberOf(seen?.was_turns)

/** The claim as applied to a row that was locked when it was read. */
function taken({ owner, leaseUntilMs, nowMs }: DueClaim, row: Row, seen: Row): Taken {
  const turns = (numberOf(row.turns) ?? 0) + 1
  const lease = { locked_by: owner.toWellFormed(), locked_until: leaseUntilMs }
  const after = {
    ...row,
    ...seen,
    ...CLEARED,
    ...lease,
    turns,
    claimed_at: nowMs,
    updated_at: nowMs,
  }
  return { claimed: claimedRun(after), due: numberOf(seen.was_due) ?? 0 }
}

async function takeOne(session: Session, claim: DueClaim, seen: Row): Promise<Taken[]> {
  const { owner, leaseUntilMs, nowMs, namespace } = claim
  const from = [seen.was_status as RunStatus]
  const runId = String(seen.was_id)
  const claimed = await claimOnMysql(
    session,
    { runId, owner, leaseUntilMs, nowMs, namespace, from },
    { turns: numberOf(seen.was_turns) ?? null }
  )
  return claimed ? [{ claimed, due: numberOf(seen.was_due) ?? 0 }] : []
}
