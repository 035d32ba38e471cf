/*
 * The transport over tables of the application's database: no broker, nothing installed.
 * Delivery: at least once, also after the death of any process. A task is held by one claim, renewed every
 * third of `leaseMs`, and recorded under it; one whose claim lapsed is taken by another worker.
 * Polls: tasks, results, heartbeats and messages, each in a loop of its own, only for what is served here.
 * Pushes: on Postgres, LISTEN and NOTIFY tell of tasks, results and messages; polls find what that lost.
 */
import type { Database } from '@adonisjs/lucid/database'
import { TransportUnavailableError } from '../../errors.ts'
import {
  type Clock,
  type Timers,
  sleepOn,
  systemClock,
  systemTimers,
} from '../../foundation/clock.ts'
import { DurableError, hasCode, isolate } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import { Session } from '../../sql/session.ts'
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
import {
  DEFAULT_NAMESPACE,
  DEFAULT_PREFIX,
  isDefaultPool,
  keyNames,
  tokenWithin,
} from '../../wire/names.ts'
import { ConcurrencyController } from '../concurrency.ts'
import { ConsumerGate } from '../consumer_gate.ts'
import { reportToConsole, type Transport, type WorkflowTurnHandler } from '../ports.ts'
import { EngineSide } from './engine_side.ts'
import { TableKeys } from './keys.ts'
import { MessageSide } from './message_side.ts'
import { Nudges } from './nudges.ts'
import { type DbTransportConfig, readTuning } from './options.ts'
import { assertTransportTables, createDurableTransportTables } from './schema.ts'
import type { Shared } from './shared.ts'
import { WorkerSide } from './worker_side.ts'

export type { DbTransportConfig } from './options.ts'

/** A transport over an application's database. `db` belongs to the application: closing leaves it open. */
export class DbTransport implements Transport {
  readonly #shared: Shared
  readonly #nudges: Nudges
  readonly #partition?: string
  readonly #explicitNamespace: boolean
  readonly #closeTimeoutMs: number
  readonly #timers: Timers
  readonly #worker: WorkerSide
  readonly #engine: EngineSide
  readonly #messages: MessageSide
  #namespace?: string
  #ready?: Promise<void>
  #closing?: Promise<void>

  /** Opens nothing. Throws `InvalidArgumentError` for an option that cannot be meant. */
  constructor({ db, ...options }: DbTransportConfig & { db: Database }) {
    const { tuning, closeTimeoutMs } = readTuning(options)
    const session = new Session(db, options.connection)
    const clock: Clock = options.clock ?? systemClock
    const gate = new ConsumerGate()
    const isClosed = () => this.#closing !== undefined
    this.#timers = options.timers ?? systemTimers
    this.#nudges = new Nudges(session)
    this.#partition = options.partition
    this.#namespace = options.namespace
    this.#explicitNamespace = options.namespace !== undefined && options.namespace !== ''
    this.#closeTimeoutMs = closeTimeoutMs
    const shared: Shared = {
      session,
      nudges: this.#nudges,
      instanceId: options.instanceId ?? randomId(),
      tuning,
      concurrency: new ConcurrencyController({ concurrency: options.concurrency, clock }),
      gate,
      clock,
      timers: this.#timers,
      onError: options.onError ?? reportToConsole,
      namespace: () => (isDefaultPool(this.#namespace) ? DEFAULT_NAMESPACE : this.#namespace!),
      keyNames: () => keyNames(DEFAULT_PREFIX, this.#namespace),
      ready: () => (this.#ready ??= this.#provision(db, options)),
      get closed() {
        return isClosed()
      },
    }
    this.#shared = shared
    const keys = new TableKeys(session, clock, shared.ready)
    this.#worker = new WorkerSide(shared, keys)
    this.#engine = new EngineSide(shared)
    this.#messages = new MessageSide(shared, keys)
  }

  dispatch(task: RemoteTask): Promise<void> {
    return this.#sent(() => this.#engine.dispatch(task))
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.#engine.onResult(handler)
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    this.#engine.onHeartbeat(handler)
  }

  handle(name: string, fn: StepHandler, partition?: string): void {
    this.#worker.handle(name, fn, partition ?? this.#partition)
  }

  handleWorkflow(name: string, turn: WorkflowTurnHandler): void {
    this.#worker.handleWorkflow(name, turn, this.#partition)
  }

  async heartbeat(beat: Heartbeat): Promise<void> {
    this.#worker.heartbeat(beat)
  }

  dispatchWorkflowTask(task: WorkflowTask): Promise<void> {
    return this.#sent(() => this.#engine.dispatchTurn(task))
  }

  onDecision(handler: (decision: WorkflowDecision) => Promise<void>): void {
    this.#messages.consume('decision', handler)
  }

  dispatchStepEvent(event: WorkflowStepEvent): Promise<void> {
    return this.#sent(() => this.#messages.publish('stepEvent', event))
  }

  onStepEvent(handler: (event: WorkflowStepEvent) => Promise<void>): void {
    this.#messages.consume('stepEvent', handler)
  }

  dispatchStartRun(message: StartRunMessage): Promise<void> {
    return this.#sent(() => this.#messages.publish('startRun', message))
  }

  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void {
    this.#messages.consume('startRun', handler)
  }

  dispatchRunRequest(request: RunRequest): Promise<void> {
    return this.#sent(() => this.#messages.publish('runRequest', request))
  }

  onRunRequest(handler: (request: RunRequest) => Promise<void>): void {
    this.#messages.consume('runRequest', handler)
  }

  publishRunReply(reply: RunReply): Promise<void> {
    return this.#sent(() => this.#messages.publishReply(reply))
  }

  onRunReply(handler: (reply: RunReply) => void): void {
    this.#messages.consumeReplies(handler)
  }

  publishTenantEvent(event: TenantEvent): Promise<void> {
    return this.#sent(() => this.#messages.publishTenantEvent(event))
  }

  onTenantEvent(tenant: string, handler: (event: TenantEvent) => void): () => void {
    return this.#messages.follow(tenant, handler)
  }

  dispatchRun(run: RunDispatch, scope?: string): Promise<void> {
    const to = scope ?? run.namespace ?? DEFAULT_NAMESPACE
    return this.#sent(() => this.#messages.dispatchRun(run, to))
  }

  onRun(scope: string, handler: (run: RunDispatch) => Promise<void>): () => Promise<void> {
    return this.#messages.consumeRuns(scope, handler)
  }

  async groupHealth(group: string): Promise<GroupHealth> {
    await this.#shared.ready()
    const [depth, liveWorkers] = await Promise.all([
      this.#worker.depth(group),
      this.#worker.keys.heartbeats(tokenWithin(this.#shared.namespace(), group)),
    ])
    return { group, depth, liveWorkers }
  }

  listWorkerGroups(): Promise<string[]> {
    return this.#worker.keys.tokens()
  }

  async listWorkerDescriptors(token: string): Promise<WorkerDescriptor[]> {
    return this.#worker.keys.descriptors(tokenWithin(this.#shared.namespace(), token))
  }

  readAllWorkerDescriptors(): Promise<WorkerDescriptor[]> {
    return this.#worker.keys.descriptors()
  }

  readAllWorkerHeartbeats(): Promise<WorkerHeartbeat[]> {
    return this.#worker.keys.heartbeats()
  }

  useNamespace(namespace: string): void {
    if (this.#explicitNamespace) return
    this.#namespace = namespace
    for (const side of this.#sides) side.listen()
  }

  deferConsumers(): void {
    this.#shared.gate.defer()
  }

  startConsumers(): void {
    this.#shared.gate.start()
  }

  /**
   * Takes nothing more, waits up to `closeTimeoutMs` for what runs, gives the rest back to other workers,
   * uncounted, and lets go of its own connection.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  get #sides() {
    return [this.#worker, this.#engine, this.#messages] as const
  }

  async #close(): Promise<void> {
    const { onError, gate } = this.#shared
    gate.close()
    const stopped = Promise.all(this.#sides.map((side) => side.stop()))
    const idle = stopped.then(() => Promise.all(this.#sides.map((side) => side.idle())))
    await Promise.race([idle, sleepOn(this.#timers, this.#closeTimeoutMs)])
    const patience = sleepOn(this.#timers, this.#closeTimeoutMs)
    const closed = Promise.allSettled(this.#ready ? this.#sides.map((side) => side.close()) : [])
    const outcomes = (await Promise.race([closed, patience])) ?? []
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') isolate(() => onError(outcome.reason))
    }
    await this.#nudges.close()
  }

  /** What the database refused becomes this transport's own failure. */
  async #sent(send: () => Promise<void>): Promise<void> {
    if (this.#closing) throw new TransportUnavailableError('the db transport is closed')
    try {
      await send()
    } catch (error) {
      if (!hasCode(error, 'store_unavailable')) throw error
      throw new TransportUnavailableError('the db transport could not reach its database', {
        cause: error,
      })
    }
  }

  async #provision(db: Database, options: DbTransportConfig): Promise<void> {
    const { connection, autoCreate = true, logger } = options
    try {
      if (autoCreate) await createDurableTransportTables(db, connection, { logger })
      else await assertTransportTables(this.#shared.session)
    } catch (error) {
      this.#ready = undefined
      throw error instanceof DurableError ? error : new TransportUnavailableError(String(error))
    }
  }
}
