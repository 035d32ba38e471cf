/*
 * A store of which every member exists: its own, or the fallback written in terms of the others. The only
 * place that asks what a store has; above it, only `capabilities` tells the few differences that are not a
 * matter of speed.
 */
import { deliverSignal, pairSignal, settleTargets } from './fallbacks/deliver_signal.ts'
import { aggregates } from './fallbacks/aggregates.ts'
import { scheduleRows, schemaOwner, transactions, wakeHints } from './fallbacks/capabilities.ts'
import { commitTurn } from './fallbacks/commit_turn.ts'
import type { CompleteRoles } from './fallbacks/complete_roles.ts'
import { fanRows } from './fallbacks/fan_rows.ts'
import { housekeeping } from './fallbacks/housekeeping.ts'
import { pendingSettles } from './fallbacks/pending_settles.ts'
import { listFiltered, usesLaterFilters } from './fallbacks/run_filters.ts'
import { replayReads } from './fallbacks/replay_reads.ts'
import { runClaims } from './fallbacks/run_claims.ts'
import { singletonClaims } from './fallbacks/singleton_claims.ts'
import {
  OPTIONAL_MEMBERS,
  REQUIRED_MEMBERS,
  SCHEDULE_MEMBERS,
  type OptionalMember,
  type RequiredMember,
} from './ports/members.ts'
import { isStandIn } from './ports/stand_in.ts'
import type { RunQuery } from '../types/query.ts'
import type { OptionalRoles, RequiredRoles, StateStore } from './state_store.ts'

/** What a store does itself, where the fallback is not the same thing made slower. */
export interface StoreCapabilities {
  /** Without it `ctx.transaction` throws. */
  transaction: boolean
  /** Without it admission is not atomic; the engine warns once. */
  tryAdmitSingleton: boolean
  /** All five schedule members; without them schedules cannot be persisted. */
  schedules: boolean
  /** Without it a scoped view sees everything. */
  withScope: boolean
  /** Without it a turn commits row by row. */
  commitTurn: boolean
  /** Without it nothing is kept warm between turns: turn numbers may not be kept. */
  claimRun: boolean
  /** `checkpointStats` and `queryCheckpoints`; without them run detail has no etag. */
  checkpointAggregates: boolean
  /** `listOverdueRuns`; without it deadlines are found by listing runs. */
  overdueRuns: boolean
  /** Without it processes learn of wakes by polling. */
  wakeHints: boolean
}

export interface FullStore extends RequiredRoles, Omit<OptionalRoles, 'withScope'> {
  withScope(scope: { namespace?: string }): FullStore
  readonly capabilities: StoreCapabilities
  /** The store as it was given. */
  readonly base: StateStore
}

type Call = (...args: never[]) => unknown
type Fallbacks = Omit<OptionalRoles, 'withScope'>

/** Members whose work must reach every namespace, also from a scoped view. */
const NEVER_SCOPED = [
  'commitTurn',
  'deliverSignal',
  'pairSignal',
  'settleTargets',
  'claimRun',
  'claimDueRuns',
  'tryAdmitSingleton',
  'deleteRuns',
  'deleteRunsIf',
] as const satisfies OptionalMember[]

const completed = new WeakSet<object>()

/** Completes a store; a completed one is returned as it is. */
export function fullStore(store: StateStore): FullStore {
  if (completed.has(store)) return store as FullStore
  const missing = missingMembers(store)
  const full: Record<string, unknown> = { base: store, capabilities: capabilitiesOf(missing) }
  const roles = full as unknown as FullStore
  const fallbacks = fallbacksFor(roles as CompleteRoles, store)
  for (const name of REQUIRED_MEMBERS) full[name] = forward(store, name)
  for (const name of OPTIONAL_MEMBERS) {
    if (name === 'withScope') full.withScope = scoping(store, roles, missing)
    else full[name] = missing.has(name) ? fallbacks[name] : forward(store, name)
  }
  if (missing.has('commitTurn')) Object.assign(full, laterFilters({ ...roles }, fallbacks))
  completed.add(roles)
  return roles
}

/** Calls the member of the store as it is when it is called. */
function forward(store: StateStore, name: RequiredMember | OptionalMember): Call {
  return (...args) => Reflect.apply(store[name] as Call, store, args)
}

const has = (store: StateStore, name: OptionalMember): boolean =>
  typeof store[name] === 'function' && !isStandIn(store[name])

/** What to complete; groups that only make sense together are missing together. */
function missingMembers(store: StateStore): Set<OptionalMember> {
  const missing = new Set(OPTIONAL_MEMBERS.filter((name) => !has(store, name)))
  const groups: OptionalMember[][] = [
    [...SCHEDULE_MEMBERS],
    ['checkpointStats', 'queryCheckpoints'],
    ['notifyWake', 'onWake'],
  ]
  for (const group of groups) {
    if (group.some((name) => missing.has(name))) group.forEach((name) => missing.add(name))
  }
  return missing
}

function capabilitiesOf(missing: Set<OptionalMember>): StoreCapabilities {
  const all = (...names: OptionalMember[]) => !names.some((name) => missing.has(name))
  return {
    transaction: all('transaction'),
    tryAdmitSingleton: all('tryAdmitSingleton'),
    schedules: all(...SCHEDULE_MEMBERS),
    withScope: all('withScope'),
    commitTurn: all('commitTurn'),
    claimRun: all('claimRun'),
    checkpointAggregates: all('checkpointStats', 'queryCheckpoints'),
    overdueRuns: all('listOverdueRuns'),
    wakeHints: all('notifyWake', 'onWake'),
  }
}

function fallbacksFor(store: CompleteRoles, base: StateStore): Fallbacks {
  return {
    ...replayReads(store),
    ...pendingSettles(store),
    ...fanRows(store),
    ...aggregates(store),
    ...housekeeping(store),
    ...runClaims(store),
    ...singletonClaims(store),
    ...transactions(),
    ...scheduleRows(SCHEDULE_MEMBERS.filter((name) => !has(base, name))),
    ...schemaOwner(),
    ...wakeHints(),
    commitTurn: (commit) => commitTurn(store, commit),
    deliverSignal: (delivery) => deliverSignal(store, delivery),
    pairSignal: (token, nowMs) => pairSignal(store, token, nowMs),
    settleTargets: (keys) => settleTargets(store, keys),
  }
}

/** The run reads with the filters that an older store would ignore. */
function laterFilters(
  own: CompleteRoles,
  fallbacks: Fallbacks
): Pick<CompleteRoles, 'listRuns' | 'countRuns' | 'runFacets' | 'runValueFacets'> {
  const pick = (query: RunQuery) => (usesLaterFilters(query) ? fallbacks : own)
  return {
    listRuns: (query) => (usesLaterFilters(query) ? listFiltered(own, query) : own.listRuns(query)),
    countRuns: (query) => pick(query).countRuns(query),
    runFacets: (query) => pick(query).runFacets(query),
    runValueFacets: (axis, query, options) => pick(query).runValueFacets(axis, query, options),
  }
}

function scoping(
  store: StateStore,
  full: FullStore,
  missing: Set<OptionalMember>
): FullStore['withScope'] {
  if (missing.has('withScope')) return () => full
  return (scope) => {
    const view = fullStore(store.withScope!(scope))
    const unscoped = Object.fromEntries(NEVER_SCOPED.map((name) => [name, full[name]]))
    const scoped: FullStore = { ...view, ...unscoped }
    completed.add(scoped)
    return scoped
  }
}
