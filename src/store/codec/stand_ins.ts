/*
 * What the wrapper answers for members that its inner store lacks, on rows as they are stored: payloads
 * are decoded afterwards, and only of the rows that are answered.
 */
import { StoreCapabilityError } from '../../errors.ts'
import { compareText } from '../../foundation/versions.ts'
import type { RunFilter, RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { RUN_VALUE_FACET_SCAN } from '../ports/aggregates.ts'
import { hasPrefix } from '../ports/checkpoint_rules.ts'
import { countValues, isLeased } from '../ports/run_rules.ts'
import type { OptionalRoles, StateStore } from '../state_store.ts'

export type StandIns = Pick<
  OptionalRoles,
  | 'ensureSchema'
  | 'close'
  | 'transaction'
  | 'getLatestCheckpointByName'
  | 'listCheckpointsByNamePrefix'
  | 'listSignalWaitersByRunIds'
  | 'countRuns'
  | 'runValueFacets'
  | 'listOrphanedRuns'
  | 'recordStepHeartbeat'
>

export function standIns(inner: StateStore): StandIns {
  return {
    async ensureSchema() {},
    async close() {},
    async recordStepHeartbeat() {},

    async transaction() {
      throw new StoreCapabilityError(
        'transaction() needs a store with transactions; the one behind this CodecStateStore has none'
      )
    },

    async getLatestCheckpointByName(runId, name) {
      const rows = await inner.listCheckpoints(runId)
      return rows.findLast((row) => row.name === name)
    },

    async listCheckpointsByNamePrefix(runId, prefixes) {
      if (prefixes.length === 0) return []
      const rows = await inner.listCheckpoints(runId)
      return rows.filter((row) => hasPrefix(row.name, prefixes))
    },

    async listSignalWaitersByRunIds(runIds) {
      if (runIds.length === 0) return []
      const wanted = new Set(runIds)
      const waiters = await inner.listSignalWaiters('')
      return waiters.filter((waiter) => wanted.has(waiter.runId))
    },

    async countRuns(query) {
      const runs = await inner.listRuns(unpaged(query))
      return runs.length
    },

    async runValueFacets(axis, query, options) {
      const scan = { ...unpaged(query), page: 1, size: RUN_VALUE_FACET_SCAN }
      return countValues(axis, await inner.listRuns(scan), options)
    },

    async listOrphanedRuns(nowMs, namespace, limit) {
      const runs = await inner.listIncompleteRuns(namespace)
      return runs
        .filter((run) => !isLeased(run, nowMs))
        .sort((a, b) => leaseEnd(a) - leaseEnd(b) || compareText(a.id, b.id))
        .slice(0, limit)
    },
  }
}

const leaseEnd = (run: WorkflowRun): number => run.lockedUntil ?? Number.NEGATIVE_INFINITY

/** A count covers every page. */
function unpaged(query: RunQuery): RunFilter {
  const { page, size, before, ...filter } = query
  return filter
}
