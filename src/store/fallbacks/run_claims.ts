/*
 * Fallback of taking a run: lease, read, conditional flip, and the lease given back when that fails. A
 * batch is a listing whose runs are claimed one by one, in order.
 */
import { PayloadCodecError } from '../../errors.ts'
import { bestEffort, hasCode } from '../../foundation/failure.ts'
import { compareText } from '../../foundation/versions.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim, RunClaims } from '../ports/run_claims.ts'
import { dueSince, storedNamespace, wantedNamespace } from '../ports/run_rules.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function runClaims(store: CompleteRoles): RunClaims {
  return {
    async claimRun(claim) {
      const { runId, owner, leaseUntilMs, nowMs } = claim
      if (!(await store.tryLockRun(runId, owner, leaseUntilMs, nowMs))) return null
      try {
        const claimed = await flip(store, claim)
        if (!claimed) await store.releaseRunLock(runId, owner)
        return claimed
      } catch (error) {
        await bestEffort('the lease runs out by itself', store.releaseRunLock(runId, owner))
        throw error
      }
    },

    async claimDueRuns(claim) {
      const excluded = new Set(claim.exclude)
      const claimed: ClaimedRun[] = []
      let unreadable: Error | undefined
      if (claim.limit <= 0) return claimed
      // Runs that others hold take places in a listing: look further until there is nothing further.
      for (let size = claim.limit + excluded.size; ; size *= 2) {
        const found = await listDue(store, claim, size)
        for (const run of found) {
          if (excluded.has(run.id)) continue
          excluded.add(run.id)
          try {
            const taken = await store.claimRun({ ...claim, runId: run.id, from: [run.status] })
            if (taken) claimed.push(taken)
          } catch (error) {
            // It was let go again; the runs behind it must not wait for its key.
            if (!hasCode(error, PayloadCodecError.code)) throw error
            unreadable ??= error
          }
          if (claimed.length === claim.limit) return claimed
        }
        if (found.length < size) break
      }
      if (unreadable && claimed.length === 0) throw unreadable
      return claimed
    },
  }
}

async function flip(store: CompleteRoles, claim: RunClaim): Promise<ClaimedRun | null> {
  const run = await store.getRun(claim.runId)
  if (!run || !claim.from.includes(run.status)) return null
  const namespace = wantedNamespace(claim.namespace)
  if (namespace !== undefined && storedNamespace(run.namespace) !== namespace) return null
  const now = new Date(claim.nowMs)
  const patch = {
    status: 'running',
    turns: (run.turns ?? 0) + 1,
    claimedAt: now,
    updatedAt: now,
    wakeRequestedAt: undefined,
    waitSeqs: undefined,
  } satisfies Partial<WorkflowRun>
  if (!(await store.updateRunIf(run.id, [run.status], patch))) return null
  const { wakeRequestedAt, waitSeqs, ...rest } = run
  return {
    run: {
      ...rest,
      status: 'running',
      turns: patch.turns,
      claimedAt: now,
      updatedAt: now,
      lockedBy: claim.owner,
      lockedUntil: claim.leaseUntilMs,
    },
    previousStatus: run.status,
    previousTurns: run.turns,
  }
}

async function listDue(
  store: CompleteRoles,
  { kind, nowMs, namespace }: DueClaim,
  size: number
): Promise<WorkflowRun[]> {
  if (kind === 'pending') return store.listPendingRuns(size, namespace)
  const suspended = await store.listDueTimers(nowMs, namespace, size)
  const blocked = await store.listRuns({
    statuses: ['blocked'],
    wakeBefore: nowMs,
    ...(namespace === undefined ? {} : { namespace }),
  })
  const overdue = (run: WorkflowRun) => dueSince(run, nowMs) ?? nowMs
  return [...suspended, ...blocked]
    .sort((a, b) => overdue(a) - overdue(b) || compareText(a.id, b.id))
    .slice(0, size)
}
