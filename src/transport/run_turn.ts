/*
 * One turn of a remote workflow in this process: it beats for its run at once and while it lasts. A name
 * that nobody serves here is a decision; what the handler throws is not, and the turn comes again.
 */
import type { Clock, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { Heartbeat, WorkflowDecision, WorkflowTask } from '../wire/messages.ts'
import type { WorkflowTurnHandler } from './ports.ts'
import { HEARTBEAT_INTERVAL_MS } from './step_logger.ts'

export interface RunOptions {
  clock: Clock
  timers: Timers
  /** True once its beats and its answer are void. */
  silenced(): boolean
  beat(beat: Heartbeat): unknown
}

export async function runTurn(
  task: WorkflowTask,
  turn: WorkflowTurnHandler | undefined,
  { clock, timers, silenced, beat }: RunOptions
): Promise<WorkflowDecision> {
  const { taskId, runId, group } = task
  if (!turn) {
    const error = { message: `no workflow ${task.workflow}`, code: 'no_workflow' }
    return { taskId, runId, status: 'failed', commands: [], error }
  }
  const alive = (): void => {
    const sign: Heartbeat = { runId, seq: 0, group, at: clock() }
    // A lost beat costs nothing but a later one.
    if (!silenced()) isolate(() => beat(sign))
  }
  alive()
  const stop = timers.every(HEARTBEAT_INTERVAL_MS, alive)
  try {
    return await turn(task)
  } finally {
    stop()
  }
}
