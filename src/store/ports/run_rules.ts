/*
 * What stores must agree on about run rows: leases, when a run is due, the default namespace, blank
 * origins, and the counting behind the facets. Pure; every store and every fallback reads it from here.
 */
import { compareText } from '../../foundation/versions.ts'
import type {
  RunFacetRow,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'

/** Where a run without a namespace belongs. */
export const DEFAULT_NAMESPACE = 'default'

/** The namespace a row keeps. */
export const storedNamespace = (namespace: string | null | undefined): string =>
  namespace || DEFAULT_NAMESPACE

/** The namespace a read is narrowed to; an empty one means none. */
export const wantedNamespace = (namespace: string | undefined): string | undefined =>
  namespace || undefined

/** True while somebody holds the run. */
export const isLeased = (
  run: Pick<WorkflowRun, 'lockedBy' | 'lockedUntil'>,
  nowMs: number
): boolean => run.lockedBy !== undefined && run.lockedUntil !== undefined && run.lockedUntil > nowMs

/**
 * Since when a parked run is due, or undefined when it is not: its `wakeAt` once that passed, otherwise,
 * of a suspended one, its wake request.
 */
export function dueSince(
  run: Pick<WorkflowRun, 'status' | 'wakeAt' | 'wakeRequestedAt'>,
  nowMs: number
): number | undefined {
  if (run.status !== 'suspended' && run.status !== 'blocked') return undefined
  if (run.wakeAt !== undefined && run.wakeAt <= nowMs) return run.wakeAt
  return run.status === 'suspended' ? run.wakeRequestedAt : undefined
}

/** True for an origin that counts as none. */
export const isBlankOrigin = (origin: string | null | undefined): boolean =>
  origin === undefined || origin === null || origin.trim() === ''

/** True for tags that belong to the engine and are no value of the tag facet. */
export const isReservedTag = (tag: string): boolean => tag.startsWith('durable:')

/** Oldest first; ties by id. */
export const byAge = (
  a: Pick<WorkflowRun, 'createdAt' | 'id'>,
  b: Pick<WorkflowRun, 'createdAt' | 'id'>
): number => a.createdAt.getTime() - b.createdAt.getTime() || compareText(a.id, b.id)

/** What the facets read of a run. */
export interface FacetSource {
  status: RunStatus
  workflow: string
  workflowVersion: string
  namespace?: string
  origin?: string
  tags?: string[]
  searchAttributes?: Record<string, unknown>
}

/** Counts by `(status, origin)`, in the order in which the cells first appear. */
export function countFacets(runs: Iterable<Pick<FacetSource, 'status' | 'origin'>>): RunFacetRow[] {
  const cells = new Map<string, RunFacetRow>()
  for (const run of runs) {
    const origin = isBlankOrigin(run.origin) ? null : (run.origin as string)
    const key = `${run.status}\n${origin ?? ''}`
    const cell = cells.get(key)
    if (cell) cell.count += 1
    else cells.set(key, { status: run.status, origin, count: 1 })
  }
  return [...cells.values()]
}

/** The values one run contributes to an axis, each once. */
export function axisValues(axis: RunValueAxis, run: FacetSource): string[] {
  switch (axis) {
    case 'tag':
      return tagValues(run.tags)
    case 'attributeKey':
      return Object.keys(run.searchAttributes ?? {})
    case 'origin':
      return isBlankOrigin(run.origin) ? [] : [run.origin as string]
    case 'namespace':
      return [storedNamespace(run.namespace)]
    case 'workflow':
    case 'workflowVersion':
      return [run[axis]]
  }
}

/** The tags a run contributes, each once, without those of the engine. */
export const tagValues = (tags: string[] | undefined): string[] =>
  [...new Set(tags ?? [])].filter((tag) => !isReservedTag(tag))

/** Counts one axis over runs; see `rankValues`. */
export function countValues(
  axis: RunValueAxis,
  runs: Iterable<FacetSource>,
  options?: RunValueFacetOptions
): RunValueFacetRow[] {
  return countEach(
    Array.from(runs, (run) => axisValues(axis, run)),
    options
  )
}

/** Counts the values that runs contribute; see `rankValues`. */
export function countEach(
  contributions: string[][],
  options?: RunValueFacetOptions
): RunValueFacetRow[] {
  const counts = new Map<string, number>()
  for (const value of contributions.flat()) counts.set(value, (counts.get(value) ?? 0) + 1)
  return rankValues(
    [...counts].map(([value, count]) => ({ value, count })),
    options
  )
}

/** Values containing `search` (whatever its case), highest count first, then by value, up to `limit`. */
export function rankValues(
  rows: RunValueFacetRow[],
  options: RunValueFacetOptions = {}
): RunValueFacetRow[] {
  const search = options.search?.toLowerCase()
  return rows
    .filter((row) => search === undefined || row.value.toLowerCase().includes(search))
    .sort((a, b) => b.count - a.count || compareText(a.value, b.value))
    .slice(0, options.limit)
}
