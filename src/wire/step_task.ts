/*
 * The task of a dispatched step, as its row has it: for the turn that sends it first, and for whoever
 * sends it again.
 */
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { RemoteTask } from './messages.ts'

export interface TaskExtras {
  /** The trace and request context of the caller. */
  carriers: {
    traceparent(): string | undefined
    context(): Record<string, unknown> | undefined
  }
  priority?: number
}

export function stepTask(row: StepCheckpoint, { carriers, priority }: TaskExtras): RemoteTask {
  const task: RemoteTask = {
    runId: row.runId,
    seq: row.seq,
    name: row.name,
    stepId: row.stepId,
    group: row.workerGroup ?? row.name,
    input: row.input,
    attempt: row.attempts,
  }
  const traceparent = carriers.traceparent()
  const context = carriers.context()
  if (traceparent !== undefined) task.traceparent = traceparent
  if (context !== undefined) task.context = context
  if (priority !== undefined) task.priority = priority
  return task
}
