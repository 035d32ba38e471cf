/*
 * One simulated process: an engine with its own clock, store client, transport and worker loop. It can
 * crash at any await; then it never sees another answer, message or timer.
 */
import type { WorkflowEngineDeps } from '../../src/engine/deps.ts'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { QueueConfig } from '../../src/flow/port.ts'
import type { StandardSchemaV1 } from '../../src/foundation/standard_schema.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { ClaimedRun } from '../../src/store/ports/run_claims.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { workflowBody } from './bodies.ts'
import type { Effects } from './effects.ts'
import { ENTITY, entityConfig } from './entities.ts'
import { leavesOf, type Program, REFUSED } from './programs.ts'
import type { Windows } from './windows.ts'
import type { ProcessTime } from './virtual_time.ts'

export interface ProcessOptions {
  /** The lease owner. */
  id: string
  time: ProcessTime
  effects: Effects
  programs: ReadonlyMap<string, Program>
  settings: Partial<WorkflowEngineDeps>
  queue?: QueueConfig
  windows?: Windows
  report(error: unknown, what: string): void
  /** How long an entity takes over an operation. */
  operationMs?(who: string): number
  /** A body began. */
  began?(): void
  /** Registers nothing yet: a deploy that is still under way. */
  bare?: boolean
  /** Serves the steps of a program in this process. */
  serve?(process: SimProcess, program: Program): void
}

export class SimProcess {
  readonly id: string
  readonly time: ProcessTime
  readonly engine: WorkflowEngine
  readonly #options: ProcessOptions
  readonly #turns = new Map<string, number>()

  constructor(
    options: ProcessOptions,
    connect: (process: SimProcess) => { store: StateStore; transport: Transport }
  ) {
    this.#options = options
    this.id = options.id
    this.time = options.time
    const { store, transport } = connect(this)
    this.engine = new WorkflowEngine({
      ...options.settings,
      store,
      transport,
      clock: this.time.clock,
      timers: this.time,
      instanceId: this.id,
      logger: {
        warn: () => {},
        error: (message, error) => options.report(error, `${this.id}: ${message}`),
      },
    })
    if (options.queue) this.engine.registerQueue(options.queue)
    if (!options.bare) this.register()
  }

  get alive(): boolean {
    return this.time.alive
  }

  /** Registers every program; doing it again drops the bodies that are kept live. */
  register(): void {
    const { programs, effects, operationMs } = this.#options
    for (const [name, program] of programs) this.#register(name, program)
    const someMs = (who: string) => Math.max(0, effects.roll(`op ${who}`) / 4 - 150)
    const work = (who: string) => this.time.sleep((operationMs ?? someMs)(who))
    this.engine.registerEntity(ENTITY, entityConfig(work))
  }

  claimed({ run }: ClaimedRun): void {
    this.#turns.set(run.id, run.turns ?? 0)
  }

  crash(): void {
    this.time.die()
  }

  /** One round of a worker loop. */
  poll(): void {
    const { engine } = this
    for (const pass of [
      () => engine.recoverIncomplete(),
      () => engine.resumeDueTimers(),
      () => engine.runPending(),
    ]) {
      pass().catch(() => {})
    }
  }

  #register(name: string, program: Program): void {
    const { effects, began, serve } = this.#options
    serve?.(this, program)
    const body = (ctx: WorkflowCtx, input: { round: number }) => {
      began?.()
      return workflowBody(program, input.round, {
        ctx,
        workflow: name,
        effects,
        windows: this.#options.windows,
        scope: {
          runId: ctx.runId,
          processId: this.id,
          time: this.time,
          turnOf: () => this.#turns.get(ctx.runId),
        },
      })
    }
    this.engine.register(name, '1', body, { searchAttributesSchema: WITHOUT_TRUE_C })
    for (const leaf of leavesOf(program.root)) {
      if (leaf.t === 'update') this.engine.registerUpdateValidator(name, leaf.update, validate)
    }
  }
}

const validate = (arg: unknown): string | undefined =>
  String(arg).includes(`/${REFUSED}`) ? REFUSED : undefined

const WITHOUT_TRUE_C: StandardSchemaV1 = {
  '~standard': {
    version: 1,
    vendor: 'simulation',
    validate: (value) =>
      (value as { c?: boolean }).c === true
        ? { issues: [{ message: 'is refused', path: ['c'] }] }
        : { value },
  },
}
