/*
 * Carries steps, turns, tenants and runs over BullMQ. Delivery: at least once, across processes and
 * crashes; the lock of a task is renewed while its handler runs, and a task whose worker died comes
 * again. Redis pushes (BullMQ waits on a key); the store stays the truth for everything that an engine
 * awaits. This file only hands each member of the port to its lane.
 */
import type { StepHandler } from '../../types/step.ts'
import type {
  GroupHealth,
  Heartbeat,
  RemoteTask,
  RunDispatch,
  RunReply,
  RunRequest,
  StartRunMessage,
  StepResult,
  TenantEvent,
  WorkerDescriptor,
  WorkerHeartbeat,
  WorkflowDecision,
  WorkflowStepEvent,
  WorkflowTask,
} from '../../wire/messages.ts'
import { Messages } from '../job_messages.ts'
import { Runs } from '../job_runs.ts'
import type { Transport, WorkflowTurnHandler } from '../ports.ts'
import { WorkerKeys } from '../worker_keys.ts'
import { Broker } from './broker.ts'
import { type BullMQDeps, type RedisClient, loadBullMQDeps } from './deps.ts'
import { type BullMQTransportConfig, checkName, readSettings } from './options.ts'
import { RedisKeys } from './redis_keys.ts'
import { Results } from './results.ts'
import { Tasks } from './tasks.ts'
import { TenantLane } from './tenant.ts'

export type { BullMQConnection } from './connection.ts'
export type { BullMQDeps } from './deps.ts'
export type { BullMQTransportConfig } from './options.ts'
export { loadBullMQDeps } from './deps.ts'

/** A transport over BullMQ. `BullMQTransport.create(config)` loads the peers for it. */
export class BullMQTransport implements Transport {
  readonly #broker: Broker
  readonly #results: Results
  readonly #tasks: Tasks
  readonly #messages: Messages
  readonly #tenant: TenantLane
  readonly #runs: Runs
  readonly #workers: WorkerKeys
  #closing?: Promise<void>

  /** Opens nothing yet. Throws `InvalidArgumentError` for an option that cannot be used. */
  constructor(config: BullMQTransportConfig, deps: BullMQDeps) {
    this.#broker = new Broker(readSettings(config), deps)
    this.#results = new Results(this.#broker)
    this.#tasks = new Tasks(this.#broker, this.#results, (token) => this.#workers.serve(token))
    const { settings, clients, clock, timers } = this.#broker
    this.#workers = new WorkerKeys({
      store: new RedisKeys(clients),
      names: () => this.#broker.keys,
      instanceId: settings.instanceId,
      status: () => this.#tasks.controller.status(),
      clock,
      timers,
      onError: (error) => this.#reportWhileOpen(error),
    })
    this.#messages = new Messages(this.#broker)
    this.#tenant = new TenantLane(this.#broker, this.#messages)
    this.#runs = new Runs(this.#broker)
  }

  /** Loads `bullmq` and `ioredis`; rejects with the error of the import when one is not installed. */
  static async create(config: BullMQTransportConfig): Promise<BullMQTransport> {
    return new BullMQTransport(config, await loadBullMQDeps())
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

  async heartbeat(beat: Heartbeat): Promise<void> {
    this.#broker.assertOpen()
    await this.#results.beat(beat)
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

  async groupHealth(group: string): Promise<GroupHealth> {
    this.#broker.assertOpen()
    const token = this.#tasks.tokenOf(group)
    const [depth, liveWorkers] = await Promise.all([
      this.#broker.depthOf(this.#broker.names.tasks(token)),
      this.#workers.heartbeats(token),
    ])
    return { group, depth, liveWorkers: liveWorkers.map((worker) => ({ ...worker, group })) }
  }

  async listWorkerGroups(): Promise<string[]> {
    this.#broker.assertOpen()
    return this.#workers.tokens()
  }

  /** `[]` also when Redis does not answer: whoever asks goes on without. */
  async listWorkerDescriptors(token: string): Promise<WorkerDescriptor[]> {
    try {
      return await this.#workers.descriptors(this.#tasks.tokenOf(token))
    } catch (error) {
      this.#reportWhileOpen(error)
      return []
    }
  }

  async readAllWorkerDescriptors(): Promise<WorkerDescriptor[]> {
    this.#broker.assertOpen()
    return this.#workers.descriptors()
  }

  async readAllWorkerHeartbeats(): Promise<WorkerHeartbeat[]> {
    this.#broker.assertOpen()
    return this.#workers.heartbeats()
  }

  /** A connection for a worker registry to write descriptors with. Closed with the transport. */
  createDescriptorRedis(): RedisClient {
    this.#broker.assertOpen()
    return this.#broker.clients.open()
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
    checkName('transports.bullmq: the scope of onRun', scope)
    return this.#runs.on(scope, handler)
  }

  /** Throws `InvalidArgumentError` when handlers already consume under other names. */
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
    await this.#broker.close(this.#workers.close())
  }

  #reportWhileOpen(error: unknown): void {
    if (!this.#broker.closed) this.#broker.report(error)
  }
}
