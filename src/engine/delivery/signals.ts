/*
 * Signals: a payload for whoever waits on a token, now or later. Delivery is one act of the store; both
 * sides look twice, so a payload and a wait that miss each other are paired.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import { messageOf } from '../../foundation/failure.ts'
import { eventKeyName, storableToken } from '../../foundation/ids.ts'
import { toStored } from '../../foundation/json.ts'
import { keyProblem } from '../../foundation/keys.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { TurnQueue } from '../../turns/turn_queue.ts'
import type { RunResult } from '../../types/run.ts'
import type { Wakes } from '../wakes.ts'
import { resultOf, resultOfTurn } from '../runs/result.ts'

export interface SignalsOptions {
  store: FullStore
  queue: TurnQueue
  wakes: Pick<Wakes, 'news' | 'handsOver'>
  clock: Clock
  maxPayloadBytes: number
}

export class Signals {
  readonly #options: SignalsOptions

  constructor(options: SignalsOptions) {
    this.#options = options
  }

  /**
   * The run's state after the turn the payload caused; with a run queue, once its wake is handed over. Null
   * when the payload was buffered.
   */
  async signal(token: string, payload: unknown): Promise<RunResult | null> {
    return this.prepare(token, payload)()
  }

  /** Refuses what cannot be delivered, before anything is written; the answer delivers. */
  prepare(
    token: string,
    payload: unknown,
    options: { buffer: boolean } = { buffer: true }
  ): () => Promise<RunResult | null> {
    const problem = keyProblem(token, Infinity)
    if (problem) throw new InvalidArgumentError('signal: the token', problem)
    const stored = this.#stored(token, payload)
    return async () => {
      const runId = await this.#deliver(storableToken(token), stored, options.buffer)
      return runId === undefined ? null : this.#wake(runId)
    }
  }

  /** Delivers and hands the wake over; waits for no turn. Answers whether somebody waited. */
  async post(token: string, payload: unknown, options: { buffer: boolean }): Promise<boolean> {
    const runId = await this.#deliver(storableToken(token), payload, options.buffer)
    if (runId !== undefined) await this.#options.wakes.news(runId)
    return runId !== undefined
  }

  /** Latest value a run published under a key. */
  async getEvent(runId: string, key: string): Promise<unknown> {
    const row = await this.#options.store.getLatestCheckpointByName(runId, eventKeyName(key))
    return row?.output
  }

  /** The run that got it. */
  async #deliver(token: string, payload: unknown, buffer: boolean): Promise<string | undefined> {
    const { store, clock } = this.#options
    const nowMs = clock()
    let outcome = await store.deliverSignal({ token, payload, nowMs, buffer })
    // A wait may have registered between the miss and the buffering.
    if (!outcome.delivered && buffer) outcome = await store.pairSignal(token, nowMs)
    return outcome.delivered ? outcome.runId : undefined
  }

  async #wake(runId: string): Promise<RunResult | null> {
    const { queue, wakes, store } = this.#options
    // A turn under way hears of it; waiting for that turn could be waiting for the caller.
    const isAwaited = !wakes.handsOver && !queue.isUnderWay(runId)
    await wakes.news(runId)
    const report = isAwaited ? await queue.turnOf(runId) : undefined
    if (report && !report.refused && !report.lost) return resultOfTurn(report)
    const run = await store.getRun(runId)
    return run && resultOf(run)
  }

  #stored(token: string, payload: unknown): unknown {
    try {
      const what = `the payload of signal "${token}"`
      return toStored(payload, what, this.#options.maxPayloadBytes)
    } catch (error) {
      throw new InvalidArgumentError('signal:', messageOf(error))
    }
  }
}
