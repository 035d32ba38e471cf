/*
 * Fallback of the aggregates: listings, counted here. Facets over values read a bounded page.
 */
import { RUN_VALUE_FACET_SCAN, type Aggregates } from '../ports/aggregates.ts'
import { aggregateRows, rowTimes, selectRows } from '../ports/checkpoint_rules.ts'
import { countFacets, countValues } from '../ports/run_rules.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function aggregates(store: CompleteRoles): Aggregates {
  return {
    async countRuns(query) {
      const runs = await store.listRuns(query)
      return runs.length
    },

    async runFacets(query) {
      return countFacets(await store.listRuns(query))
    },

    async runValueFacets(axis, query, options) {
      const newest = await store.listRuns({ ...query, page: 1, size: RUN_VALUE_FACET_SCAN })
      return countValues(axis, newest, options)
    },

    async checkpointStats(runId) {
      const rows = await store.listCheckpoints(runId)
      return aggregateRows(rows.map(rowTimes))
    },

    async queryCheckpoints(runId, query) {
      return selectRows(await store.listCheckpoints(runId), query)
    },
  }
}
