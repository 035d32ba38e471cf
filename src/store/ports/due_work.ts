/*
 * Role: due work. Required of every store. A namespace is an exact match applied before any limit; none
 * means every namespace.
 */
import type { WorkflowRun } from '../../types/run.ts'

export interface DueWork {
  /** Every `running` run, leased or not. */
  listIncompleteRuns(namespace?: string): Promise<WorkflowRun[]>
  /** `pending` runs, oldest first by `(createdAt, id)`. */
  listPendingRuns(limit: number, namespace?: string): Promise<WorkflowRun[]>
  /** `suspended` runs with `wakeAt <= nowMs` or a wake request, most overdue first. */
  listDueTimers(nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]>
}
