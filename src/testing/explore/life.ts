/*
 * One life: an engine as one process has it, from its start to the crash. Its store, its timers, its
 * transport and its bodies die with it.
 */
import { WorkflowEngine } from '../../engine/workflow_engine.ts'
import type { StateStore } from '../../store/state_store.ts'
import { InMemoryTransport } from '../../transport/memory/memory_transport.ts'
import type { WorkflowFn } from '../../types/ctx.ts'
import type { StepHandler, StepLogger } from '../../types/step.ts'
import type { RemoteTask } from '../../wire/messages.ts'
import type { Ledger, StepPlace } from './ledger.ts'
import { type Boundary, MortalStore } from './mortal_store.ts'
import type { ExploredWorkflow, StepFake } from './options.ts'
import { runOutsideBody } from './unrecorded.ts'
import type { ProcessTimers, VirtualTime } from './virtual_time.ts'
import { type BodyWatch, type Execution, watchedBody } from './watched_body.ts'

/** Short, so that a takeover is over before most deadlines of a workflow; in ms. */
const LEASE_MS = 200

export interface LifeOptions {
  base: StateStore
  time: VirtualTime
  ledger: Ledger
  workflows: readonly ExploredWorkflow[]
  steps: Readonly<Record<string, StepFake>>
  watch: BodyWatch
  dieAt?: Boundary
  onDeath(where: string): void
  onDelivered(token: string): void
  report(error: unknown): void
}

/** Recorded values of the body itself, which nobody fakes. */
const CAPTURES = new Set(['now', 'sideEffect'])

const NEVER = new Promise<never>(() => {})

export class Life {
  readonly engine: WorkflowEngine
  readonly store: MortalStore
  readonly executions = new Set<Execution>()
  readonly id: string
  readonly #timers: ProcessTimers
  readonly #transport: ExploredTransport
  dead = false

  constructor(options: LifeOptions) {
    const { base, time, ledger, workflows, steps, watch } = options
    this.id = `process-${ledger.life}`
    this.#timers = time.process()
    this.store = new MortalStore({
      base,
      dieAt: options.dieAt,
      onDelivered: options.onDelivered,
      onDeath: (where) => {
        this.#die()
        options.onDeath(where)
      },
    })
    const { clock } = time
    this.#transport = new ExploredTransport(
      { clock, timers: this.#timers, onError: options.report },
      ledger
    )
    this.engine = new WorkflowEngine({
      store: this.store.store,
      transport: this.#transport,
      clock,
      timers: this.#timers,
      instanceId: this.id,
      leaseMs: LEASE_MS,
      reconcileMs: 0,
      // What is recorded a moment later only says that a step began.
      trackStepStart: false,
      logger: { warn: () => {}, error: (_, error) => options.report(error) },
    })
    for (const [name, fake] of Object.entries(steps)) {
      this.engine.handle(name, async (input, log) => fake(input, log))
    }
    for (const { name, version, fn, options: given } of workflows) {
      const noted: WorkflowFn = (ctx, input) => {
        ledger.started(ctx.runId, [name, version, input])
        return fn(ctx, input)
      }
      this.engine.register(name, version, watchedBody(noted, watch, this), given)
    }
    this.engine.use((invocation, next) => {
      if (this.dead) return NEVER
      const { runId, seq, stepName: name } = invocation
      const fake =
        Object.hasOwn(steps, name) && !CAPTURES.has(name) ? () => steps[name]() : undefined
      return ledger.execute({ runId, seq, name }, fake ?? next)
    })
  }

  /** Changes whenever something happens. */
  get activity(): number {
    return this.store.activity
  }

  /** Something is on its way that will move by itself. */
  get busy(): boolean {
    for (const execution of this.executions) if (execution.ended) this.executions.delete(execution)
    return [...this.executions].some(({ astray }) => astray)
  }

  /** Results and store calls under way: they need no patience, only turns of the loop. */
  get inFlight(): number {
    return this.store.inFlight + this.#transport.inFlight
  }

  /** Lets go of it at the end of a run. */
  async close(): Promise<void> {
    if (!this.dead) this.#die()
    await this.#transport.close()
  }

  #die(): void {
    this.dead = true
    this.store.die()
    this.#timers.die()
    this.executions.clear()
    void this.#transport.close()
  }
}

/** A transport that knows which task a step body works on. */
class ExploredTransport extends InMemoryTransport {
  /** Tasks whose bodies have not begun, by name: they begin in the order in which they were sent. */
  readonly #sent = new Map<string, StepPlace[]>()
  readonly #ledger: Ledger

  constructor(options: ConstructorParameters<typeof InMemoryTransport>[0], ledger: Ledger) {
    super(options)
    this.#ledger = ledger
  }

  override async dispatch(task: RemoteTask): Promise<void> {
    const { runId, seq, name } = task
    await runOutsideBody(() => super.dispatch(task))
    const sent = this.#sent.get(name) ?? []
    this.#sent.set(name, sent)
    sent.push({ runId, seq, name })
  }

  override handle(name: string, fn: StepHandler, partition?: string): void {
    const counted = (input: unknown, log: StepLogger): unknown => {
      const place = this.#sent.get(name)?.shift()
      return place ? this.#ledger.execute(place, () => fn(input, log)) : fn(input, log)
    }
    super.handle(name, counted, partition)
  }
}
