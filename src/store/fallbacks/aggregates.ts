/*
 * Fallback of the aggregates: listings, counted here. Facets over values read a bounded page.
 */
import type { RunQuery } from '../../types/query.ts'
import { RUN_VALUE_FACET_SCAN, type Aggregates } from '../ports/aggregates.ts'
import { aggregateRows, rowTimes, selectRows } from '../ports/checkpoint_rules.ts'
import { countFacets, countValues } from '../ports/run_rules.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function aggregates(store: CompleteRoles): Aggregates {
  return {
    async countRuns(query) {
      const runs = await store.listRuns(unpaged(query))
      return runs.length
    },

    async runFacets(query) {
      return countFacets(await store.listRuns(unpaged(query)))
    },

    async runValueFacets(axis, query, options) {
      const scan = { ...unpaged(query), page: 1, size: RUN_VALUE_FACET_SCAN }
      const newest = await store.listRuns(scan)
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

/** A count covers every page. */
function unpaged(query: RunQuery): RunQuery {
  const { page, size, before, ...filter } = query
  return filter
}
