/*
 * Role: aggregates for listings and run detail. Optional.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type {
  CheckpointQuery,
  CheckpointStats,
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'

/** Rows a value-facet scan may read when the axis cannot be grouped. */
export const RUN_VALUE_FACET_SCAN = 5000

export interface Aggregates {
  countRuns(query: RunFilter): Promise<number>
  /** By `(status, origin)`; blank origins count as null; no zero cells. */
  runFacets(query: RunFacetQuery): Promise<RunFacetRow[]>
  /** Distinct values of one axis, highest count first, then by value. */
  runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]>
  /** With `queryCheckpoints` or not at all. */
  checkpointStats(runId: string): Promise<CheckpointStats>
  queryCheckpoints(runId: string, query: CheckpointQuery): Promise<StepCheckpoint[]>
}
