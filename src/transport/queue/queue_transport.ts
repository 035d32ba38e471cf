/*
 * Carries steps, turns, tenants and runs over the adapters of `@adonisjs/queue`. Delivery: at least once,
 * across processes and crashes; the claim of a job is renewed while it is handled, and one whose worker
 * fell silent comes again. Polls: an adapter tells nothing by itself. This file only hands each member of
 * the port to its lane.
 */
import type { StepHandler } from '../../types/step.ts'
import type {
  Heartbeat,
  RemoteTask,
  RunDispatch,
  RunReply,
  RunRequest,
  StartRunMessage,
  StepResult,
  TenantEvent,
  WorkflowDecision,
  WorkflowStepEvent,
  WorkflowTask,
} from '../../wire/messages.ts'
import { Messages } from '../job_messages.ts'
import { Runs } from '../job_runs.ts'
import type { Fleet, Transport, WorkflowTurnHandler } from '../ports.ts'
import { type WorkerKeyStore, WorkerKeys } from '../worker_keys.ts'
import { Broker } from './broker.ts'
import { type QueueTransportConfig, readSettings } from './options.ts'
import { Results } from './results.ts'
import { Tasks } from './tasks.ts'
import { TenantLane } from './tenant.ts'

export type { WorkerKeyStore } from '../worker_keys.ts'
export type { QueueAdapter, QueueJob } from './adapter.ts'
export type { QueueTransportConfig } from './options.ts'

/**
 * A transport over an adapter of `@adonisjs/queue`. What is known of the fleet (`groupHealth` and the
 * like) is there only with `workerKeys`.
 */
export class QueueTransport implements Transport {
  readonly #broker: Broker
  readonly #results: Results
  readonly #tasks: Tasks
  readonly #messages: Messages
  readonly #tenant: TenantLane
  readonly #runs: Runs
  readonly #workerKeys?: WorkerKeys
  #closing?: Promise<void>

  readonly groupHealth?: Fleet['groupHealth']
  readonly listWorkerGroups?: Fleet['listWorkerGroups']
  readonly listWorkerDescriptors?: Fleet['listWorkerDescriptors']
  readonly readAllWorkerDescriptors?: Fleet['readAllWorkerDescriptors']
  readonly readAllWorkerHeartbeats?: Fleet['readAllWorkerHeartbeats']

  /** Takes `adapter`, not `connection`. Throws `InvalidArgumentError` for an option that cannot be used. */
  constructor(config: QueueTransportConfig) {
    const settings = readSettings(config)
    this.#broker = new Broker(settings)
    this.#results = new Results(this.#broker)
    this.#tasks = new Tasks(this.#broker, this.#results, (token) => this.#workerKeys?.serve(token))
    this.#messages = new Messages(this.#broker)
    this.#tenant = new TenantLane(this.#broker, this.#messages)
    this.#runs = new Runs(this.#broker)
    if (!settings.workerKeys) return
    const workers = this.#readKeys(settings.workerKeys)
    this.#workerKeys = workers
    this.groupHealth = async (group) => {
      const token = this.#tasks.tokenOf(group)
      const [depth, liveWorkers] = await Promise.all([
        this.#broker.adapter.sizeOf(this.#broker.names.tasks(token)),
        workers.heartbeats(token),
      ])
      return { group, depth, liveWorkers: liveWorkers.map((worker) => ({ ...worker, group })) }
    }
    this.listWorkerGroups = () => workers.tokens()
    this.listWorkerDescriptors = (token) => this.#descriptorsOf(workers, token)
    this.readAllWorkerDescriptors = () => workers.descriptors()
    this.readAllWorkerHeartbeats = () => workers.heartbeats()
  }

  async dispatch(task: RemoteTask): Promise<void> {
    this.#broker.assertOpen()
    await this.#tasks.dispatch(task)
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.#results.onResult(handler)
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    this.#results.onHeartbeat(handler)
  }

  handle(name: string, fn: StepHandler, partition?: string): void {
    this.#tasks.handle(name, fn, partition)
  }

  handleWorkflow(name: string, turn: WorkflowTurnHandler): void {
    this.#tasks.handleTurn(name, turn)
  }

  /** Goes out with the beats of the next poll interval. */
  async heartbeat(beat: Heartbeat): Promise<void> {
    this.#broker.assertOpen()
    this.#results.beat(beat)
  }

  async dispatchWorkflowTask(task: WorkflowTask): Promise<void> {
    this.#broker.assertOpen()
    await this.#tasks.dispatchTurn(task)
  }

  onDecision(handler: (decision: WorkflowDecision) => Promise<void>): void {
    this.#messages.consume('decision', () => this.#broker.names.decisions, handler)
  }

  async dispatchStepEvent(event: WorkflowStepEvent): Promise<void> {
    this.#broker.assertOpen()
    await this.#broker.send(this.#broker.names.stepEvents, 'stepEvent', event)
  }

  onStepEvent(handler: (event: WorkflowStepEvent) => Promise<void>): void {
    this.#messages.consume('stepEvent', () => this.#broker.names.stepEvents, handler)
  }

  async dispatchStartRun(message: StartRunMessage): Promise<void> {
    this.#broker.assertOpen()
    await this.#tenant.dispatchStartRun(message)
  }

  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void {
    this.#tenant.onStartRun(handler)
  }

  async dispatchRunRequest(request: RunRequest): Promise<void> {
    this.#broker.assertOpen()
    await this.#tenant.dispatchRunRequest(request)
  }

  onRunRequest(handler: (request: RunRequest) => Promise<void>): void {
    this.#tenant.onRunRequest(handler)
  }

  async publishRunReply(reply: RunReply): Promise<void> {
    this.#broker.assertOpen()
    await this.#tenant.publishRunReply(reply)
  }

  onRunReply(handler: (reply: RunReply) => void): void {
    this.#tenant.onRunReply(handler)
  }

  async publishTenantEvent(event: TenantEvent): Promise<void> {
    this.#broker.assertOpen()
    await this.#tenant.publishTenantEvent(event)
  }

  onTenantEvent(tenant: string, handler: (event: TenantEvent) => void): () => void {
    return this.#tenant.onTenantEvent(tenant, handler)
  }

  async dispatchRun(run: RunDispatch, scope?: string): Promise<void> {
    this.#broker.assertOpen()
    await this.#runs.dispatch(run, scope)
  }

  onRun(scope: string, handler: (run: RunDispatch) => Promise<void>): () => Promise<void> {
    return this.#runs.on(scope, handler)
  }

  useNamespace(namespace: string): void {
    this.#broker.useNamespace(namespace)
  }

  deferConsumers(): void {
    this.#broker.gate.defer()
  }

  startConsumers(): void {
    this.#broker.gate.start()
  }

  /**
   * Takes nothing more and waits up to `closeTimeoutMs` for what is in flight; what still runs then is
   * handed back to its queue, uncounted, and what it answers later is not heard.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#broker.refuse()
    this.#tasks.stop()
    const leaving = [this.#tenant.close(), this.#workerKeys?.close()]
    await this.#broker.close(Promise.all(leaving))
    this.#results.stop()
  }

  #readKeys(store: WorkerKeyStore): WorkerKeys {
    const { settings, clock, timers, report } = this.#broker
    return new WorkerKeys({
      store,
      names: () => this.#broker.keys,
      instanceId: settings.instanceId,
      status: () => this.#tasks.controller.status(),
      clock,
      timers,
      onError: report,
    })
  }

  /** `[]` also when the store of keys does not answer: whoever asks goes on without. */
  async #descriptorsOf(workers: WorkerKeys, token: string) {
    try {
      return await workers.descriptors(this.#tasks.tokenOf(token))
    } catch (error) {
      if (!this.#broker.closed) this.#broker.report(error)
      return []
    }
  }
}
