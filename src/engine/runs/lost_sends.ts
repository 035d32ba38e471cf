/*
 * Steps whose tasks the dead executor of a run may not have sent: it died between a row and its
 * dispatch. They go out again, under their own step ids, before the run leaves `running`: afterwards
 * nobody could tell them from tasks that are on their way (invariants 2, 3).
 */
import type { FullStore } from '../../store/full_store.ts'
import type { Carriers, StepSender } from '../../turns/needs.ts'
import { stepTask } from '../../wire/step_task.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'

export interface LostSendsOptions {
  store: Pick<FullStore, 'queryCheckpoints'>
  sender: Pick<StepSender, 'send' | 'isVolatile'>
  carriers: Pick<Carriers, 'traceparent' | 'context'>
}

export class LostSends {
  readonly #options: LostSendsOptions

  constructor(options: LostSendsOptions) {
    this.#options = options
  }

  /**
   * For a `running` run under a lease of the caller. Answers the steps in flight; rejects, with the rest
   * unsent, when one could not be sent: the caller leaves the run as it is.
   */
  async resend(run: WorkflowRun): Promise<StepCheckpoint[]> {
    const { store, sender, carriers } = this.#options
    const rows = await store.queryCheckpoints(run.id, { statuses: ['pending'] })
    const inFlight = rows.filter(isInFlight)
    const claimedAt = run.claimedAt?.getTime() ?? Infinity
    for (const row of inFlight) {
      // A volatile transport's task that died, or one with a window, is sent again once it is silent.
      if (row.enqueuedAt.getTime() < claimedAt || sender.isVolatile()) continue
      if (row.timeoutMs !== undefined) continue
      await sender.send(stepTask(row, { carriers, priority: run.priority }))
    }
    return inFlight
  }
}

/**
 * A dispatched step nobody has answered; one that was given up, or answered too late, notes an error. An
 * undo is awaited by a turn, which sends it again itself.
 */
export const isInFlight = (row: StepCheckpoint): boolean =>
  row.kind === 'remote' && row.status === 'pending' && row.seq >= 0 && row.error === undefined
