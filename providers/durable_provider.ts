/*
 * Wires durable workflows into an AdonisJS application: binds the engine, discovers workflows and steps at
 * boot, runs the embedded worker, drains at shutdown. What that takes is in src/adonis.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import { captureApplication, findBootedApp, releaseApplication } from '../src/adonis/booted_app.ts'
import { StoreRole } from '../src/adonis/roles/store_role.ts'
import { RUN_GATEWAY, STORE_ROLE, TRANSPORT } from '../src/adonis/tokens.ts'
import { setDefaultWorkflowEngineResolver } from '../src/authoring/engine_resolver.ts'
import { WorkflowEngine } from '../src/engine/workflow_engine.ts'
import type { RunGateway } from '../src/gateway/main.ts'
import type { Transport } from '../src/transport/ports.ts'

declare module '@adonisjs/core/types' {
  interface ContainerBindings {
    '@adonis-agora/durable:transport': Transport
    '@adonis-agora/durable:run-gateway': RunGateway
    '@adonis-agora/durable:store-role': StoreRole
  }
}

export default class DurableProvider {
  #role?: StoreRole

  constructor(protected app: ApplicationService) {}

  /** Binds; builds nothing. The role remembers what it built, and forgets a build that failed. */
  register(): void {
    this.app.container.bind(WorkflowEngine, () => this.#roleOf().engine())
    this.app.container.bind(TRANSPORT, () => this.#roleOf().transport())
    this.app.container.bind(RUN_GATEWAY, () => this.#roleOf().gateway())
    this.app.container.bind(STORE_ROLE, () => this.#roleOf())
    captureApplication(this.app)
  }

  async boot(): Promise<void> {
    await this.#roleOf().discover()
    // By way of the remembered application: several may boot in one process, one after the other.
    setDefaultWorkflowEngineResolver(
      () => findBootedApp()?.container.make(WorkflowEngine) as Promise<WorkflowEngine>
    )
  }

  async ready(): Promise<void> {
    await this.#roleOf().reportUnservedRoutes()
    await this.#roleOf().startEmbeddedLoop()
  }

  async shutdown(): Promise<void> {
    try {
      await this.#role?.shutdown()
    } finally {
      releaseApplication(this.app)
    }
  }

  #roleOf(): StoreRole {
    this.#role ??= new StoreRole(this.app, this.app.config.get('durable', {}))
    return this.#role
  }
}
