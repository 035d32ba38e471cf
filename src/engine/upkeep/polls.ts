/*
 * Polls: the last resort of every wake. They do nothing while the engine drains. Claims decide who runs
 * what, so passes may overlap: a long turn of one never holds up the next.
 */
import { bestEffort } from '../../foundation/failure.ts'
import type { TurnReport } from '../../turns/effects.ts'
import type { TurnQueue } from '../../turns/turn_queue.ts'
import type { RunResult } from '../../types/run.ts'
import type { Drain } from '../drain.ts'
import { resultOfTurn } from '../runs/result.ts'
import type { LostHandlers } from './lost_handlers.ts'
import type { Recovery } from './recovery.ts'
import type { Timeouts } from './timeouts.ts'

export interface PollsOptions {
  queue: TurnQueue
  recovery: Recovery
  drain: Drain
  timeouts: Pick<Timeouts, 'sweep'>
  lostHandlers: Pick<LostHandlers, 'start'>
  report: (error: unknown, what: string) => void
  timerBatchSize: number
  /** Repeats the cascades of cancels that were cut short. */
  unfinishedCancels: () => Promise<void>
  /** Gives back slots of flow-control queues whose steps are over. */
  reviewSlots: () => Promise<void>
}

export class Polls {
  readonly #options: PollsOptions
  #recovering?: Promise<RunResult[]>
  #sweeping?: Promise<void>

  constructor(options: PollsOptions) {
    this.#options = options
  }

  /** Executes every `pending` run, oldest first. */
  async pending(nowMs: number): Promise<RunResult[]> {
    const { drain, queue } = this.#options
    return drain.draining ? [] : resultsOf(await queue.runDue('pending', nowMs))
  }

  /** Executes what is due by time or by request, most overdue first. */
  async timers(nowMs: number): Promise<RunResult[]> {
    const { drain, queue, timerBatchSize, unfinishedCancels, reviewSlots, report } = this.#options
    if (drain.draining) return []
    const due = queue.runDue('due', nowMs, timerBatchSize)
    const review = bestEffort('the next pass looks again', reviewSlots(), report)
    const [reports] = await Promise.all([due, unfinishedCancels(), review])
    return resultsOf(reports)
  }

  /** Ends runs whose time is up. */
  async timeouts(nowMs: number): Promise<void> {
    const { drain, timeouts } = this.#options
    if (drain.draining) return
    this.#sweeping ??= timeouts.sweep(nowMs).finally(() => {
      this.#sweeping = undefined
    })
    return this.#sweeping
  }

  async recovery(nowMs: number): Promise<RunResult[]> {
    if (this.#options.drain.draining) return []
    this.#recovering ??= this.#recover(nowMs).finally(() => {
      this.#recovering = undefined
    })
    return this.#recovering
  }

  async #recover(nowMs: number): Promise<RunResult[]> {
    const { recovery, lostHandlers, report } = this.#options
    const moved = await recovery.recover(nowMs)
    await bestEffort('the search for lost handlers', lostHandlers.start(nowMs), report)
    return moved
  }
}

const resultsOf = (reports: TurnReport[]): RunResult[] =>
  reports.filter((report) => !report.refused && !report.lost).map(resultOfTurn)
