/*
 * Leases and claims: each one conditional write, so that of several takers one wins (invariant 1). Time
 * comes from the caller. A claim also tells what the run was: Postgres reads that under the row lock of the
 * same statement; SQLite looks first and makes the write depend on what it saw.
 */
import { compareText } from '../../foundation/versions.ts'
import type { RunStatus } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import type { Binding } from './dialect.ts'
import { FREE, inNamespace } from './due_runs.ts'
import { listed, numberOf, readRun, RUN_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session } from './session.ts'

const CLAIM = `status = 'running', locked_by = ?, locked_until = ?, turns = coalesce(turns, 0) + 1,
  claimed_at = ?, wake_requested_at = NULL, wait_from = NULL, wait_to = NULL, updated_at = ?`

const claimValues = (claim: Pick<RunClaim, 'owner' | 'leaseUntilMs' | 'nowMs'>): Binding[] => [
  claim.owner.toWellFormed(),
  claim.leaseUntilMs,
  claim.nowMs,
  claim.nowMs,
]

export async function tryLockRun(
  session: Session,
  runId: string,
  owner: string,
  leaseUntilMs: number,
  nowMs: number
): Promise<boolean> {
  const rows = await session.run(
    `UPDATE ${T.runs} SET locked_by = ?, locked_until = ? WHERE id = ? AND ${FREE} RETURNING id`,
    [owner.toWellFormed(), leaseUntilMs, runId.toWellFormed(), nowMs]
  )
  return rows.length > 0
}

export async function renewRunLock(
  session: Session,
  runId: string,
  owner: string,
  leaseUntilMs: number
): Promise<boolean> {
  const rows = await session.run(
    `UPDATE ${T.runs} SET locked_until = ? WHERE id = ? AND locked_by = ? RETURNING id`,
    [leaseUntilMs, runId.toWellFormed(), owner.toWellFormed()]
  )
  return rows.length > 0
}

export async function releaseRunLock(
  session: Session,
  runId: string,
  owner?: string
): Promise<void> {
  const release = `UPDATE ${T.runs} SET locked_by = NULL, locked_until = NULL WHERE id = ?`
  if (owner === undefined) await session.run(release, [runId.toWellFormed()])
  else
    await session.run(`${release} AND locked_by = ?`, [runId.toWellFormed(), owner.toWellFormed()])
}

const LOOKS = 4

export async function claimRun(session: Session, claim: RunClaim): Promise<ClaimedRun | null> {
  if (claim.from.length === 0) return null
  return session.dialect.name === 'postgres'
    ? claimOnPostgres(session, claim)
    : claimOnSqlite(session, claim)
}

/** Which run may be claimed, as it is now. */
function claimable({ dialect }: Session, { runId, from, nowMs, namespace }: RunClaim) {
  const scope = inNamespace(namespace)
  return {
    text: `id = ? AND ${dialect.isIn('status', 'text')} AND ${FREE}${scope.text}`,
    bindings: [runId.toWellFormed(), dialect.list(from), nowMs, ...scope.bindings],
  }
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

const claimedRun = (row: Row): ClaimedRun => ({
  run: readRun(row),
  previousStatus: row.was_status as RunStatus,
  previousTurns: numberOf(row.was_turns),
})

/** A claimed run and since when it was due. */
interface Taken {
  claimed: ClaimedRun
  due: number
}

export async function claimDueRuns(session: Session, claim: DueClaim): Promise<ClaimedRun[]> {
  if (claim.limit <= 0) return []
  const taken =
    session.dialect.name === 'postgres'
      ? await takeOnPostgres(session, claim)
      : await takeOnSqlite(session, claim)
  return taken
    .sort((a, b) => a.due - b.due || compareText(a.claimed.run.id, b.claimed.run.id))
    .map(({ claimed }) => claimed)
}

/** CTEs that end in `due(was_id, was_status, was_turns, was_due)`. */
function dueRows({ dialect }: Session, claim: DueClaim, lock: string) {
  const { kind, nowMs, namespace, limit, exclude = [] } = claim
  const scope = inNamespace(namespace)
  if (exclude.length > 0) {
    scope.text += ` AND ${dialect.isNotIn('id', 'text')}`
    scope.bindings.push(dialect.list(exclude.map((id) => id.toWellFormed())))
  }
  const branch = (condition: string, due: string) => `
    SELECT id AS was_id, status AS was_status, turns AS was_turns, ${due} AS was_due FROM ${T.runs}
    WHERE ${condition} AND ${FREE}${scope.text} ORDER BY ${due}, id LIMIT ? ${lock}`
  const tail: Binding[] = [nowMs, ...scope.bindings, limit]
  if (kind === 'pending') {
    return { text: `due AS (${branch(`status = 'pending'`, 'created_at')})`, bindings: tail }
  }
  const asked = `status = 'suspended' AND wake_requested_at IS NOT NULL
    AND (wake_at IS NULL OR wake_at > ?)`
  return {
    text: `passed AS (${branch(`status = 'suspended' AND wake_at <= ?`, 'wake_at')}),
      asked AS (${branch(asked, 'wake_requested_at')}),
      blocked AS (${branch(`status = 'blocked' AND wake_at <= ?`, 'wake_at')}),
      due AS (SELECT * FROM passed UNION ALL SELECT * FROM asked UNION ALL SELECT * FROM blocked
              ORDER BY was_due, was_id LIMIT ?)`,
    bindings: [nowMs, ...tail, nowMs, ...tail, nowMs, ...tail, limit],
  }
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
