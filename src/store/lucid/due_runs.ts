/*
 * The lists that polls read: running, pending, due, orphaned and overdue runs. A namespace is part of
 * the condition, so that a limit counts only rows that are wanted; due runs come from two indexes, merged here.
 */
import { LIVE_RUN_STATUSES, type WorkflowRun } from '../../types/run.ts'
import { compareText } from '../../foundation/versions.ts'
import { dueSince, wantedNamespace } from '../ports/run_rules.ts'
import type { Binding, Dialect } from '../../sql/dialect.ts'
import { listed, readRun, RUN_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T, LEASE_END, LIVE, RUNS_BY_DEADLINE } from './schema/tables.ts'
import type { Session } from '../../sql/session.ts'

const SELECT = `SELECT ${listed(RUN_COLUMNS)} FROM ${T.runs} WHERE`

export const FREE = '(locked_by IS NULL OR locked_until IS NULL OR locked_until <= ?)'

/** Condition and binding of an optional namespace. */
export function inNamespace(namespace: string | undefined): { text: string; bindings: Binding[] } {
  const wanted = wantedNamespace(namespace)?.toWellFormed()
  return wanted === undefined
    ? { text: '', bindings: [] }
    : { text: ' AND namespace = ?', bindings: [wanted] }
}

/** The same where a time leads to the rows. */
export function alsoInNamespace(dialect: Dialect, namespace: string | undefined) {
  const { text, bindings } = inNamespace(namespace)
  return { text: text.replace('namespace', dialect.unindexed('namespace')), bindings }
}

export async function listIncompleteRuns(
  session: Session,
  namespace?: string
): Promise<WorkflowRun[]> {
  const scope = inNamespace(namespace)
  const rows = await session.run(
    `${SELECT} status = 'running'${scope.text} ORDER BY created_at, id`,
    scope.bindings
  )
  return rows.map(readRun)
}

export async function listPendingRuns(
  session: Session,
  limit: number,
  namespace?: string
): Promise<WorkflowRun[]> {
  if (limit <= 0) return []
  const scope = inNamespace(namespace)
  const rows = await session.run(
    `${SELECT} status = 'pending'${scope.text} ORDER BY created_at, id LIMIT ?`,
    [...scope.bindings, limit]
  )
  return rows.map(readRun)
}

export async function listDueTimers(
  session: Session,
  nowMs: number,
  namespace?: string,
  limit?: number
): Promise<WorkflowRun[]> {
  if (limit !== undefined && limit <= 0) return []
  const { dialect } = session
  const scope = alsoInNamespace(dialect, namespace)
  const page = limit === undefined ? '' : ' LIMIT ?'
  const tail: Binding[] = [...scope.bindings, ...(limit === undefined ? [] : [limit])]
  const branch = (status: string, condition: string, order: string) =>
    `SELECT * FROM (${SELECT} ${status} = 'suspended' AND ${condition}${scope.text}
     ORDER BY ${order}, id${page}) AS branch`
  const passed = branch('status', 'wake_at <= ?', 'wake_at')
  const requested = 'wake_requested_at'
  const asked = branch(dialect.unindexed('status'), `${requested} IS NOT NULL`, requested)
  // One OR would be served by neither index. A row that both branches find comes once: UNION.
  const rows = await session.run(`${passed} UNION ${asked}`, [nowMs, ...tail, ...tail])
  return rows
    .map(readRun)
    .sort((a, b) => dueSince(a, nowMs)! - dueSince(b, nowMs)! || compareText(a.id, b.id))
    .slice(0, limit)
}

export async function listOrphanedRuns(
  session: Session,
  nowMs: number,
  namespace?: string,
  limit?: number
): Promise<WorkflowRun[]> {
  if (limit !== undefined && limit <= 0) return []
  const { dialect } = session
  const scope = alsoInNamespace(dialect, namespace)
  const page = limit === undefined ? '' : ' LIMIT ?'
  if (dialect.name === 'mysql') return orphansByBranch(session, nowMs, scope, limit)
  const rows = await session.run(
    `${SELECT} status = 'running' AND ${LEASE_END} <= ?${scope.text}
     ORDER BY ${LEASE_END}, id${page}`,
    [nowMs, ...scope.bindings, ...(limit === undefined ? [] : [limit])]
  )
  return rows.map(readRun)
}

/** Without an index over the end of a lease: what somebody held too long, and what nobody holds. */
async function orphansByBranch(
  session: Session,
  nowMs: number,
  scope: { text: string; bindings: Binding[] },
  limit: number | undefined
): Promise<WorkflowRun[]> {
  const page = limit === undefined ? '' : ' LIMIT ?'
  const tail: Binding[] = [...scope.bindings, ...(limit === undefined ? [] : [limit])]
  const branch = (condition: string, order: string) =>
    `SELECT * FROM (${SELECT} status = 'running' AND ${condition}${scope.text}
     ORDER BY ${order}id${page}) AS branch`
  const lapsed = branch('locked_until <= ? AND locked_by IS NOT NULL', 'locked_until, ')
  const endless = branch('locked_until IS NULL AND locked_by IS NOT NULL', '')
  const unheld = branch('locked_by IS NULL', '')
  const rows = await session.run(`${lapsed} UNION ALL ${endless} UNION ALL ${unheld}`, [
    nowMs,
    ...tail,
    ...tail,
    ...tail,
  ])
  const leaseEnd = ({ lockedBy, lockedUntil }: WorkflowRun) =>
    lockedBy === undefined ? 0 : (lockedUntil ?? 0)
  return rows
    .map(readRun)
    .sort((a, b) => leaseEnd(a) - leaseEnd(b) || compareText(a.id, b.id))
    .slice(0, limit)
}

export async function listUnfinishedCancels(
  session: Session,
  namespace?: string,
  limit?: number
): Promise<WorkflowRun[]> {
  if (limit !== undefined && limit <= 0) return []
  const { dialect } = session
  const scope = alsoInNamespace(dialect, namespace)
  const page = limit === undefined ? '' : ' LIMIT ?'
  const rows = await session.run(
    `${SELECT} cancel_requested_at IS NOT NULL AND ${dialect.unindexed('status')} = 'cancelled'${scope.text}
     ORDER BY cancel_requested_at, id${page}`,
    [...scope.bindings, ...(limit === undefined ? [] : [limit])]
  )
  return rows.map(readRun)
}

export async function listOverdueRuns(
  session: Session,
  nowMs: number,
  namespace?: string,
  limit?: number
): Promise<WorkflowRun[]> {
  if (limit !== undefined && limit <= 0) return []
  const { dialect } = session
  const scope = alsoInNamespace(dialect, namespace)
  const page = limit === undefined ? '' : ' LIMIT ?'
  const tail: Binding[] = [nowMs, ...scope.bindings, ...(limit === undefined ? [] : [limit])]
  const overdue = (from: string, status: string) =>
    `SELECT ${listed(RUN_COLUMNS)} FROM ${from}
     WHERE deadline_at <= ? AND ${status} AND cancel_requested_at IS NULL${scope.text}
     ORDER BY deadline_at, id${page}`
  if (dialect.name !== 'mysql') {
    // SQLite takes the few that are live for fewer than those that are late.
    const index = dialect.name === 'sqlite' ? ` INDEXED BY ${RUNS_BY_DEADLINE}` : ''
    const rows = await session.run(overdue(`${T.runs}${index}`, LIVE), tail)
    return rows.map(readRun)
  }
  // The status comes first in the index.
  const branches = LIVE_RUN_STATUSES.map(
    (status) => `SELECT * FROM (${overdue(T.runs, `status = '${status}'`)}) AS branch`
  )
  const rows = await session.run(
    branches.join(' UNION ALL '),
    branches.flatMap(() => tail)
  )
  return rows
    .map(readRun)
    .sort((a, b) => a.deadlineAt! - b.deadlineAt! || compareText(a.id, b.id))
    .slice(0, limit)
}
