/*
 * Listings and counts over the run table: picks the narrowest index a query allows, filters, then orders
 * and pages. Namespaces are applied before any limit.
 */
import { compareText } from '../../foundation/versions.ts'
import {
  runPageWindow,
  type RunFacetQuery,
  type RunFacetRow,
  type RunQuery,
  type RunValueAxis,
  type RunValueFacetOptions,
  type RunValueFacetRow,
} from '../../types/query.ts'
import { LIVE_RUN_STATUSES, TERMINAL_RUN_STATUSES, type RunStatus } from '../../types/run.ts'
import { matchesAttribute } from '../ports/attribute_rules.ts'
import {
  countFacets,
  countValues,
  dueSince,
  isBlankOrigin,
  isLeased,
  wantedNamespace,
  type FacetSource,
} from '../ports/run_rules.ts'
import type { StoredRun } from './columns.ts'
import { tagsOf, type RunTable } from './run_table.ts'
import type { SortedEntry } from './sorted_set.ts'

const ALL_STATUSES: RunStatus[] = [...LIVE_RUN_STATUSES, ...TERMINAL_RUN_STATUSES]

export class RunQueries {
  readonly #runs: RunTable
  /** How many runs the last attribute index read named. */
  lastAttributeCandidates = 0

  constructor(runs: RunTable) {
    this.#runs = runs
  }

  /** One page, newest first unless asked for the oldest. */
  list(query: RunQuery): StoredRun[] {
    const { limit, offset } = runPageWindow(query)
    const page: StoredRun[] = []
    let skipped = 0
    if (limit === 0) return page
    const found = this.matching(query)
    for (const run of query.oldestFirst ? [...found].reverse() : found) {
      if (skipped++ < offset) continue
      page.push(run)
      if (page.length === limit) break
    }
    return page
  }

  /** Every run that matches, newest first. */
  *matching(query: RunQuery): Generator<StoredRun> {
    for (const run of this.#candidates(query)) {
      if (matchesRun(run, query)) yield run
    }
  }

  count(query: RunQuery): number {
    return [...this.matching(query)].length
  }

  facets(query: RunFacetQuery): RunFacetRow[] {
    return countFacets(this.matching(query))
  }

  valueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): RunValueFacetRow[] {
    return countValues(axis, [...this.matching(query)].map(facetSource), options)
  }

  /** Pending runs, oldest first. */
  pending(limit: number, accept: (run: StoredRun) => boolean): StoredRun[] {
    return this.#take(this.#runs.ofStatus('pending').ascending(), limit, accept)
  }

  /** Cancelled runs that still carry their mark, oldest first. */
  unfinishedCancels(limit: number | undefined, accept: (run: StoredRun) => boolean): StoredRun[] {
    return this.#take(this.#runs.unfinishedCancels.ascending(), limit, accept)
  }

  /** Live runs past their deadline that nobody cancels yet, earliest deadline first. */
  overdue(
    nowMs: number,
    limit: number | undefined,
    accept: (run: StoredRun) => boolean
  ): StoredRun[] {
    const passed = until(this.#runs.deadlines.ascending(), nowMs)
    const wanted = (run: StoredRun) => run.cancelRequestedAt === undefined && accept(run)
    return this.#take(passed, limit, wanted)
  }

  /** Running runs, oldest first. */
  running(accept: (run: StoredRun) => boolean): StoredRun[] {
    return this.#take(this.#runs.ofStatus('running').ascending(), undefined, accept)
  }

  /** Running runs nobody holds, oldest lease first. */
  orphaned(
    nowMs: number,
    limit: number | undefined,
    accept: (run: StoredRun) => boolean
  ): StoredRun[] {
    return this.running((run) => !isLeased(run, nowMs) && accept(run))
      .sort((a, b) => leaseEnd(a) - leaseEnd(b) || compareText(a.id, b.id))
      .slice(0, limit)
  }

  /** Due runs, most overdue first; blocked ones only when asked for. */
  due(
    nowMs: number,
    limit: number | undefined,
    accept: (run: StoredRun) => boolean,
    options: { blocked?: boolean } = {}
  ): StoredRun[] {
    const { timers, requests } = this.#runs
    const passed = (run: StoredRun) => run.wakeAt !== undefined && run.wakeAt <= nowMs
    const blocked = options.blocked ? until(timers.blocked.ascending(), nowMs) : []
    return [
      ...this.#take(until(timers.suspended.ascending(), nowMs), limit, accept),
      // Those whose deadline passed as well were found by it.
      ...this.#take(requests.ascending(), limit, (run) => !passed(run) && accept(run)),
      ...this.#take(blocked, limit, accept),
    ]
      .sort((a, b) => dueSince(a, nowMs)! - dueSince(b, nowMs)! || compareText(a.id, b.id))
      .slice(0, limit)
  }

  #take(
    entries: Iterable<SortedEntry>,
    limit: number | undefined,
    accept: (run: StoredRun) => boolean
  ): StoredRun[] {
    const taken: StoredRun[] = []
    if (limit !== undefined && limit <= 0) return taken
    for (const { id } of entries) {
      const run = this.#runs.get(id)
      if (!run || !accept(run)) continue
      taken.push(run)
      if (taken.length === limit) break
    }
    return taken
  }

  /** A superset of what matches, newest first. */
  *#candidates(query: RunQuery): Generator<StoredRun> {
    const ids = this.#narrowed(query)
    if (ids) {
      const runs = [...ids].map((id) => this.#runs.get(id)!)
      yield* runs.sort((a, b) => b.createdAt - a.createdAt || compareText(b.id, a.id))
      return
    }
    const statuses = ALL_STATUSES.filter((status) => allowsStatus(status, query))
    const before = query.before && { key: query.before.createdAt, id: query.before.id }
    const sources = statuses.map((status) => this.#runs.ofStatus(status).descending(before))
    for (const { id } of newestFirst(sources)) yield this.#runs.get(id)!
  }

  #narrowed(query: RunQuery): Iterable<string> | undefined {
    if (query.attributes && query.attributes.length > 0) return this.#byAttributes(query)
    return query.tag === undefined ? undefined : this.#runs.withTag(query.tag)
  }

  #byAttributes(query: RunQuery): string[] {
    const [first, ...others] = query.attributes!
    const ids: string[] = []
    for (const [id, value] of this.#runs.withAttribute(first.key)) {
      if (!matchesAttribute(value, first)) continue
      const all = others.every((filter) =>
        matchesAttribute(this.#runs.withAttribute(filter.key).get(id), filter)
      )
      if (all) ids.push(id)
    }
    this.lastAttributeCandidates = ids.length
    return ids
  }
}

/** Every predicate of a query but its attributes. */
function matchesRun(run: StoredRun, query: RunQuery): boolean {
  if (!allowsStatus(run.status, query)) return false
  if (query.workflow !== undefined && run.workflow !== query.workflow) return false
  const namespace = wantedNamespace(query.namespace)
  if (namespace !== undefined && run.namespace !== namespace) return false
  if (query.idPrefix !== undefined) {
    if (query.idPrefix === '' || !run.id.startsWith(query.idPrefix)) return false
  }
  if (query.origin !== undefined && !matchesOrigin(run.origin, query.origin)) return false
  if (query.tag !== undefined && !tagsOf(run).includes(query.tag)) return false
  return matchesTimes(run, query)
}

function matchesTimes(run: StoredRun, query: RunQuery): boolean {
  const { createdBefore, createdAfter, updatedBefore, updatedAfter, wakeBefore, before } = query
  if (createdBefore !== undefined && !(run.createdAt < createdBefore)) return false
  if (createdAfter !== undefined && !(run.createdAt > createdAfter)) return false
  if (updatedBefore !== undefined && !(run.updatedAt < updatedBefore)) return false
  if (updatedAfter !== undefined && !(run.updatedAt > updatedAfter)) return false
  if (wakeBefore !== undefined && !(run.wakeAt !== undefined && run.wakeAt <= wakeBefore)) {
    return false
  }
  if (!before) return true
  if (run.createdAt !== before.createdAt) return run.createdAt < before.createdAt
  return compareText(run.id, before.id) < 0
}

const matchesOrigin = (origin: string | undefined, wanted: string | null): boolean =>
  wanted === null ? isBlankOrigin(origin) : !isBlankOrigin(wanted) && origin === wanted

const allowsStatus = (status: RunStatus, query: RunQuery): boolean =>
  (query.status === undefined || query.status === status) &&
  (query.statuses === undefined || query.statuses.includes(status))

const leaseEnd = (run: StoredRun): number =>
  run.lockedBy === undefined ? -Infinity : (run.lockedUntil ?? -Infinity)

const facetSource = (run: StoredRun): FacetSource => ({
  status: run.status,
  workflow: run.workflow,
  workflowVersion: run.workflowVersion,
  namespace: run.namespace,
  origin: run.origin,
  tags: tagsOf(run),
  searchAttributes:
    run.searchAttributes === undefined ? undefined : JSON.parse(run.searchAttributes),
})

function* until(entries: Iterable<SortedEntry>, key: number): Generator<SortedEntry> {
  for (const entry of entries) {
    if (entry.key > key) return
    yield entry
  }
}

/** Merges descending sources into one. */
function* newestFirst(sources: Iterator<SortedEntry>[]): Generator<SortedEntry> {
  const heads = sources.map((source) => ({ source, next: source.next() }))
  for (;;) {
    const open = heads.filter((head) => !head.next.done)
    if (open.length === 0) return
    const newest = open.reduce((best, head) => {
      const [a, b] = [head.next.value as SortedEntry, best.next.value as SortedEntry]
      return (a.key - b.key || compareText(a.id, b.id)) > 0 ? head : best
    })
    yield newest.next.value as SortedEntry
    newest.next = newest.source.next()
  }
}
