/*
 * A process with a store: builds the engine when it is first wanted, discovers, hosts the worker loop, and
 * takes everything down in order. Owns what was built until `shutdown`.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { ApplicationService } from '@adonisjs/core/types'
import type { EngineLogger } from '../../engine/deps.ts'
import type { WorkflowEngine } from '../../engine/workflow_engine.ts'
import type { Transport } from '../../transport/ports.ts'
import { type RunGateway, StoreRunGateway } from '../../gateway/main.ts'
import { attachDurableDiagnostics } from '../../observability/main.ts'
import type { WorkerLogger } from '../../loop/worker_loop.ts'
import { discoverAtBoot } from '../boot_discovery.ts'
import { registerSchedulesAtBoot } from '../boot_schedules.ts'
import { Triggers } from '../boot_triggers.ts'
import { type Built, buildEngine } from '../build_engine.ts'
import { checkConfig } from '../config_checks.ts'
import type { DurableConfig } from '../define_config.ts'
import { LoopHost } from '../loop_host.ts'

export interface LoopSettings {
  intervalMs: number
  drainTimeoutMs: number
}

/** How `durable:work` runs the loop. */
export interface WorkOptions extends LoopSettings {
  stopSignal: Promise<unknown>
  logger: WorkerLogger
}

const INTERVAL_MS = 1000
const DRAIN_MS = 10_000

export class StoreRole {
  readonly #app: ApplicationService
  readonly #config: DurableConfig
  readonly #loop = new LoopHost()
  #built?: Promise<Built>
  #gateway?: RunGateway
  #detachDiagnostics: () => void = () => {}
  #triggers?: Triggers
  #shutdown?: Promise<void>

  /** Throws `RuntimeException` for a config that cannot be used. */
  constructor(app: ApplicationService, config: unknown) {
    this.#app = app
    this.#config = checkConfig(config)
  }

  async engine(): Promise<WorkflowEngine> {
    const { engine } = await this.#build()
    return engine
  }

  async transport(): Promise<Transport> {
    const { members } = await this.#build()
    return members[0].transport
  }

  async gateway(): Promise<RunGateway> {
    this.#gateway ??= new StoreRunGateway(await this.engine(), { role: 'standalone' })
    return this.#gateway
  }

  /** Leaves what this process starts or brings back to others: a command does not execute runs. */
  async leaveRunsToWorkers(): Promise<void> {
    const engine = await this.engine()
    engine.beginDrain()
  }

  /** How the loop runs unless it is told otherwise, and the budget of a shutdown; in ms. */
  get loopSettings(): LoopSettings {
    const { worker = {}, drainTimeoutMs = DRAIN_MS } = this.#config
    return {
      intervalMs: worker.intervalMs ?? INTERVAL_MS,
      drainTimeoutMs: worker.drainTimeoutMs ?? drainTimeoutMs,
    }
  }

  /** Runs are kept in this process only: no other one sees them, and they end with it. */
  get isPrivate(): boolean {
    return this.#config.store === undefined
  }

  /** A worker loop runs in this process. */
  get isLooping(): boolean {
    return this.#loop.isRunning
  }

  /**
   * Registers the application's workflows and schedules, serves its steps, takes runs from the run queue
   * where `drive` allows it, and begins to listen for what starts workflows where this process serves
   * requests. A process that does not would start the runs of events that it only happens to emit; one
   * with a worker loop listens from `work` on.
   */
  async discover(): Promise<void> {
    const { engine, members } = await this.#build()
    const logger = await this.#logger()
    const workflows = await discoverAtBoot({
      app: this.#app,
      config: this.#config,
      engine,
      servesSteps: members.some(({ transport }) => transport.handle !== undefined),
      warn: (message) => logger.warn(`durable: ${message}`),
    })
    const configured = this.#config.schedules
    await registerSchedulesAtBoot({ engine, configured, workflows })
    if (this.#config.drive !== false) engine.consumeRuns()
    this.#triggers = new Triggers({ app: this.#app, engine, workflows, logger })
    if (this.#servesRequests) await this.#triggers.attach()
  }

  /** Says which failures go to a workflow that nobody registered. */
  async reportUnservedRoutes(): Promise<void> {
    if (!this.#built || this.#shutdown) return
    const { engine } = await this.#built
    const logger = await this.#logger()
    for (const { workflow, route } of await engine.unservedOnErrorRoutes()) {
      logger.warn(
        `durable: workflow "${workflow}" sends its failures to "${route.workflow}", ` +
          'which this process has not registered'
      )
    }
  }

  /** Starts the embedded loop where it is configured and this process serves requests. */
  async startEmbeddedLoop(): Promise<void> {
    if (!this.#config.worker?.embedded || !this.#servesRequests || this.#shutdown) return
    const { engine } = await this.#build()
    await engine.resolveKnownSchedules()
    const logger = await this.#app.container.make('logger')
    void this.#loop.runEmbedded(engine, { ...this.loopSettings, logger })
  }

  /** Runs the loop until it is stopped, whatever `drive` says; answers its ticks. */
  async work(options: WorkOptions): Promise<number> {
    const { engine } = await this.#build()
    await engine.resolveKnownSchedules()
    await this.#triggers?.attach()
    return this.#loop.run(engine, options)
  }

  /**
   * Stops listening, drains, then closes transports, control plane, admission and store. Every stage runs whatever the others do; rejects with the
   * first error after all did. Idempotent.
   */
  shutdown(): Promise<void> {
    this.#shutdown ??= this.#takeDown()
    return this.#shutdown
  }

  async #takeDown(): Promise<void> {
    const built = await this.#built?.catch(() => undefined)
    if (!built) return
    const { engine, members, store, controlPlane, admission } = built
    const errors: unknown[] = []
    const stage = async (work: () => unknown) => {
      try {
        await work()
      } catch (error) {
        errors.push(error)
      }
    }
    await stage(() => this.#triggers?.detach())
    await stage(() => engine.beginDrain())
    await stage(() => this.#loop.stop())
    if (!this.#loop.hasDrained) await stage(() => engine.drain(this.loopSettings.drainTimeoutMs))
    await stage(() => this.#detachDiagnostics())
    for (const { transport } of members) await stage(() => transport.close?.())
    await stage(() => controlPlane?.close?.())
    await stage(() => admission?.close?.())
    await stage(() => store.close?.())
    if (errors.length > 0) throw errors[0]
  }

  get #servesRequests(): boolean {
    const environment = this.#app.getEnvironment?.()
    return environment === 'web' || environment === 'test'
  }

  #build(): Promise<Built> {
    if (this.#built) return this.#built
    if (this.#shutdown) {
      throw new RuntimeException('durable: the application is shutting down, and had no engine yet')
    }
    const building = this.#buildOnce()
    this.#built = building
    // The next one who asks may find a database that is up again.
    building.catch(() => (this.#built = undefined))
    return building
  }

  async #buildOnce(): Promise<Built> {
    const built = await buildEngine({
      app: this.#app,
      config: this.#config,
      logger: await this.#logger(),
      isDriving: () => this.#loop.isRunning,
    })
    this.#detachDiagnostics = attachDurableDiagnostics(built.engine)
    return built
  }

  async #logger(): Promise<EngineLogger> {
    const logger = await this.#app.container.make('logger')
    return {
      warn: (message) => logger.warn(message),
      error: (message, err) =>
        err === undefined ? logger.error(message) : logger.error({ err }, message),
    }
  }
}
