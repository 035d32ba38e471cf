/*
 * Fallback of singleton admission: a scan, then a decision. Not atomic: processes may briefly admit more
 * than the limit, so the engine warns once.
 */
import { LIVE_RUN_STATUSES, isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { byAge } from '../ports/run_rules.ts'
import type { SingletonClaim, SingletonClaims } from '../ports/singleton_claims.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function singletonClaims(store: CompleteRoles): SingletonClaims {
  return {
    async tryAdmitSingleton(claim) {
      const own = await store.getRun(claim.runId)
      if (!own || isTerminalStatus(own.status)) {
        return { admitted: false, status: own?.status ?? null }
      }
      if (await isAmongOldest(store, own, claim)) return { admitted: true }
      const parked = await store.updateRunIf(own.id, [...LIVE_RUN_STATUSES], {
        status: 'suspended',
        wakeAt: claim.retryAt,
        updatedAt: new Date(claim.nowMs),
      })
      if (parked) return { admitted: false, status: 'suspended' }
      const now = await store.getRun(own.id)
      return { admitted: false, status: now?.status ?? null }
    },
  }
}

async function isAmongOldest(
  store: CompleteRoles,
  own: WorkflowRun,
  { workflow, tag, limit }: SingletonClaim
): Promise<boolean> {
  const rows = await store.listRuns({ workflow, tag, statuses: ['running', 'suspended'] })
  // A store may not filter by tag: check again.
  const begun = rows.filter((run) => run.id !== own.id && run.tags?.includes(tag))
  const oldest = [...begun, own].sort(byAge).slice(0, limit)
  return oldest.includes(own)
}
