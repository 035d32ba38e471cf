/*
 * The in-memory store: the default, and the reference semantics of every role. Each operation is one
 * synchronous turn over shared tables, hence atomic; values are copied in and out as JSON, so that what
 * passes here passes on SQL. Nothing survives the process.
 */
import type {
  CheckpointKey,
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import { narrowed, scopedQuery, type Scope } from '../ports/scope_rules.ts'
import type { SingletonClaim, SingletonVerdict } from '../ports/singleton_claims.ts'
import type { StoreTransaction } from '../ports/transactions.ts'
import type { SettleTarget, TurnCommit, TurnVerdict } from '../ports/turn_commits.ts'
import type { OptionalRoles, RequiredRoles } from '../state_store.ts'
import { claimDueRuns, claimRun, tryAdmitSingleton } from './claims.ts'
import type { StoredRun } from './columns.ts'
import { commitTurn } from './commit_turn.ts'
import { settleTargets } from './deliver_signal.ts'
import { MemoryRows } from './memory_rows.ts'
import { decodeRun } from './run_table.ts'
import { runTransaction } from './transaction.ts'

export class InMemoryStateStore
  extends MemoryRows
  implements RequiredRoles, Omit<OptionalRoles, 'ensureSchema'>
{
  #scope: Scope = {}

  /** How many runs the last attribute query took from the attribute index. */
  get lastAttributeCandidates(): number {
    return this.tables.queries.lastAttributeCandidates
  }

  /** How many rows the last read of several checkpoints looked at. */
  get lastCheckpointRowsRead(): number {
    return this.tables.checkpoints.lastRowsRead
  }

  async close(): Promise<void> {
    this.tables.listeners.clear()
  }

  withScope(scope: { namespace?: string }): InMemoryStateStore {
    const view = new InMemoryStateStore()
    view.tables = this.tables
    view.#scope = narrowed(this.#scope, scope)
    return view
  }

  // Runs

  async createRun(run: WorkflowRun): Promise<void> {
    this.tables.runs.insert(run)
  }

  async updateRun(runId: string, patch: Partial<WorkflowRun>): Promise<void> {
    this.tables.runs.patch(runId, patch)
  }

  async updateRunIf(
    runId: string,
    expected: RunStatus[],
    patch: Partial<WorkflowRun>
  ): Promise<boolean> {
    const run = this.tables.runs.get(runId)
    return !!run && expected.includes(run.status) && this.tables.runs.patch(runId, patch)
  }

  async getRun(runId: string): Promise<WorkflowRun | null> {
    const run = this.tables.runs.get(runId)
    return run && this.#sees()(run) ? decodeRun(run) : null
  }

  async deleteRun(runId: string): Promise<void> {
    this.tables.deleteRun(runId)
  }

  async listRuns(query: RunQuery): Promise<WorkflowRun[]> {
    const scoped = this.#scoped(query)
    return scoped ? this.tables.queries.list(scoped).map(decodeRun) : []
  }

  // Due work and leases

  async listIncompleteRuns(namespace?: string): Promise<WorkflowRun[]> {
    return this.tables.queries.running(this.#sees(namespace)).map(decodeRun)
  }

  async listPendingRuns(limit: number, namespace?: string): Promise<WorkflowRun[]> {
    return this.tables.queries.pending(limit, this.#sees(namespace)).map(decodeRun)
  }

  async listDueTimers(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.tables.queries.due(nowMs, limit, this.#sees(namespace)).map(decodeRun)
  }

  async listOrphanedRuns(
    nowMs: number,
    namespace?: string,
    limit?: number
  ): Promise<WorkflowRun[]> {
    return this.tables.queries.orphaned(nowMs, limit, this.#sees(namespace)).map(decodeRun)
  }

  async listUnfinishedCancels(namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.tables.queries.unfinishedCancels(limit, this.#sees(namespace)).map(decodeRun)
  }

  async listOverdueRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return this.tables.queries.overdue(nowMs, limit, this.#sees(namespace)).map(decodeRun)
  }

  async getRuns(runIds: string[]): Promise<WorkflowRun[]> {
    const runs = [...new Set(runIds)].map((runId) => this.tables.runs.get(runId))
    return runs.flatMap((run) => (run && this.#sees()(run) ? decodeRun(run) : []))
  }

  async tryLockRun(
    runId: string,
    owner: string,
    leaseUntilMs: number,
    nowMs: number,
    from?: RunStatus[]
  ): Promise<boolean> {
    return this.tables.runs.tryLock(runId, owner, leaseUntilMs, nowMs, from)
  }

  async renewRunLock(runId: string, owner: string, leaseUntilMs: number): Promise<boolean> {
    return this.tables.runs.renewLock(runId, owner, leaseUntilMs)
  }

  async releaseRunLock(runId: string, owner?: string): Promise<void> {
    this.tables.runs.releaseLock(runId, owner)
  }

  async claimRun(claim: RunClaim): Promise<ClaimedRun | null> {
    return claimRun(this.tables, claim)
  }

  async claimDueRuns(claim: DueClaim): Promise<ClaimedRun[]> {
    return claimDueRuns(this.tables, claim)
  }

  async tryAdmitSingleton(claim: SingletonClaim): Promise<SingletonVerdict> {
    return tryAdmitSingleton(this.tables, claim)
  }

  // Turns

  async commitTurn(commit: TurnCommit): Promise<TurnVerdict> {
    return commitTurn(this.tables, commit)
  }

  async settleTargets(keys: CheckpointKey[]): Promise<SettleTarget[]> {
    return settleTargets(this.tables, keys)
  }

  async transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
    return runTransaction(this, this.tables, work)
  }

  // Aggregates and housekeeping

  async countRuns(query: RunFilter): Promise<number> {
    const scoped = this.#scoped(query)
    return scoped ? this.tables.queries.count(scoped) : 0
  }

  async runFacets(query: RunFacetQuery): Promise<RunFacetRow[]> {
    const scoped = this.#scoped(query)
    return scoped ? this.tables.queries.facets(scoped) : []
  }

  async runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]> {
    const scoped = this.#scoped(query)
    return scoped ? this.tables.queries.valueFacets(axis, scoped, options) : []
  }

  async deleteRuns(runIds: string[]): Promise<number> {
    return runIds.filter((runId) => this.tables.deleteRun(runId)).length
  }

  async deleteRunsIf(runIds: string[], statuses: RunStatus[]): Promise<string[]> {
    const fits = (runId: string) => {
      const run = this.tables.runs.get(runId)
      return run !== undefined && statuses.includes(run.status)
    }
    return [...new Set(runIds)].filter((runId) => fits(runId) && this.tables.deleteRun(runId))
  }

  /** Which runs a read may answer. */
  #sees(namespace?: string): (run: StoredRun) => boolean {
    const wanted = narrowed(this.#scope, { namespace })
    return (run) =>
      !wanted.nothing && (wanted.namespace === undefined || run.namespace === wanted.namespace)
  }

  #scoped<Query extends { namespace?: string }>(query: Query): Query | undefined {
    return scopedQuery(this.#scope, query)
  }
}
