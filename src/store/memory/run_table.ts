/*
 * Run rows and their indexes: by status and age (pending polls, listings), by wake time and by wake request
 * (due polls: what is not due is never looked at), by execution timeout, by tag, by attribute. Owns every change of a run row,
 * so that no index is ever behind.
 */
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../types/run.ts'
import { attributeEntries } from '../ports/attribute_rules.ts'
import { DuplicateRunError } from '../../errors.ts'
import { isLeased, storedNamespace } from '../ports/run_rules.ts'
import { withoutSingletonMarkers } from '../ports/singleton_rules.ts'
import { decodeRow, encodeRow, patchRow, RUN_COLUMNS, type StoredRun } from './columns.ts'
import { SortedSet } from './sorted_set.ts'

/** Columns that always have a value: an `undefined` in a patch leaves them alone. */
const ALWAYS_SET = ['workflow', 'workflowVersion', 'status', 'createdAt', 'updatedAt'] as const

export class RunTable {
  readonly #rows = new Map<string, StoredRun>()
  readonly #byStatus = new Map<RunStatus, SortedSet>()
  readonly #byTag = new Map<string, Set<string>>()
  readonly #byAttribute = new Map<string, Map<string, string | number>>()
  /** Suspended and blocked runs by `wakeAt`. */
  readonly timers = { suspended: new SortedSet(), blocked: new SortedSet() }
  /** Suspended runs by `wakeRequestedAt`. */
  readonly requests = new SortedSet()
  /** Cancelled runs whose children were not told yet, by when they were cancelled. */
  readonly unfinishedCancels = new SortedSet()

  /** Live runs by `deadlineAt`. */
  readonly deadlines = new SortedSet()

  get(id: string): StoredRun | undefined {
    return this.#rows.get(id)
  }

  read(id: string): WorkflowRun | null {
    const row = this.#rows.get(id)
    return row ? decodeRun(row) : null
  }

  has(id: string): boolean {
    return this.#rows.has(id)
  }

  insert(run: WorkflowRun): void {
    if (this.#rows.has(run.id)) throw new DuplicateRunError(run.id)
    const row = {
      ...encodeRow<WorkflowRun, typeof RUN_COLUMNS>(RUN_COLUMNS, run),
      namespace: storedNamespace(run.namespace),
    } as StoredRun
    this.#rows.set(row.id, row)
    this.#index(undefined, row)
  }

  /** Applies a patch whatever the status; false for an unknown id. */
  patch(id: string, patch: Partial<WorkflowRun>): boolean {
    const row = this.#rows.get(id)
    if (!row) return false
    const changes = releasingSlot(row, patch)
    delete changes.id
    if ('namespace' in changes) changes.namespace = storedNamespace(changes.namespace)
    const next = patchRow<WorkflowRun, typeof RUN_COLUMNS, StoredRun>(
      RUN_COLUMNS,
      row,
      changes,
      ALWAYS_SET
    )
    this.#rows.set(id, next)
    this.#index(row, next)
    return true
  }

  remove(id: string): boolean {
    const row = this.#rows.get(id)
    if (!row) return false
    this.#rows.delete(id)
    this.#index(row, undefined)
    return true
  }

  /** Runs of a status by `(createdAt, id)`. */
  ofStatus(status: RunStatus): SortedSet {
    let set = this.#byStatus.get(status)
    if (!set) this.#byStatus.set(status, (set = new SortedSet()))
    return set
  }

  withTag(tag: string): Iterable<string> {
    return this.#byTag.get(tag) ?? []
  }

  /** Run id → indexed value, of runs that have the key. */
  withAttribute(key: string): ReadonlyMap<string, string | number> {
    return this.#byAttribute.get(key) ?? new Map()
  }

  tryLock(
    id: string,
    owner: string,
    leaseUntilMs: number,
    nowMs: number,
    from?: RunStatus[]
  ): boolean {
    const row = this.#rows.get(id)
    if (!row || isLeased(row, nowMs) || from?.includes(row.status) === false) return false
    return this.patch(id, { lockedBy: owner, lockedUntil: leaseUntilMs })
  }

  renewLock(id: string, owner: string, leaseUntilMs: number): boolean {
    if (this.#rows.get(id)?.lockedBy !== owner) return false
    return this.patch(id, { lockedUntil: leaseUntilMs })
  }

  releaseLock(id: string, owner?: string): void {
    if (owner !== undefined && this.#rows.get(id)?.lockedBy !== owner) return
    this.patch(id, { lockedBy: undefined, lockedUntil: undefined })
  }

  #index(before: StoredRun | undefined, after: StoredRun | undefined): void {
    const id = (before ?? after)!.id
    if (!standsAlike(before, after)) {
      for (const [set, key] of this.#places(before)) {
        if (key !== undefined) set.delete(key, id)
      }
      for (const [set, key] of this.#places(after)) {
        if (key !== undefined) set.add(key, id)
      }
    }
    if (before?.tags !== after?.tags) this.#indexTags(id, before, after)
    if (before?.searchAttributes !== after?.searchAttributes) {
      this.#indexAttributes(id, before, after)
    }
  }

  #places(row: StoredRun | undefined): [SortedSet, number | undefined][] {
    if (!row) return []
    const places: [SortedSet, number | undefined][] = [[this.ofStatus(row.status), row.createdAt]]
    if (row.status === 'blocked') places.push([this.timers.blocked, row.wakeAt])
    if (row.status === 'suspended') {
      places.push([this.timers.suspended, row.wakeAt], [this.requests, row.wakeRequestedAt])
    }
    if (!isTerminalStatus(row.status)) places.push([this.deadlines, row.deadlineAt])
    if (row.status === 'cancelled') {
      places.push([this.unfinishedCancels, row.cancelRequestedAt])
    }
    return places
  }

  #indexTags(id: string, before: StoredRun | undefined, after: StoredRun | undefined): void {
    for (const tag of tagsOf(before)) {
      const ids = this.#byTag.get(tag)
      ids?.delete(id)
      if (ids?.size === 0) this.#byTag.delete(tag)
    }
    for (const tag of tagsOf(after)) {
      const ids = this.#byTag.get(tag)
      if (ids) ids.add(id)
      else this.#byTag.set(tag, new Set([id]))
    }
  }

  #indexAttributes(id: string, before: StoredRun | undefined, after: StoredRun | undefined): void {
    for (const { key } of attributesOf(before)) {
      const values = this.#byAttribute.get(key)
      values?.delete(id)
      if (values?.size === 0) this.#byAttribute.delete(key)
    }
    for (const { key, value } of attributesOf(after)) {
      const values = this.#byAttribute.get(key)
      if (values) values.set(id, value)
      else this.#byAttribute.set(key, new Map([[id, value]]))
    }
  }
}

/** True when a change moves the run in no order: a renewed lease, most of the time. */
const standsAlike = (before: StoredRun | undefined, after: StoredRun | undefined): boolean =>
  before?.status === after?.status &&
  before?.createdAt === after?.createdAt &&
  before?.wakeAt === after?.wakeAt &&
  before?.deadlineAt === after?.deadlineAt &&
  before?.wakeRequestedAt === after?.wakeRequestedAt &&
  before?.cancelRequestedAt === after?.cancelRequestedAt

export const decodeRun = (row: StoredRun): WorkflowRun =>
  decodeRow<WorkflowRun, typeof RUN_COLUMNS>(RUN_COLUMNS, row)

export const tagsOf = (row: StoredRun | undefined): string[] =>
  row?.tags === undefined ? [] : ((JSON.parse(row.tags) as string[] | null) ?? [])

const attributesOf = (row: StoredRun | undefined) =>
  attributeEntries(row?.searchAttributes === undefined ? {} : JSON.parse(row.searchAttributes))

/** A terminal status frees the singleton slot in the same write. */
function releasingSlot(row: StoredRun, patch: Partial<WorkflowRun>): Partial<WorkflowRun> {
  if (patch.status === undefined || !isTerminalStatus(patch.status)) return { ...patch }
  if (!('tags' in patch) && row.tags === undefined) return { ...patch }
  return { ...patch, tags: withoutSingletonMarkers('tags' in patch ? patch.tags : tagsOf(row)) }
}
