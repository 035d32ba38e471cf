/*
 * The sender: what turns need of the transports, over the pool; without a transport every dispatch
 * fails with one sentence.
 */
import { TransportUnavailableError } from '../errors.ts'
import type { TransportPool } from '../transport/pool.ts'
import type { StepSender } from '../turns/needs.ts'
import type { RemoteTask, StepResult } from '../wire/messages.ts'
import type { SettledSteps } from './delivery/settled_steps.ts'

export class PoolSender implements StepSender {
  readonly #pool?: TransportPool
  readonly #settled: SettledSteps

  readonly #listen: StepSender['onBeat']

  constructor(options: {
    pool?: TransportPool
    settled: SettledSteps
    onBeat: StepSender['onBeat']
  }) {
    this.#pool = options.pool
    this.#settled = options.settled
    this.#listen = options.onBeat
  }

  async send(task: RemoteTask, transportId?: string): Promise<void> {
    if (!this.#pool) {
      throw new TransportUnavailableError(
        `step "${task.name}" cannot be dispatched: this engine has no transport. ` +
          'Give it one, or run the work with ctx.localStep.'
      )
    }
    await this.#pool.dispatch(task, transportId)
  }

  isVolatile(transportId?: string): boolean {
    if (!this.#pool) return false
    return this.#pool.volatile(this.#known(transportId))
  }

  isRunning(stepId: string): boolean {
    return this.#pool?.isRunning(stepId) ?? false
  }

  onceSettled(stepId: string, listener: (result: StepResult) => void): () => void {
    return this.#settled.once(stepId, listener)
  }

  onBeat(stepId: string, listener: () => void): () => void {
    return this.#listen(stepId, listener)
  }

  /** A pin that names nobody fails at the dispatch, not here. */
  #known(transportId: string | undefined): string | undefined {
    return transportId !== undefined && this.#pool?.ids.includes(transportId)
      ? transportId
      : undefined
  }
}
