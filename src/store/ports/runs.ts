/*
 * Role: run rows. Required of every store.
 */
import type { RunQuery } from '../../types/query.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'

export interface RunRows {
  /** Inserts; rejects for a taken id and leaves the winner untouched. */
  createRun(run: WorkflowRun): Promise<void>
  /**
   * Applies a patch whatever the status. A key that is present is written, `undefined` clears; an
   * absent key leaves the column alone.
   */
  updateRun(runId: string, patch: Partial<WorkflowRun>): Promise<void>
  /**
   * Applies a patch only if the persisted status is one of `expected` when the write happens; answers
   * whether it did. One conditional write, never a read before it (invariant 4).
   */
  updateRunIf(runId: string, expected: RunStatus[], patch: Partial<WorkflowRun>): Promise<boolean>
  getRun(runId: string): Promise<WorkflowRun | null>
  /** Removes one run with its checkpoints, waiters and attribute rows. Unknown id: nothing. */
  deleteRun(runId: string): Promise<void>
  /** Runs matching every predicate, newest first, ties by id descending. */
  listRuns(query: RunQuery): Promise<WorkflowRun[]>
}
