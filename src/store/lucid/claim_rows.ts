/*
 * What the claims of every dialect share: what a claim writes, which runs it may take, what it answers.
 */
import type { RunStatus } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import type { Binding } from '../../sql/dialect.ts'
import { alsoInNamespace, FREE, inNamespace } from './due_runs.ts'
import { numberOf, readRun } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session } from '../../sql/session.ts'

export const CLAIM = `status = 'running', locked_by = ?, locked_until = ?, turns = coalesce(turns, 0) + 1,
  claimed_at = ?, wake_requested_at = NULL, wait_from = NULL, wait_to = NULL, updated_at = ?`

export const claimValues = (
  claim: Pick<RunClaim, 'owner' | 'leaseUntilMs' | 'nowMs'>
): Binding[] => [claim.owner.toWellFormed(), claim.leaseUntilMs, claim.nowMs, claim.nowMs]

/** Which run may be claimed, as it is now. */
export function claimable({ dialect }: Session, { runId, from, nowMs, namespace }: RunClaim) {
  const scope = inNamespace(namespace)
  return {
    text: `id = ? AND ${dialect.isIn('status', 'text')} AND ${FREE}${scope.text}`,
    bindings: [runId.toWellFormed(), dialect.list(from), nowMs, ...scope.bindings],
  }
}

export const claimedRun = (row: Row): ClaimedRun => ({
  run: readRun(row),
  previousStatus: row.was_status as RunStatus,
  previousTurns: numberOf(row.was_turns),
})

/** A claimed run and since when it was due. */
export interface Taken {
  claimed: ClaimedRun
  due: number
}

/** CTEs that end in `due(was_id, was_status, was_turns, was_due)`. */
export function dueRows({ dialect }: Session, claim: DueClaim, lock: string) {
  const { kind, nowMs, namespace, limit, exclude = [] } = claim
  const own = kind === 'pending' ? inNamespace : alsoInNamespace.bind(undefined, dialect)
  const scope = own(namespace)
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
  const asked = `${dialect.unindexed('status')} = 'suspended' AND wake_requested_at IS NOT NULL
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
