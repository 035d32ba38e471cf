/*
 * Taking runs for a turn, and singleton admission: each a decision and its write in one synchronous turn,
 * so there is one winner (invariant 1).
 */
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import { isLeased, wantedNamespace } from '../ports/run_rules.ts'
import type { SingletonClaim, SingletonVerdict } from '../ports/singleton_claims.ts'
import { singletonAdmissionDenialPatch, singletonAdmissionTags } from '../ports/singleton_rules.ts'
import type { StoredRun } from './columns.ts'
import { decodeRun } from './run_table.ts'
import type { Tables } from './tables.ts'

export function claimRun(tables: Tables, claim: RunClaim): ClaimedRun | null {
  const run = tables.runs.get(claim.runId)
  if (!run || !claim.from.includes(run.status) || !isFree(run, claim)) return null
  return take(tables, run, claim)
}

export function claimDueRuns(tables: Tables, claim: DueClaim): ClaimedRun[] {
  const excluded = new Set(claim.exclude)
  const free = (run: StoredRun) => !excluded.has(run.id) && isFree(run, claim)
  const found =
    claim.kind === 'pending'
      ? tables.queries.pending(claim.limit, free)
      : tables.queries.due(claim.nowMs, claim.limit, free, { blocked: true })
  return found.map((run) => take(tables, run, claim))
}

function isFree(run: StoredRun, claim: { nowMs: number; namespace?: string }): boolean {
  const namespace = wantedNamespace(claim.namespace)
  return (namespace === undefined || run.namespace === namespace) && !isLeased(run, claim.nowMs)
}

function take(
  tables: Tables,
  run: StoredRun,
  { owner, leaseUntilMs, nowMs }: Omit<RunClaim, 'runId' | 'from'>
): ClaimedRun {
  const [previousStatus, previousTurns] = [run.status, run.turns]
  tables.runs.patch(run.id, {
    status: 'running',
    lockedBy: owner,
    lockedUntil: leaseUntilMs,
    turns: (previousTurns ?? 0) + 1,
    claimedAt: new Date(nowMs),
    wakeRequestedAt: undefined,
    waitSeqs: undefined,
    updatedAt: new Date(nowMs),
  })
  return { run: tables.runs.read(run.id)!, previousStatus, previousTurns }
}

export function tryAdmitSingleton(tables: Tables, claim: SingletonClaim): SingletonVerdict {
  const own = tables.runs.read(claim.runId)
  if (!own) return { admitted: false, status: null }
  const tags = singletonAdmissionTags(keyed(tables, claim.tag), claim)
  if (tags) {
    if (tags.length !== own.tags?.length) tables.runs.patch(own.id, { tags })
    return { admitted: true }
  }
  const denial = singletonAdmissionDenialPatch(own, claim)
  if (denial) tables.runs.patch(own.id, denial)
  const status: RunStatus = denial?.status ?? own.status
  return { admitted: false, status }
}

function keyed(tables: Tables, tag: string): WorkflowRun[] {
  return [...tables.runs.withTag(tag)]
    .map((id) => tables.runs.get(id)!)
    .filter(({ status }) => !isTerminalStatus(status))
    .map(decodeRun)
}
