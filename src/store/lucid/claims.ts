/*
 * Leases and claims: each one conditional write, so that of several takers one wins (invariant 1). Time
 * comes from the caller. A claim also tells what the run was: Postgres reads that under the row lock of the
 * same statement; SQLite looks first and makes the write depend on what it saw; MySQL has a file of its own.
 */
import { compareText } from '../../foundation/versions.ts'
import type { RunStatus } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import { CLAIM, claimable, claimedRun, claimValues, dueRows, type Taken } from './claim_rows.ts'
import { claimOnMysql, takeOnMysql } from './claims_mysql.ts'
import { FREE } from './due_runs.ts'
import { listed, numberOf, RUN_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session } from '../../sql/session.ts'

export async function tryLockRun(
  session: Session,
  runId: string,
  owner: string,
  leaseUntilMs: number,
  nowMs: number,
  from?: RunStatus[]
): Promise<boolean> {
  const { dialect } = session
  const live = from ? ` AND ${dialect.isIn('status', 'text')}` : ''
  const { rows } = await session.change(
    `UPDATE ${T.runs} SET locked_by = ?, locked_until = ? WHERE id = ? AND ${FREE}${live}`,
    [
      owner.toWellFormed(),
      leaseUntilMs,
      runId.toWellFormed(),
      nowMs,
      ...(from ? [dialect.list(from)] : []),
    ]
  )
  return rows > 0
}

export async function renewRunLock(
  session: Session,
  runId: string,
  owner: string,
  leaseUntilMs: number
): Promise<boolean> {
  const { rows } = await session.change(
    `UPDATE ${T.runs} SET locked_until = ? WHERE id = ? AND locked_by = ?`,
    [leaseUntilMs, runId.toWellFormed(), owner.toWellFormed()]
  )
  return rows > 0
}

export async function releaseRunLock(
  session: Session,
  runId: string,
  owner?: string
): Promise<void> {
  const release = `UPDATE ${T.runs} SET locked_by = NULL, locked_until = NULL WHERE id = ?`
  if (owner === undefined) await session.change(release, [runId.toWellFormed()])
  else
    await session.change(`${release} AND locked_by = ?`, [
      runId.toWellFormed(),
      owner.toWellFormed(),
    ])
}

const LOOKS = 4

export async function claimRun(session: Session, claim: RunClaim): Promise<ClaimedRun | null> {
  if (claim.from.length === 0) return null
  if (session.dialect.name === 'mysql') return claimOnMysql(session, claim)
  return session.dialect.name === 'postgres'
    ? claimOnPostgres(session, claim)
    : claimOnSqlite(session, claim)
}

async function claimOnPostgres(session: Session, claim: RunClaim): Promise<ClaimedRun | null> {
  const { text, bindings } = claimable(session, claim)
  const [row] = await session.run(
    `UPDATE ${T.runs} r SET ${CLAIM}
     FROM (SELECT id AS was_id, status AS was_status, turns AS was_turns FROM ${T.runs}
           WHERE ${text} FOR NO KEY UPDATE) was
     WHERE r.id = was.was_id RETURNING ${listed(RUN_COLUMNS, 'r')}, was_status, was_turns`,
    [...claimValues(claim), ...bindings]
  )
  return row ? claimedRun(row) : null
}

async function claimOnSqlite(session: Session, claim: RunClaim): Promise<ClaimedRun | null> {
  const { text, bindings } = claimable(session, claim)
  for (let look = 0; look < LOOKS; look++) {
    const [was] = await session.run(
      `SELECT status AS was_status, turns AS was_turns FROM ${T.runs} WHERE ${text}`,
      bindings
    )
    if (!was) return null
    const [row] = await session.run(
      `UPDATE ${T.runs} SET ${CLAIM}
       WHERE id = ? AND status = ? AND turns IS ? AND ${FREE} RETURNING ${listed(RUN_COLUMNS)}`,
      [
        ...claimValues(claim),
        claim.runId.toWellFormed(),
        String(was.was_status),
        numberOf(was.was_turns) ?? null,
        claim.nowMs,
      ]
    )
    if (row) return claimedRun({ ...row, ...was })
  }
  return null
}

export async function claimDueRuns(session: Session, claim: DueClaim): Promise<ClaimedRun[]> {
  if (claim.limit <= 0) return []
  const taken = await TAKE_ON[session.dialect.name](session, claim)
  return taken
    .sort((a, b) => a.due - b.due || compareText(a.claimed.run.id, b.claimed.run.id))
    .map(({ claimed }) => claimed)
}

async function takeOnPostgres(session: Session, claim: DueClaim): Promise<Taken[]> {
  const due = dueRows(session, claim, 'FOR NO KEY UPDATE SKIP LOCKED')
  const rows = await session.run(
    `WITH ${due.text}
     UPDATE ${T.runs} r SET ${CLAIM} FROM due WHERE r.id = due.was_id
     RETURNING ${listed(RUN_COLUMNS, 'r')}, was_status, was_turns, was_due`,
    [...due.bindings, ...claimValues(claim)]
  )
  return rows.map((row) => ({ claimed: claimedRun(row), due: numberOf(row.was_due) ?? 0 }))
}

const SEEN = { was_id: 'text', was_status: 'text', was_turns: 'int' } as const

async function takeOnSqlite(session: Session, claim: DueClaim): Promise<Taken[]> {
  const due = dueRows(session, claim, '')
  const seen = await session.run(`WITH ${due.text} SELECT * FROM due`, due.bindings)
  if (seen.length === 0) return []
  const rows = await session.run(
    `UPDATE ${T.runs} SET ${CLAIM} FROM ${session.dialect.jsonRows('seen', SEEN)}
     WHERE id = was_id AND status = was_status AND turns IS was_turns AND ${FREE}
     RETURNING ${listed(RUN_COLUMNS)}`,
    [...claimValues(claim), JSON.stringify(seen), claim.nowMs]
  )
  const before = new Map(seen.map((row) => [row.was_id, row]))
  return rows.map((row) => {
    const was = before.get(row.id)!
    return { claimed: claimedRun({ ...row, ...was }), due: Number(was.was_due) }
  })
}

const TAKE_ON = { postgres: takeOnPostgres, sqlite: takeOnSqlite, mysql: takeOnMysql }
