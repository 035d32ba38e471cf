/*
 * What starts workflows beside calls: listens for the triggers that classes declare with `@OnEvent` and
 * `@OnDiagnostic`, and starts a run for each event. Whoever emits never notices a start that fails
 * (invariant 13); the log does.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import { isDiagnosticsTrigger, OWN_LIBRARY } from '../authoring/decorators.ts'
import type { EngineLogger } from '../engine/deps.ts'
import { randomId } from '../foundation/ids.ts'
import { compareVersions } from '../foundation/versions.ts'
import type { DiagnosticsTriggerConfig, WorkflowMeta } from '../types/workflow.ts'
import { listenToDiagnostics } from './diagnostics_bus.ts'

export interface TriggerEngine {
  start(workflow: string, input: unknown, runId: string): Promise<unknown>
  isDraining(): boolean
}

export interface TriggersAtBoot {
  app: ApplicationService
  engine: TriggerEngine
  /** What was discovered; those without triggers are left out. */
  workflows: readonly WorkflowMeta[]
  logger: EngineLogger
}

export class Triggers {
  readonly #options: TriggersAtBoot
  readonly #workflows: WorkflowMeta[]
  readonly #starting = new Set<Promise<void>>()
  #ends?: (() => void)[]

  constructor(options: TriggersAtBoot) {
    this.#options = options
    this.#workflows = newestOf(options.workflows).filter(({ on }) => on !== undefined)
  }

  /** Begins to listen. Idempotent. */
  async attach(): Promise<void> {
    if (this.#ends || this.#workflows.length === 0) return
    const ends: (() => void)[] = []
    this.#ends = ends
    const emitter = await this.#options.app.container.make('emitter')
    if (this.#ends !== ends) return
    for (const { name, on = [] } of this.#workflows) {
      for (const trigger of on) {
        if (isDiagnosticsTrigger(trigger)) ends.push(this.#listenToBus(name, trigger))
        else {
          const start = (data: unknown) => this.#start(name, `event "${trigger.event}"`, data)
          ends.push(emitter.on(trigger.event as never, start as never))
        }
      }
    }
  }

  /** Ends it, and resolves when the starts that are under way are recorded or given up. Idempotent. */
  async detach(): Promise<void> {
    for (const end of this.#ends ?? []) end()
    this.#ends = undefined
    await Promise.all(this.#starting)
  }

  #listenToBus(workflow: string, trigger: DiagnosticsTriggerConfig): () => void {
    return listenToDiagnostics(trigger, ({ lib, event, payload }) => {
      // Each run that it starts would start the next one.
      if (lib === OWN_LIBRARY && workflowIn(payload) === workflow) return
      void this.#start(workflow, `diagnostics event "${event}" of "${lib}"`, payload)
    })
  }

  /** Resolves when the run is recorded or given up, so that whoever awaits an emit knows it by then. */
  async #start(workflow: string, cause: string, input: unknown): Promise<void> {
    const starting = this.#startOnce(workflow, cause, input)
    this.#starting.add(starting)
    await starting
    this.#starting.delete(starting)
  }

  async #startOnce(workflow: string, cause: string, input: unknown): Promise<void> {
    const { engine, logger } = this.#options
    if (engine.isDraining()) {
      logger.warn(`durable: ${cause} starts no run of workflow "${workflow}": shutting down`)
      return
    }
    try {
      await engine.start(workflow, input, randomId())
    } catch (error) {
      logger.error(`durable: ${cause} could not start a run of workflow "${workflow}"`, error)
    }
  }
}

/** Old versions stay for their runs; a new run has the newest one, so only its triggers count. */
export function newestOf(workflows: readonly WorkflowMeta[]): WorkflowMeta[] {
  const newest = new Map<string, WorkflowMeta>()
  for (const meta of workflows) {
    const other = newest.get(meta.name)
    if (!other || compareVersions(meta.version, other.version) > 0) newest.set(meta.name, meta)
  }
  return [...newest.values()]
}

function workflowIn(payload: unknown): unknown {
  return typeof payload === 'object' && payload !== null && 'workflow' in payload
    ? payload.workflow
    : undefined
}
