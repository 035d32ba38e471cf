/*
 * Role: housekeeping. Optional.
 */
import type { RunStatus, WorkflowRun } from '../../types/run.ts'

export interface Housekeeping {
  /** `deleteRun` for many; answers how many runs went. */
  deleteRuns(runIds: string[]): Promise<number>
  /**
   * The same for those whose persisted status is one of `statuses` when the delete happens; answers which
   * runs went (ours).
   */
  deleteRunsIf(runIds: string[], statuses: RunStatus[]): Promise<string[]>
  /** Tokens with a buffered payload and one of these literal prefixes, each once (ours). */
  listBufferedTokens(prefixes: string[]): Promise<string[]>
  /** Drops every payload buffered on these tokens (ours). */
  dropBufferedSignals(tokens: string[]): Promise<void>
  /** Deletes events published strictly before; with `limit`, the oldest. Answers how many. */
  pruneBufferedEvents(publishedBefore: number, limit?: number): Promise<number>
  /** `running` runs without a live lease, oldest lease first. */
  listOrphanedRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]>
  /** `cancelled` runs whose children were not told yet (`cancelRequestedAt` is set); oldest first (ours). */
  listUnfinishedCancels(namespace?: string, limit?: number): Promise<WorkflowRun[]>
  /**
   * Live runs whose `deadlineAt` is not after `nowMs` and whose cancel nobody asked for, earliest deadline
   * first (ours).
   */
  listOverdueRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]>
  /** Two columns of an existing row; never an insert, never a status. */
  recordStepHeartbeat(runId: string, seq: number, at: Date, progress?: unknown): Promise<void>
}
