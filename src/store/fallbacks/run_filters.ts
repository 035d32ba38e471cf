/*
 * Fallback of the run filters that came later: a store without `commitTurn` may be written against the
 * older query and would ignore them, so they are applied here, on the listing of the rest.
 */
import { compareText } from '../../foundation/versions.ts'
import { runPageWindow, type RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { RunRows } from '../ports/runs.ts'

const LATER = [
  'before',
  'idPrefix',
  'updatedAfter',
  'oldestFirst',
] as const satisfies (keyof RunQuery)[]

export const usesLaterFilters = (query: RunQuery): boolean =>
  LATER.some((filter) => query[filter] !== undefined)

/** Runs read at a time, at least; each further read doubles it. */
const ROWS_A_READ = 100

export async function listFiltered(
  store: Pick<RunRows, 'listRuns'>,
  query: RunQuery
): Promise<WorkflowRun[]> {
  const { before, idPrefix, updatedAfter, oldestFirst, page, size, createdBefore, ...rest } = query
  const { limit, offset } = runPageWindow({ page, size })
  const fits = (run: WorkflowRun) =>
    (idPrefix === undefined || (idPrefix !== '' && run.id.startsWith(idPrefix))) &&
    (updatedAfter === undefined || run.updatedAt.getTime() > updatedAfter) &&
    (before === undefined || comesAfter(run, before))
  const filter: RunQuery = rest
  // What follows a cursor was created no later: the store skips what precedes it.
  const bounds = [createdBefore, before && before.createdAt + 1].filter(
    (each) => each !== undefined
  )
  if (bounds.length > 0) filter.createdBefore = Math.min(...bounds)
  if (limit === undefined || oldestFirst) {
    const listed = await store.listRuns(filter)
    const all = listed.filter(fits)
    if (oldestFirst) all.reverse()
    return limit === undefined ? all : all.slice(offset, offset + limit)
  }
  const wanted = offset + limit
  for (let take = Math.max(wanted, ROWS_A_READ); ; take *= 2) {
    const runs = await store.listRuns({ ...filter, page: 1, size: take })
    const found = runs.filter(fits)
    if (found.length >= wanted || runs.length < take) return found.slice(offset, wanted)
  }
}

/** Newest first, ties by id descending. */
function comesAfter(run: WorkflowRun, cursor: { createdAt: number; id: string }): boolean {
  const order = run.createdAt.getTime() - cursor.createdAt || compareText(run.id, cursor.id)
  return order < 0
}
