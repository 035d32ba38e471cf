/*
 * The lane of answers over queues of jobs: results and heartbeats back to the engines.
 */
import { nextMacrotask } from '../foundation/clock.ts'
import { messageOf } from '../foundation/failure.ts'
import type { Heartbeat, StepResult } from '../wire/messages.ts'
import type { JobBroker } from './job_broker.ts'

export abstract class JobResults<Broker extends JobBroker = JobBroker> {
  protected readonly broker: Broker
  /** Dispatches that did not return yet; their results have to wait. */
  readonly #sending = new Map<string, Promise<void>>()

  constructor(broker: Broker) {
    this.broker = broker
  }

  abstract beat(beat: Heartbeat): unknown

  /** No result of `stepId` is delivered here before `sending` has settled. */
  async after(stepId: string, sending: Promise<void>): Promise<void> {
    this.#sending.set(stepId, sending)
    try {
      await sending
    } finally {
      if (this.#sending.get(stepId) === sending) this.#sending.delete(stepId)
    }
  }

  send(result: StepResult): Promise<void> {
    return this.broker.send(this.broker.names.results, 'result', result)
  }

  /** One that cannot be sent is replaced by one that says so. Rejects when that cannot be sent either. */
  async publish(result: StepResult, sending = this.send(result)): Promise<void> {
    try {
      await sending
    } catch (error) {
      const { runId, seq, stepId, attempt, startedAt } = result
      const message = `the result could not be sent: ${messageOf(error)}`
      const lost = { runId, seq, stepId, startedAt, attempt, error: { message, retryable: true } }
      await this.send({ ...lost, status: 'failed' }).catch(() => {
        throw error
      })
      this.broker.report(error)
    }
  }

  protected async deliver(
    payload: unknown,
    take: (result: StepResult) => Promise<void>
  ): Promise<void> {
    const result = this.broker.read('result', payload)
    if (!result) return
    const sending = this.#sending.get(result.stepId)
    if (sending) {
      await sending.catch(() => {})
      await nextMacrotask()
    }
    await take(result)
  }
}
