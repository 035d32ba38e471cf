/*
 * The Lucid store: runs, checkpoints, leases, signals and events in the tables of `schema/tables.ts`, on
 * SQLite and Postgres. Every statement goes through the store's own connection, and every decision is made
 * by the statement that writes (invariants 1, 3, 4). This file composes; each family of statements has a
 * file of its own.
 * Unlike other stores it keeps nothing in memory: several processes may share one database.
 */
import type { Database } from '@adonisjs/lucid/database'
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type {
  CheckpointKey,
  CheckpointQuery,
  CheckpointRange,
  CheckpointStats,
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import type { ClaimedRun, DueClaim, RunClaim } from '../ports/run_claims.ts'
import type { StoreTransaction } from '../ports/transactions.ts'
import type {
  SettleTarget,
  SignalDelivery,
  SignalOutcome,
  TurnCommit,
  TurnVerdict,
} from '../ports/turn_commits.ts'
import type { OptionalRoles, RequiredRoles } from '../state_store.ts'
import * as aggregates from './aggregates.ts'
import * as checkpoints from './checkpoints.ts'
import * as claims from './claims.ts'
import * as deliveries from './deliveries.ts'
import * as due from './due_runs.ts'
import * as folds from './folds.ts'
import * as queries from './run_query.ts'
import * as runs from './runs.ts'
import { createDurableTables } from './schema/ensure.ts'
import { Session } from './session.ts'
import * as settles from './settles.ts'
import * as signals from './signals.ts'
import { transaction } from './transactions.ts'
import { commitTurn } from './turn_commit.ts'

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

/** The optional roles of later slices. */
type NotYet =
  | 'tryAdmitSingleton'
  | 'createSchedule'
  | 'updateSchedule'
  | 'getSchedule'
  | 'listSchedules'
  | 'deleteSchedule'
  | 'registerChildWaits'
  | 'withScope'
  | 'notifyWake'
  | 'onWake'

export class LucidStateStore implements RequiredRoles, Omit<OptionalRoles, NotYet> {
  readonly #db: Database
  readonly #options: LucidStoreOptions
  readonly #session: Session

  constructor(db: Database, options: LucidStoreOptions = {}) {
    this.#db = db
    this.#options = options
    this.#session = new Session(db, options.connectionName)
  }

  ensureSchema(): Promise<void> {
    const { connectionName, collation, logger } = this.#options
    return createDurableTables(this.#db, connectionName, { collation, logger })
  }

  /** The Database belongs to the application: nothing to release. */
  async close(): Promise<void> {}

  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
    return transaction(this.#session, work)
  }

  // Runs

  createRun(run: WorkflowRun): Promise<void> {
    return runs.createRun(this.#session, run)
  }

  updateRun(runId: string, patch: Partial<WorkflowRun>): Promise<void> {
    return runs.updateRun(this.#session, runId, patch)
  }

  updateRunIf(runId: string, expected: RunStatus[], patch: Partial<WorkflowRun>): Promise<boolean> {
    return runs.updateRunIf(this.#session, runId, expected, patch)
  }

  getRun(runId: string): Promise<WorkflowRun | null> {
    return runs.getRun(this.#session, runId)
  }

  getRuns(runIds: string[]): Promise<WorkflowRun[]> {
    return runs.getRuns(this.#session, runIds)
  }

  async deleteRun(runId: string): Promise<void> {
    await runs.deleteRuns(this.#session, [runId])
  }

  async deleteRuns(runIds: string[]): Promise<number> {
    const gone = await runs.deleteRuns(this.#session, runIds)
    return gone.length
  }

  deleteRunsIf(runIds: string[], statuses: RunStatus[]): Promise<string[]> {
    return runs.deleteRuns(this.#session, runIds, statuses)
  }

  listRuns(query: RunQuery): Promise<WorkflowRun[]> {
    return queries.listRuns(this.#session, query)
  }

  countRuns(query: RunFilter): Promise<number> {
    return queries.countRuns(this.#session, query)
  }

  runFacets(query: RunFacetQuery): Promise<RunFacetRow[]> {
    return aggregates.runFacets(this.#session, query)
  }

  runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]> {
    return aggregates.runValueFacets(this.#session, axis, query, options)
  }

  // Leases and claims

  tryLockRun(runId: string, owner: string, leaseUntilMs: number, nowMs: number): Promise<boolean> {
    return claims.tryLockRun(this.#session, runId, owner, leaseUntilMs, nowMs)
  }

  renewRunLock(runId: string, owner: string, leaseUntilMs: number): Promise<boolean> {
    return claims.renewRunLock(this.#session, runId, owner, leaseUntilMs)
  }

  releaseRunLock(runId: string, owner?: string): Promise<void> {
    return claims.releaseRunLock(this.#session, runId, owner)
  }

  claimRun(claim: RunClaim): Promise<ClaimedRun | null> {
    return claims.claimRun(this.#session, claim)
  }

  claimDueRuns(claim: DueClaim): Promise<ClaimedRun[]> {
    return claims.claimDueRuns(this.#session, claim)
  }

  // Due work

  listIncompleteRuns(namespace?: string): Promise<WorkflowRun[]> {
    return due.listIncompleteRuns(this.#session, namespace)
  }

  listPendingRuns(limit: number, namespace?: string): Promise<WorkflowRun[]> {
    return due.listPendingRuns(this.#session, limit, namespace)
  }

  listDueTimers(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return due.listDueTimers(this.#session, nowMs, namespace, limit)
  }

  listUnfinishedCancels(namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return due.listUnfinishedCancels(this.#session, namespace, limit)
  }

  listOrphanedRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> {
    return due.listOrphanedRuns(this.#session, nowMs, namespace, limit)
  }

  // Checkpoints

  saveCheckpoint(checkpoint: StepCheckpoint): Promise<void> {
    return checkpoints.saveCheckpoint(this.#session, checkpoint)
  }

  getCheckpoint(runId: string, seq: number): Promise<StepCheckpoint | null> {
    return checkpoints.getCheckpoint(this.#session, runId, seq)
  }

  listCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpoints(this.#session, runId)
  }

  listCheckpointsForReplay(runId: string): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsForReplay(this.#session, runId)
  }

  listCheckpointsAt(runId: string, seqs: number[], fromSeq: number): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsAt(this.#session, runId, seqs, fromSeq)
  }

  getCheckpoints(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return checkpoints.getCheckpoints(this.#session, keys)
  }

  getCheckpointsForSettle(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return checkpoints.getCheckpointsForSettle(this.#session, keys)
  }

  compactCheckpoints(
    runId: string,
    range: { fromSeq: number; toSeq: number },
    folded: StepCheckpoint
  ): Promise<boolean> {
    return folds.compactCheckpoints(this.#session, runId, range, folded)
  }

  hasCheckpoints(runId: string, range: CheckpointRange): Promise<boolean> {
    return checkpoints.hasCheckpoints(this.#session, runId, range)
  }

  countCheckpoints(runId: string, range: CheckpointRange): Promise<number> {
    return checkpoints.countCheckpoints(this.#session, runId, range)
  }

  getLatestCheckpointByName(runId: string, name: string): Promise<StepCheckpoint | undefined> {
    return checkpoints.getLatestCheckpointByName(this.#session, runId, name)
  }

  listCheckpointsByNamePrefix(runId: string, prefixes: string[]): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsByNamePrefix(this.#session, runId, prefixes)
  }

  checkpointStats(runId: string): Promise<CheckpointStats> {
    return aggregates.checkpointStats(this.#session, runId)
  }

  queryCheckpoints(runId: string, query: CheckpointQuery): Promise<StepCheckpoint[]> {
    return aggregates.queryCheckpoints(this.#session, runId, query)
  }

  recordStepHeartbeat(runId: string, seq: number, at: Date, progress?: unknown): Promise<void> {
    return checkpoints.recordStepHeartbeat(this.#session, runId, seq, at, progress)
  }

  // Settles and commits

  saveCheckpointIfPending(checkpoint: StepCheckpoint): Promise<boolean> {
    return settles.saveCheckpointIfPending(this.#session, checkpoint)
  }

  saveCheckpointsIfPending(list: StepCheckpoint[]): Promise<boolean[]> {
    return settles.saveCheckpointsIfPending(this.#session, list)
  }

  settleCheckpointsIfPending(settlements: CheckpointSettlement[]): Promise<boolean[]> {
    return settles.settleCheckpointsIfPending(this.#session, settlements)
  }

  settleTargets(keys: CheckpointKey[]): Promise<SettleTarget[]> {
    return settles.settleTargets(this.#session, keys)
  }

  commitTurn(commit: TurnCommit): Promise<TurnVerdict> {
    return commitTurn(this.#session, commit)
  }

  // Signals and events

  deliverSignal(delivery: SignalDelivery): Promise<SignalOutcome> {
    return deliveries.deliverSignal(this.#session, delivery)
  }

  pairSignal(token: string, nowMs: number): Promise<SignalOutcome> {
    return deliveries.pairSignal(this.#session, token, nowMs)
  }

  putSignalWaiter(waiter: SignalWaiter): Promise<void> {
    return signals.putSignalWaiter(this.#session, waiter)
  }

  takeSignalWaiter(token: string): Promise<SignalWaiter | null> {
    return signals.takeSignalWaiter(this.#session, token)
  }

  listSignalWaiters(prefix: string): Promise<SignalWaiter[]> {
    return signals.listSignalWaiters(this.#session, prefix)
  }

  removeSignalWaiter(waiter: SignalWaiter): Promise<void> {
    return signals.removeSignalWaiter(this.#session, waiter)
  }

  hasSignalWaiter(token: string): Promise<boolean> {
    return signals.hasSignalWaiter(this.#session, token)
  }

  listSignalWaitersByRunIds(runIds: string[]): Promise<SignalWaiter[]> {
    return signals.listSignalWaitersByRunIds(this.#session, runIds)
  }

  bufferSignal(token: string, payload: unknown): Promise<void> {
    return signals.bufferSignal(this.#session, token, payload)
  }

  takeBufferedSignal(token: string): Promise<{ payload: unknown } | null> {
    return signals.takeBufferedSignal(this.#session, token)
  }

  listBufferedTokens(prefixes: string[]): Promise<string[]> {
    return signals.listBufferedTokens(this.#session, prefixes)
  }

  dropBufferedSignals(tokens: string[]): Promise<void> {
    return signals.dropBufferedSignals(this.#session, tokens)
  }

  bufferEvent(event: BufferedEvent & { name: string }): Promise<void> {
    return signals.bufferEvent(this.#session, event)
  }

  listBufferedEvents(name: string, limit: number): Promise<BufferedEvent[]> {
    return signals.listBufferedEvents(this.#session, name, limit)
  }

  removeBufferedEvent(id: string): Promise<boolean> {
    return signals.removeBufferedEvent(this.#session, id)
  }

  pruneBufferedEvents(publishedBefore: number, limit?: number): Promise<number> {
    return signals.pruneBufferedEvents(this.#session, publishedBefore, limit)
  }
}
