/*
 * Cancelling runs: at once, or by a durable intent that makes the next turn undo what was done.
 */
import type { Clock } from '../../foundation/clock.ts'
import type { FullStore } from '../../store/full_store.ts'
import {
  isTerminalStatus,
  LIVE_RUN_STATUSES,
  type RunResult,
  type WorkflowRun,
} from '../../types/run.ts'
import type { EventHub } from '../event_hub.ts'
import type { Wakes } from '../wakes.ts'
import { resultOf } from './result.ts'

export interface CancelOptions {
  /** Run the saga undos first, highest position first. */
  compensate?: boolean
  /** Who asked; kept on the run. */
  by?: string
}

export interface CancellerOptions {
  store: FullStore
  hub: EventHub
  wakes: Pick<Wakes, 'newsInBackground'>
  clock: Clock
}

export class Canceller {
  readonly #options: CancellerOptions

  constructor(options: CancellerOptions) {
    this.#options = options
  }

  async cancel(runId: string, options: CancelOptions = {}): Promise<RunResult | null> {
    const { store } = this.#options
    const run = await store.getRun(runId)
    if (!run) return null
    if (isTerminalStatus(run.status)) return resultOf(run)
    // Undos that were asked for are not skipped by a second, plain cancel.
    if (run.cancelRequestedAt !== undefined) return resultOf(run)
    // A run that never began has nothing to undo.
    if (options.compensate && run.turns !== undefined) return this.#request(run, options.by)
    return this.#cancelNow(run, options.by)
  }

  async #request(run: WorkflowRun, by: string | undefined): Promise<RunResult | null> {
    const { store, wakes, clock } = this.#options
    const now = clock()
    const patch: Partial<WorkflowRun> = { cancelRequestedAt: now, wakeRequestedAt: now }
    if (by !== undefined) patch.cancelRequestedBy = by
    const live = await store.updateRunIf(run.id, [...LIVE_RUN_STATUSES], patch)
    if (!live) return this.#current(run.id)
    wakes.newsInBackground(run.id)
    return resultOf(run)
  }

  async #cancelNow(run: WorkflowRun, by: string | undefined): Promise<RunResult | null> {
    const { store, hub, clock } = this.#options
    const error = { message: 'cancelled' }
    const patch: Partial<WorkflowRun> = {
      status: 'cancelled',
      error,
      wakeAt: undefined,
      wakeRequestedAt: undefined,
      updatedAt: new Date(clock()),
    }
    if (by !== undefined) patch.cancelRequestedBy = by
    if (!(await store.updateRunIf(run.id, [...LIVE_RUN_STATUSES], patch))) {
      return this.#current(run.id)
    }
    const { id, workflow, namespace } = run
    hub.emit({ type: 'run.failed', runId: id, workflow, namespace, error })
    const waiters = await store.listSignalWaitersByRunIds([id])
    for (const waiter of waiters) await store.removeSignalWaiter(waiter)
    return { runId: id, status: 'cancelled', error }
  }

  async #current(runId: string): Promise<RunResult | null> {
    const run = await this.#options.store.getRun(runId)
    return run && resultOf(run)
  }
}
