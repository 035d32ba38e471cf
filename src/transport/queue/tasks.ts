/*
 * Tasks over the adapters: one that silenced too many workers is not run again. A step fails then, to be
 * retried, a turn is dropped.
 */
import { DurableError } from '../../foundation/failure.ts'
import { WireFormatError, decode } from '../../wire/codec.ts'
import type { RemoteTask } from '../../wire/messages.ts'
import type { HeldJob, QueueConsumption } from '../job_broker.ts'
import { JobTasks, type Served, failureOf, isTurn } from '../job_tasks.ts'
import { runStepHandler } from '../run_step_handler.ts'
import type { Broker } from './broker.ts'
import type { JobLane } from './job_lane.ts'
import type { Results } from './results.ts'

export class Tasks extends JobTasks<Broker, Results> {
  protected consume(queue: QueueConsumption): JobLane {
    const { maxStalledCount, idleBackoffMax } = this.broker.settings
    const reason = `stalled more than ${maxStalledCount} times`
    return this.broker.consume({
      ...queue,
      idleBackoffMax,
      onFailed: (payload) => this.#fail(payload, reason, 'stalled'),
    })
  }

  /** A claim that was lost has its answer sent all the same: the work is done, and the engine takes one. */
  protected async step(served: Served, payload: unknown, job: HeldJob): Promise<boolean> {
    let task: RemoteTask
    try {
      task = decode('task', payload)
    } catch (error) {
      if (!(error instanceof WireFormatError)) throw error
      await job.finish(() => this.#fail(payload, error.message))
      return false
    }
    const { clock, timers } = this.broker
    const result = await runStepHandler(task, served.steps.get(task.name), {
      clock,
      timers,
      emitBeat: (beat) => (job.givenBack ? undefined : this.results.beat(beat)),
    })
    if (!job.givenBack) await job.finish(() => this.results.publish(result))
    return result.status === 'completed'
  }

  /** What is no step is reported. */
  async #fail(payload: unknown, reason: string, code?: string): Promise<void> {
    const failure = failureOf(payload, reason, code)
    if (failure) return this.results.publish(failure)
    const what = isTurn(payload) ? `turn ${payload.taskId}` : 'message'
    const problem = `queue: the ${what} on a queue of tasks is dropped: ${reason}`
    this.broker.report(new DurableError(problem, { code: code ?? 'wire_format' }))
  }
}
