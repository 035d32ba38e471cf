/*
 * Polls: the last resort of every wake. Passes of one kind never overlap in this process, and do nothing
 * while the engine drains.
 */
import type { TurnReport } from '../../turns/effects.ts'
import type { TurnQueue } from '../../turns/turn_queue.ts'
import type { RunResult } from '../../types/run.ts'
import type { Drain } from '../drain.ts'
import { resultOfTurn } from '../runs/result.ts'
import type { Recovery } from './recovery.ts'

export interface PollsOptions {
  queue: TurnQueue
  recovery: Recovery
  drain: Drain
  timerBatchSize: number
}

export class Polls {
  readonly #options: PollsOptions
  readonly #passes = new Map<string, Promise<RunResult[]>>()

  constructor(options: PollsOptions) {
    this.#options = options
  }

  /** Executes every `pending` run, oldest first. */
  pending(nowMs: number): Promise<RunResult[]> {
    return this.#pass('pending', async () => resultsOf(await this.#due('pending', nowMs)))
  }

  /** Executes what is due by time or by request, most overdue first. */
  timers(nowMs: number): Promise<RunResult[]> {
    return this.#pass('due', async () =>
      resultsOf(await this.#due('due', nowMs, this.#options.timerBatchSize))
    )
  }

  recovery(nowMs: number): Promise<RunResult[]> {
    return this.#pass('recovery', () => this.#options.recovery.recover(nowMs))
  }

  #due(kind: 'pending' | 'due', nowMs: number, limit?: number): Promise<TurnReport[]> {
    return this.#options.queue.runDue(kind, nowMs, limit)
  }

  #pass(kind: string, work: () => Promise<RunResult[]>): Promise<RunResult[]> {
    if (this.#options.drain.draining) return Promise.resolve([])
    const running = this.#passes.get(kind)
    if (running) return running
    const pass = work().finally(() => this.#passes.delete(kind))
    this.#passes.set(kind, pass)
    return pass
  }
}

const resultsOf = (reports: TurnReport[]): RunResult[] =>
  reports.filter((report) => !report.refused).map(resultOfTurn)
