/*
 * A broker that a test plays: tasks stay where they are until the test answers them, late, twice or never.
 * It does not lose tasks with a process, so it is not volatile. Engines connect to it one by one; a
 * result goes to the engine that the test names, else to the one that connected last and still lives.
 */
import type { Transport } from '../../src/transport/ports.ts'
import type { StepError } from '../../src/foundation/failure.ts'
import type { Heartbeat, RemoteTask, StepResult } from '../../src/wire/messages.ts'
import { until } from './until.ts'

export interface HeldPort extends Transport {
  /** Consumes nothing more. */
  disconnect(): void
}

interface Connection {
  port: HeldPort
  onResult?: (result: StepResult) => Promise<void>
  onHeartbeat?: (beat: Heartbeat) => Promise<void>
}

type Which = string | RemoteTask

export class HeldTransport {
  /** Every task that was handed over, in order. */
  readonly sent: RemoteTask[] = []
  /** While set, a dispatch is refused with it. */
  refuse?: Error
  readonly #connections: Connection[] = []

  connect(): HeldPort {
    const connection: Connection = {
      port: {
        dispatch: async (task) => {
          if (this.refuse) throw this.refuse
          this.sent.push(structuredClone(task))
        },
        onResult: (handler) => void (connection.onResult = handler),
        onHeartbeat: (handler) => void (connection.onHeartbeat = handler),
        disconnect: () => void this.#connections.splice(this.#connections.indexOf(connection), 1),
      },
    }
    this.#connections.push(connection)
    return connection.port
  }

  /** The `nth` task of a step name, once it was dispatched. */
  async task(name: string, nth = 1): Promise<RemoteTask> {
    const found = () => this.sent.filter((task) => task.name === name)[nth - 1]
    await until(found, () => `task ${nth} of "${name}" among ${JSON.stringify(this.sent)}`)
    return found()
  }

  /** How often a step id was sent. */
  times(stepId: string): number {
    return this.sent.filter((task) => task.stepId === stepId).length
  }

  /** Resolves when the engine acknowledged the result, rejects when it did not take it. */
  async complete(which: Which, output?: unknown, via?: HeldPort): Promise<void> {
    await this.deliver({ ...this.#keyOf(which), status: 'completed', output }, via)
  }

  async fail(which: Which, error: string | StepError, via?: HeldPort): Promise<void> {
    const stepError = typeof error === 'string' ? { message: error } : error
    await this.deliver({ ...this.#keyOf(which), status: 'failed', error: stepError }, via)
  }

  async deliver(result: StepResult, via?: HeldPort): Promise<void> {
    const connection = this.#connections.findLast((one) => via === undefined || one.port === via)
    if (!connection?.onResult) throw new Error('no engine consumes results')
    await connection.onResult(structuredClone(result))
  }

  async beat(which: Which, progress?: unknown): Promise<void> {
    const { runId, seq, stepId } = this.#keyOf(which)
    const beat: Heartbeat = { runId, seq, stepId, group: 'held' }
    if (progress !== undefined) beat.progress = progress
    await this.#connections.at(-1)?.onHeartbeat?.(beat)
  }

  #keyOf(which: Which): Pick<StepResult, 'runId' | 'seq' | 'stepId'> {
    const task =
      typeof which === 'string' ? this.sent.findLast(({ stepId }) => stepId === which) : which
    if (!task) throw new Error(`no task ${String(which)} was sent`)
    const { runId, seq, stepId } = task
    return { runId, seq, stepId }
  }
}
