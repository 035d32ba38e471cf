/*
 * Sending the dispatched steps of a run again, for an operator who knows that their tasks are lost. The
 * row is written first, and only while it is still open: a result that lands meanwhile stands, and its
 * step is not sent (invariants 2, 3).
 */
import type { Clock } from '../../foundation/clock.ts'
import type { FullStore } from '../../store/full_store.ts'
import { checkpointPages } from '../../store/paging.ts'
import type { Carriers, StepSender, TurnSettings } from '../../turns/needs.ts'
import { stepTask } from '../../wire/step_task.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { isTerminalStatus, type RunResult, type WorkflowRun } from '../../types/run.ts'
import { isInFlight } from './lost_sends.ts'
import { resultOf } from './result.ts'

export interface RedispatcherOptions {
  store: FullStore
  sender: Pick<StepSender, 'send'>
  carriers: Pick<Carriers, 'traceparent' | 'context'>
  clock: Clock
  settings: Pick<TurnSettings, 'remoteRedispatchMs'>
  report: (error: unknown, what: string) => void
}

export type RedispatchResult = RunResult & { redispatched: number }

export class Redispatcher {
  readonly #options: RedispatcherOptions

  constructor(options: RedispatcherOptions) {
    this.#options = options
  }

  /** Answers how many steps were handed over; rejects when none could be and one should have been. */
  async redispatchPending(runId: string): Promise<RedispatchResult | null> {
    const { store, sender, carriers, report } = this.#options
    const run = await store.getRun(runId)
    if (!run) return null
    let redispatched = 0
    const failures: unknown[] = []
    for await (const rows of this.#pendingPages(run)) {
      for (const row of await this.#countAttempts(rows)) {
        try {
          await sender.send(stepTask(row, { carriers, priority: run.priority }))
          redispatched += 1
        } catch (error) {
          failures.push(error)
          report(error, `the dispatch of step ${row.stepId}`)
        }
      }
    }
    if (redispatched === 0 && failures.length > 0) throw failures[0]
    return { ...resultOf(run), redispatched }
  }

  #pendingPages(run: WorkflowRun): Iterable<StepCheckpoint[]> | AsyncIterable<StepCheckpoint[]> {
    if (isTerminalStatus(run.status)) return []
    // Undos are awaited by a turn, which sends them again itself.
    const open = { fromSeq: 0, statuses: ['pending' as const] }
    return checkpointPages(this.#options.store, run.id, open)
  }

  /** Writes the next attempt of each step that is still out; answers those rows. */
  async #countAttempts(rows: StepCheckpoint[]): Promise<StepCheckpoint[]> {
    const { store, clock, settings } = this.#options
    const now = clock()
    const next = rows.filter(isInFlight).map((row) => {
      const { lastHeartbeatAt, heartbeatProgress, ...kept } = row
      const again: StepCheckpoint = {
        ...kept,
        attempts: row.attempts + 1,
        enqueuedAt: new Date(now),
      }
      if (settings.remoteRedispatchMs !== undefined) {
        again.wakeAt = now + settings.remoteRedispatchMs
      }
      return again
    })
    if (next.length === 0) return next
    const verdicts = await store.saveCheckpointsIfPending(next)
    return next.filter((_, i) => verdicts[i])
  }
}
