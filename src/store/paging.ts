/*
 * Reading much in pieces: by cursor, so that page n costs what page 1 does, and a list that shrinks while
 * it is read loses nothing. Where a fallback would read everything for every page, everything is read
 * once instead.
 */
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { CheckpointQuery, RunFilter, RunQuery } from '../types/query.ts'
import type { WorkflowRun } from '../types/run.ts'
import type { FullStore } from './full_store.ts'

const ROWS_A_PAGE = 500

type RowFilter = Omit<CheckpointQuery, 'offset' | 'limit' | 'descending'>

/** Where rows are read; a store that was completed says whether it has the query itself. */
export interface RowSource extends Pick<FullStore, 'queryCheckpoints'> {
  readonly capabilities?: Pick<FullStore['capabilities'], 'checkpointAggregates'>
}

/** Rows of one run, ascending by position. */
export async function* checkpointPages(
  store: RowSource,
  runId: string,
  filter: RowFilter
): AsyncGenerator<StepCheckpoint[]> {
  if (store.capabilities?.checkpointAggregates === false) {
    const rows = await store.queryCheckpoints(runId, filter)
    if (rows.length > 0) yield rows
    return
  }
  let fromSeq = filter.fromSeq
  for (;;) {
    const query = { ...filter, fromSeq, limit: ROWS_A_PAGE }
    const rows = await store.queryCheckpoints(runId, query)
    if (rows.length > 0) yield rows
    if (rows.length < ROWS_A_PAGE) return
    fromSeq = rows.at(-1)!.seq + 1
  }
}

/** Runs as they match when their page is read, newest first; a run that comes meanwhile is not seen. */
export async function* runPages(
  store: Pick<FullStore, 'listRuns'>,
  filter: RunFilter & Pick<RunQuery, 'before'>,
  size: number
): AsyncGenerator<WorkflowRun[]> {
  let before = filter.before
  for (;;) {
    const runs = await store.listRuns({ ...filter, before, page: 1, size })
    if (runs.length > 0) yield runs
    if (runs.length < size) return
    const last = runs.at(-1)!
    before = { createdAt: last.createdAt.getTime(), id: last.id }
  }
}
