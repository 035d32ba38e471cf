/*
 * Role: housekeeping. Optional.
 */
import type { WorkflowRun } from '../../types/run.ts'

export interface Housekeeping {
  /** `deleteRun` for many; answers how many runs went. */
  deleteRuns(runIds: string[]): Promise<number>
  /** Deletes events published strictly before; with `limit`, the oldest. Answers how many. */
  pruneBufferedEvents(publishedBefore: number, limit?: number): Promise<number>
  /** `running` runs without a live lease, oldest lease first. */
  listOrphanedRuns(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]>
  /** `cancelled` runs whose children were not told yet (`cancelRequestedAt` is set); oldest first (ours). */
  listUnfinishedCancels(namespace?: string, limit?: number): Promise<WorkflowRun[]>
  /** Two columns of an existing row; never an insert, never a status. */
  recordStepHeartbeat(runId: string, seq: number, at: Date, progress?: unknown): Promise<void>
}
