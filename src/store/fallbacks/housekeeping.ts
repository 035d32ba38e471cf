/*
 * Fallback of housekeeping. Expired events stay (their readers skip them) and beats are not kept.
 */
import { compareText } from '../../foundation/versions.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { Housekeeping } from '../ports/housekeeping.ts'
import { isLeased } from '../ports/run_rules.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function housekeeping(store: CompleteRoles): Housekeeping {
  return {
    async deleteRuns(runIds) {
      let gone = 0
      for (const runId of new Set(runIds)) {
        if (await store.getRun(runId)) gone += 1
        await store.deleteRun(runId)
      }
      return gone
    },

    async deleteRunsIf(runIds, statuses) {
      const runs = await store.getRuns(runIds)
      const fitting = runs.filter(({ status }) => statuses.includes(status)).map(({ id }) => id)
      await store.deleteRuns(fitting)
      return fitting
    },

    /** Nothing tells what is buffered but taking it, token by token. */
    async listBufferedTokens() {
      return []
    },

    async dropBufferedSignals(tokens) {
      for (const token of new Set(tokens)) {
        while (await store.takeBufferedSignal(token));
      }
    },

    async pruneBufferedEvents() {
      return 0
    },

    async listOrphanedRuns(nowMs, namespace, limit) {
      const runs = await store.listIncompleteRuns(namespace)
      return runs
        .filter((run) => !isLeased(run, nowMs))
        .sort((a, b) => leaseEnd(a) - leaseEnd(b) || compareText(a.id, b.id))
        .slice(0, limit)
    },

    /** Without an index over the mark a pass would read every cancelled run there ever was. */
    async listUnfinishedCancels() {
      return []
    },

    /** Not asked for: whoever wants them judges runs by their age (capabilities.overdueRuns). */
    async listOverdueRuns() {
      return []
    },

    async recordStepHeartbeat() {},
  }
}

const leaseEnd = (run: WorkflowRun): number => run.lockedUntil ?? Number.NEGATIVE_INFINITY
