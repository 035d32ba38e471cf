/*
 * Operator verbs: running a run now, and bringing a failed or dead one back. A retry first takes back
 * the attempts of what failed, or the replay would rethrow its own history at once; which failures are
 * really tried again the next turn decides (turns/reopen.ts).
 */
import { RunNotFoundError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { TurnQueue } from '../../turns/turn_queue.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { RunResult, RunStatus, WorkflowRun } from '../../types/run.ts'
import type { Wakes } from '../wakes.ts'
import { resultOf, resultOfTurn } from './result.ts'

export interface OperatorOptions {
  store: FullStore
  queue: TurnQueue
  wakes: Pick<Wakes, 'started' | 'newsInBackground'>
  clock: Clock
}

const FAILED: RunStatus[] = ['failed', 'dead']
const PARKED: RunStatus[] = ['pending', 'suspended', 'blocked', 'running']

export class Operator {
  readonly #options: OperatorOptions

  constructor(options: OperatorOptions) {
    this.#options = options
  }

  /** Executes a turn of the run here and now; a failed run is re-opened first. */
  async resume(runId: string): Promise<RunResult> {
    const { store, queue, wakes } = this.#options
    const run = await store.getRun(runId)
    if (!run) throw new RunNotFoundError(runId)
    if (run.status === 'completed' || run.status === 'cancelled' || run.status === 'dead') {
      return resultOf(run)
    }
    if (run.status === 'failed') await this.#reopen(run, ['failed'])
    const report = await queue.run(runId)
    if (report?.refused) throw report.refused
    if (report && !report.lost) return resultOfTurn(report)
    // Another executor holds it: it will hear of the request.
    if (!report) wakes.newsInBackground(runId)
    return resultOf((await store.getRun(runId)) ?? run)
  }

  /** Sets the run back to `pending` and dispatches it; never runs the body inline. */
  async requeue(runId: string): Promise<RunResult | null> {
    const { store, wakes, clock } = this.#options
    const run = await store.getRun(runId)
    if (!run) return null
    if (run.status === 'completed' || run.status === 'cancelled') return resultOf(run)
    const leased = (run.lockedUntil ?? 0) > clock()
    // Clearing a live worker's lease would run the body twice.
    if (run.status === 'running' && leased) return resultOf(run)
    const reopened = FAILED.includes(run.status)
      ? await this.#reopen(run, FAILED)
      : await store.updateRunIf(runId, PARKED, {
          status: 'pending',
          wakeAt: undefined,
          updatedAt: new Date(clock()),
        })
    if (!reopened) return this.#current(runId)
    await store.releaseRunLock(runId)
    wakes.started(runId)
    return { runId, status: 'pending' }
  }

  /** Takes back the attempts of what failed, then the failure itself. */
  async #reopen(run: WorkflowRun, from: RunStatus[]): Promise<boolean> {
    const { store, clock } = this.#options
    for (const row of await store.listCheckpoints(run.id)) {
      const reset = resetRow(row, clock())
      if (reset) await store.saveCheckpoint(reset)
    }
    return store.updateRunIf(run.id, from, {
      status: 'pending',
      error: undefined,
      recoveryAttempts: 0,
      wakeAt: undefined,
      wakeRequestedAt: undefined,
      cancelRequestedAt: undefined,
      updatedAt: new Date(clock()),
    })
  }

  async #current(runId: string): Promise<RunResult | null> {
    const run = await this.#options.store.getRun(runId)
    return run && resultOf(run)
  }
}

/** A row whose failure is taken back; undefined for one that stays. */
function resetRow(row: StepCheckpoint, now: number): StepCheckpoint | undefined {
  if (row.seq < 0) {
    return row.attempts === 0 ? undefined : { ...row, status: 'failed', attempts: 0 }
  }
  if (row.kind !== 'local' && row.kind !== 'remote') return undefined
  const { error = { message: 'failed' }, attempts } = row
  // An answer that came while the run was over: a failure nobody has seen is simply tried again.
  if (row.status === 'pending' && row.error) {
    return { ...row, status: 'failed', attempts: 0, error: { ...error, retryable: true } }
  }
  if (row.status !== 'failed' || attempts === 0) return undefined
  const reset = { attempts, retryable: error.retryable }
  return { ...row, attempts: 0, wakeAt: now, error: { ...error, retryable: true, reset } }
}
