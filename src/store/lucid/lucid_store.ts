/*
 * The Lucid store: runs, checkpoints, leases, signals and events in the tables of `schema/tables.ts`, on
 * SQLite, Postgres, MySQL and MariaDB. Every statement goes through the store's own connection, and every
 * decision is made by the statement that writes, or under a lock taken before it (invariants 1, 3, 4). This
 * file composes; each family of statements has a file of its own.
 * Unlike other stores it keeps nothing in memory: several processes may share one database.
 */
import type { Database } from '@adonisjs/lucid/database'
import type {
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'
import type { Leases } from '../ports/leases.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import { narrowed, type Scope, scopedQuery } from '../ports/scope_rules.ts'
import type { SingletonClaim, SingletonVerdict } from '../ports/singleton_claims.ts'
import type { StoreTransaction } from '../ports/transactions.ts'
import type { WakeHints } from '../ports/wake_hints.ts'
import type { OptionalRoles, RequiredRoles } from '../state_store.ts'
import * as aggregates from './aggregates.ts'
import * as claims from './claims.ts'
import * as due from './due_runs.ts'
import { LucidRows } from './lucid_rows.ts'
import { listRuns } from './run_lists.ts'
import { countRuns } from './run_query.ts'
import * as runs from './runs.ts'
import { createDurableTables } from './schema/ensure.ts'
import { Session } from '../../sql/session.ts'
import * as singletons from './singletons.ts'
import { transaction } from './transactions.ts'
import { WakeChannel } from './wakes.ts'

export { onCorruptJsonColumn } from './json_columns.ts'
export type { CorruptJsonColumn, CorruptJsonReporter } from './json_columns.ts'

export interface LucidStoreOptions {
  /** Lucid connection; default the primary one. */
  connectionName?: string
  /** Collation of the tables, MySQL and MariaDB only. */
  collation?: string
  /** Told about repairs of the schema; default the console. */
  logger?: { warn(message: string): void }
}

export class LucidStateStore
  extends LucidRows
  implements RequiredRoles, Omit<OptionalRoles, keyof WakeHints>, Partial<WakeHints>
{
  readonly #db: Database
  readonly #options: LucidStoreOptions
  #scope: Scope = {}
  #wakes?: WakeChannel

  /** On Postgres only: the others tell nobody. */
  notifyWake?: WakeHints['notifyWake']
  onWake?: WakeHints['onWake']

  constructor(db: Database, options: LucidStoreOptions = {}) {
    super(new Session(db, options.connectionName))
    this.#db = db
    this.#options = options
    if (this.session.isPostgres) this.#listenOn(new WakeChannel(this.session))
  }

  ensureSchema(): Promise<void> {
    const { connectionName, collation, logger } = this.#options
    return createDurableTables(this.#db, connectionName, { collation, logger })
  }

  /** Ends the connection for wake hints. The Database belongs to the application. */
  async close(): Promise<void> {
    await this.#wakes?.close()
  }

  withScope(scope: { namespace?: string }): LucidStateStore {
    const view = new LucidStateStore(this.#db, this.#options)
    view.session = this.session
    view.#scope = narrowed(this.#scope, scope)
    if (this.#wakes) view.#listenOn(this.#wakes)
    return view
  }

  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
    return transaction(this.session, work)
  }

  // Runs

  createRun(run: WorkflowRun): Promise<void> {
    return runs.createRun(this.session, run)
  }

  updateRun(runId: string, patch: Partial<WorkflowRun>): Promise<void> {
    return runs.updateRun(this.session, runId, patch)
  }

  updateRunIf(runId: string, expected: RunStatus[], patch: Partial<WorkflowRun>): Promise<boolean> {
    return runs.updateRunIf(this.session, runId, expected, patch)
  }

  getRun(runId: string): Promise<WorkflowRun | null> {
    return this.#read(
      { namespace: undefined },
      ({ namespace }) => runs.getRun(this.session, runId, namespace),
      null
    )
  }

  getRuns(runIds: string[]): Promise<WorkflowRun[]> {
    return this.#read(
      { namespace: undefined },
      ({ namespace }) => runs.getRuns(this.session, runIds, namespace),
      []
    )
  }

  async deleteRun(runId: string): Promise<void> {
    await runs.deleteRuns(this.session, [runId])
  }

  async deleteRuns(runIds: string[]): Promise<number> {
    const gone = await runs.deleteRuns(this.session, runIds)
    return gone.length
  }

  deleteRunsIf(runIds: string[], statuses: RunStatus[]): Promise<string[]> {
    return runs.deleteRuns(this.session, runIds, statuses)
  }

  listRuns(query: RunQuery): Promise<WorkflowRun[]> {
    return this.#read(query, (scoped) => listRuns(this.session, scoped), [])
  }

  countRuns(query: RunFilter): Promise<number> {
    return this.#read(query, (scoped) => countRuns(this.session, scoped), 0)
  }

  runFacets(query: RunFacetQuery): Promise<RunFacetRow[]> {
    return this.#read(query, (scoped) => aggregates.runFacets(this.session, scoped), [])
  }

  runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]> {
    const count = (scoped: RunFacetQuery) =>
      aggregates.runValueFacets(this.session, axis, scoped, options)
    return this.#read(query, count, [])
  }

  // Leases and claims

  tryLockRun(...lock: Parameters<Leases['tryLockRun']>): Promise<boolean> {
    return claims.tryLockRun(this.session, ...lock)
  }

  renewRunLock(runId: string, owner: string, leaseUntilMs: number): Promise<boolean> {
    return claims.renewRunLock(this.session, runId, owner, leaseUntilMs)
  }

  releaseRunLock(runId: string, owner?: string): Promise<void> {
    return claims.releaseRunLock(this.session, runId, owner)
  }

  claimRun(claim: RunClaim): Promise<ClaimedRun | null> {
    return claims.claimRun(this.session, claim)
  }

  claimDueRuns(claim: DueClaim): Promise<ClaimedRun[]> {
    return claims.claimDueRuns(this.session, claim)
  }

  /** Counts every namespace, whatever the view. */
  tryAdmitSingleton(claim: SingletonClaim): Promise<SingletonVerdict> {
    return singletons.tryAdmitSingleton(this.session, claim)
  }

  // Due work

  listIncompleteRuns(namespace?: string): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listIncompleteRuns(this.session, own))
  }

  listPendingRuns(limit: number, namespace?: string): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listPendingRuns(this.session, limit, own))
  }

  listDueTimers(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listDueTimers(this.session, nowMs, own, limit))
  }

  listUnfinishedCancels(namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listUnfinishedCancels(this.session, own, limit))
  }

  listOverdueRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listOverdueRuns(this.session, nowMs, own, limit))
  }

  listOrphanedRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.#list(namespace, (own) => due.listOrphanedRuns(this.session, nowMs, own, limit))
  }

  #listenOn(wakes: WakeChannel): void {
    this.#wakes = wakes
    this.notifyWake = (hint) => wakes.notifyWake(hint)
    this.onWake = (listener) => wakes.onWake(listener)
  }

  /** A run read within this view's scope; `nothing` when that can find nothing. */
  async #read<Query extends { namespace?: string }, T>(
    query: Query,
    read: (scoped: Query) => Promise<T>,
    nothing: T
  ): Promise<T> {
    const scoped = scopedQuery(this.#scope, query)
    return scoped ? read(scoped) : nothing
  }

  #list(
    namespace: string | undefined,
    list: (namespace?: string) => Promise<WorkflowRun[]>
  ): Promise<WorkflowRun[]> {
    return this.#read({ namespace }, (scoped) => list(scoped.namespace), [])
  }
}
