/*
 * Fallback of the run filters that came later: a store without `commitTurn` may be written against the
 * older query and would ignore them, so they are applied here, on the listing of the rest.
 */
import { compareText } from '../../foundation/versions.ts'
import { runPageWindow, type RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { RunRows } from '../ports/runs.ts'

const LATER = ['before', 'idPrefix', 'updatedAfter'] as const satisfies (keyof RunQuery)[]

export const usesLaterFilters = (query: RunQuery): boolean =>
  LATER.some((filter) => query[filter] !== undefined)

export async function listFiltered(
  store: Pick<RunRows, 'listRuns'>,
  query: RunQuery
): Promise<WorkflowRun[]> {
  const { before, idPrefix, updatedAfter, page, size, ...rest } = query
  const runs = await store.listRuns(rest)
  const { limit, offset } = runPageWindow({ page, size })
  return runs
    .filter((run) => idPrefix === undefined || (idPrefix !== '' && run.id.startsWith(idPrefix)))
    .filter((run) => updatedAfter === undefined || run.updatedAt.getTime() > updatedAfter)
    .filter((run) => before === undefined || comesAfter(run, before))
    .slice(offset, limit === undefined ? undefined : offset + limit)
}

/** Newest first, ties by id descending. */
function comesAfter(run: WorkflowRun, cursor: { createdAt: number; id: string }): boolean {
  const order = run.createdAt.getTime() - cursor.createdAt || compareText(run.id, cursor.id)
  return order < 0
}
