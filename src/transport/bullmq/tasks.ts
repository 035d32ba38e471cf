/*
 * Tasks over BullMQ: a job that fails is an accident of the infrastructure, and for a step becomes a
 * failure to be retried.
 */
import { decode } from '../../wire/codec.ts'
import type { HeldJob, QueueConsumption } from '../job_broker.ts'
import { JobTasks, type Served, failureOf, isTurn } from '../job_tasks.ts'
import type { Broker } from './broker.ts'
import type { Consumer } from './consumer.ts'
import type { Results } from './results.ts'
import { runStep } from './run_step.ts'

/** The lock on queues that serve turns: a turn may keep the event loop busy, which renews no lock. */
const TURN_LOCK_MS = 300_000

export class Tasks extends JobTasks<Broker, Results> {
  protected consume(queue: QueueConsumption, served: Served): Consumer {
    const { lockDuration } = this.broker.settings
    return this.broker.consume({
      ...queue,
      lockDuration: lockDuration ?? (served.turns.size > 0 ? TURN_LOCK_MS : undefined),
      failsOnThrow: (data) => !isTurn(data),
      onFailed: (data, error) => this.#bridge(data, error),
    })
  }

  protected async step(served: Served, data: unknown, job: HeldJob): Promise<boolean> {
    const task = decode('task', data)
    await this.broker.subscriptions.ready()
    const { clock, timers, settings } = this.broker
    const result = await runStep(task, served.steps.get(task.name), {
      clock,
      timers,
      timeoutMs: settings.stepTimeoutMs,
      silenced: () => job.givenBack,
      beat: (beat) => this.results.beat(beat),
    })
    if (!job.givenBack) await job.finish(() => this.results.publish(result))
    return result.status === 'completed'
  }

  async #bridge(data: unknown, error: Error): Promise<void> {
    const failure = failureOf(data, error.message)
    if (!failure) return this.broker.report(error)
    await this.results.send(failure).catch(this.broker.report)
  }
}
