/*
 * The lane of tasks over queues of jobs: steps and turns out to the queue of their token, and in from the
 * queues of the names that are served here. A task is told by its shape. A handler's error is an answer;
 * a step is left to the driver.
 */
import { TransportUnavailableError } from '../errors.ts'
import type { StepHandler } from '../types/step.ts'
import { taskKindOf } from '../wire/codec.ts'
import type { RemoteTask, StepResult, WorkflowTask } from '../wire/messages.ts'
import { isDefaultPool, partitionOf, routingToken, tokenWithin } from '../wire/names.ts'
import { ConcurrencyController } from './concurrency.ts'
import type { HeldJob, JobBroker, QueueConsumer, QueueConsumption } from './job_broker.ts'
import type { JobResults } from './job_results.ts'
import type { WorkflowTurnHandler } from './ports.ts'
import { runTurn } from './run_turn.ts'
import { ownCopy } from './volatile.ts'

/** The handlers of one queue. */
export interface Served {
  steps: Map<string, StepHandler>
  turns: Map<string, WorkflowTurnHandler>
  consumer?: QueueConsumer
}

export abstract class JobTasks<Broker extends JobBroker, Results extends JobResults> {
  readonly controller: ConcurrencyController
  protected readonly broker: Broker
  protected readonly results: Results
  readonly #onServing: (token: string) => void
  readonly #served = new Map<string, Served>()

  /** `onServing` is told of each token when its consumption begins. */
  constructor(broker: Broker, results: Results, onServing: (token: string) => void) {
    this.broker = broker
    this.results = results
    this.#onServing = onServing
    this.controller = new ConcurrencyController({
      concurrency: broker.settings.concurrency,
      what: `transports.${broker.driver}: concurrency`,
      clock: broker.clock,
    })
    this.controller.onChange(() => {
      for (const { consumer } of this.#served.values()) consumer?.kick()
    })
  }

  protected abstract consume(queue: QueueConsumption, served: Served): QueueConsumer

  /** Runs a step and sends its result. True: it went well. */
  protected abstract step(served: Served, payload: unknown, job: HeldJob): Promise<boolean>

  async dispatch(task: RemoteTask): Promise<void> {
    const copy = ownCopy(task)
    const token = this.#ownToken(task.group, partitionOf(task.group, task.name))
    const options = { priority: task.priority, step: task }
    const sending = this.broker.send(this.broker.names.tasks(token), 'task', copy, options)
    await this.results.after(task.stepId, sending)
  }

  async dispatchTurn(task: WorkflowTask): Promise<void> {
    const { group, priority } = task
    const at = group.lastIndexOf('@')
    const token = this.#ownToken(group, at > 0 ? group.slice(at + 1) : undefined)
    await this.broker.send(this.broker.names.tasks(token), 'workflow', task, { priority })
  }

  handle(name: string, fn: StepHandler, partition = this.broker.settings.partition): void {
    this.#serve(name, partition, ({ steps }) => void steps.set(name, fn))
  }

  handleTurn(name: string, turn: WorkflowTurnHandler): void {
    const { partition } = this.broker.settings
    this.#serve(name, partition, ({ turns }) => void turns.set(name, turn))
  }

  /** The token whose queue carries `group` here. */
  tokenOf(group: string): string {
    return tokenWithin(this.broker.namespace, group)
  }

  stop(): void {
    this.controller.stop()
  }

  /** Any pool but that of the namespace has its workers on the bare prefix. */
  #ownToken(group: string, partition: string | undefined): string {
    const { namespace, driver } = this.broker
    if (namespace === undefined || isDefaultPool(partition)) return group
    if (partition === namespace) return this.tokenOf(group)
    throw new TransportUnavailableError(
      `${driver}: "${group}" is for the pool "${partition}", but this transport is in the namespace ` +
        `"${namespace}", whose queues no worker of that pool reads. Dispatch it over a transport with ` +
        "namespace: 'default'"
    )
  }

  #serve(name: string, partition: string | undefined, add: (served: Served) => void): void {
    const token = () =>
      routingToken(name, partition === this.broker.namespace ? undefined : partition)
    const known = this.#served.get(token())
    const served = known ?? { steps: new Map(), turns: new Map() }
    add(served)
    if (known) return
    this.#served.set(token(), served)
    this.broker.gate.whenOpen(() => this.#consume(token, served))
  }

  #consume(token: () => string, served: Served): void {
    const { settings, timers } = this.broker
    this.controller.start(timers)
    const queue: QueueConsumption = {
      queue: () => this.broker.names.tasks(token()),
      slots: () => this.controller.limit,
      maxStalledCount: settings.maxStalledCount,
      handle: (payload, job) => this.#take(served, payload, job),
    }
    served.consumer = this.consume(queue, served)
    this.#onServing(token())
  }

  async #take(served: Served, payload: unknown, job: HeldJob): Promise<void> {
    const isStep = !isTurn(payload)
    const began = this.broker.clock()
    let ok = false
    this.controller.started()
    try {
      ok = await (isStep ? this.step(served, payload, job) : this.#turn(served, payload, job))
    } finally {
      if (job.givenBack) this.controller.abandoned()
      else this.controller.finished({ ok, durationMs: this.broker.clock() - began, isStep })
    }
  }

  async #turn(served: Served, payload: unknown, job: HeldJob): Promise<boolean> {
    const task = this.broker.read('workflow', payload)
    if (!task) return false
    const { clock, timers } = this.broker
    const decision = await runTurn(task, served.turns.get(task.workflow), {
      clock,
      timers,
      silenced: () => job.givenBack,
      beat: (beat) => this.results.beat(beat),
    })
    if (job.givenBack) return false
    await job.finish(() => this.broker.send(this.broker.names.decisions, 'decision', decision))
    return decision.status !== 'failed'
  }
}

export const isTurn = (payload: unknown): payload is WorkflowTask =>
  typeof payload === 'object' && taskKindOf(payload) === 'workflow'

/** The failure of a step that has no answer of its own; undefined for a turn and for what is no task. */
export function failureOf(payload: unknown, reason: string, code?: string): StepResult | undefined {
  if (typeof payload !== 'object' || payload === null || isTurn(payload)) return undefined
  const { runId, seq, stepId, attempt } = payload as Record<string, unknown>
  if (typeof runId !== 'string' || typeof seq !== 'number' || typeof stepId !== 'string') {
    return undefined
  }
  const message = `remote step worker failed: ${reason}`
  const error = { message, ...(code !== undefined && { code }), retryable: true }
  const step = { runId, seq, stepId, ...(typeof attempt === 'number' && { attempt }) }
  return { ...step, status: 'failed', error }
}
