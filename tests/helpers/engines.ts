/*
 * Engines under test: several of them over one set of data, on one time that the test moves, over a
 * transport that it plays. A crashed engine is abandoned: its store stops answering, as if its process
 * had been killed, while the data lives on.
 *
 *   for (const kind of await storesUnderTest()) {
 *     test.group(`starting | ${kind.name}`, (group) => {
 *       const world = useWorld(group, kind)
 *       test('…', async ({ assert }) => {
 *         const engine = world.engine()
 */
import type { Group } from '@japa/runner/core'
import type { WorkflowEngineDeps } from '../../src/engine/deps.ts'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { fullStore, type FullStore } from '../../src/store/full_store.ts'
import type { StepError } from '../../src/foundation/failure.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { EngineEvent } from '../../src/types/engine_event.ts'
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../src/types/run.ts'
import { FakeTime, turns } from './fake_time.ts'
import { StoreGate } from './gated_store.ts'
import { type HeldPort, HeldTransport } from './held_transport.ts'
import { NOT_OVER_BROKERS } from '../over_brokers/suites.ts'
import {
  type Fleet,
  openRealTransports,
  REAL_TRANSPORT,
  type RealTransports,
} from './real_transports.ts'
import type { OpenStore, StoreKind } from './stores_under_test.ts'
import { until } from './until.ts'

export { FakeTime, T0, turns } from './fake_time.ts'
export { type Moment, StoreGate } from './gated_store.ts'
export { type HeldPort, HeldTransport } from './held_transport.ts'
export { type StoreKind, storesUnderTest, withoutMembers } from './stores_under_test.ts'
export { until } from './until.ts'

type Deps = Omit<WorkflowEngineDeps, 'store' | 'transport'>

export interface EngineOptions extends Deps {
  /**
   * `memory` (the default, unless a real one is put there: real_transports.ts) is private to the engine;
   * `held` is shared and played by the test.
   */
  transport?: 'memory' | 'held' | 'none' | Transport
  /** Over these data instead of the world's. */
  store?: StateStore
}

interface Member {
  gate: StoreGate
  port?: HeldPort
  transport?: Transport
}

/** Rounds without a store call after which nothing is expected to happen by itself. */
const QUIET_ROUNDS = 12
const QUIET_BUDGET_MS = 6_000

export class World {
  readonly time = new FakeTime()
  readonly held = new HeldTransport()
  /** What engines and transports reported besides. */
  readonly reports: unknown[] = []
  /** The data, beneath every gate. */
  readonly store: FullStore
  readonly #base: StateStore
  readonly #members = new Map<WorkflowEngine, Member>()
  readonly #fleet?: Fleet
  readonly #real = new Set<Transport>()

  constructor(base: StateStore, fleet?: Fleet) {
    this.#base = base
    this.#fleet = fleet
    this.store = fullStore(base)
    this.time.whenIdle = () => this.quiet()
  }

  engine(options: EngineOptions = {}): WorkflowEngine {
    const { transport = this.#realTransport() ?? 'memory', store = this.#base, ...deps } = options
    const gate = new StoreGate(store)
    const member: Member = { gate }
    if (transport === 'held') member.transport = member.port = this.held.connect()
    else if (transport === 'memory') member.transport = this.#memoryTransport()
    else if (transport !== 'none') member.transport = transport
    const engine = new WorkflowEngine({
      store: gate.store,
      transport: member.transport,
      clock: this.time.clock,
      timers: this.time,
      logger: { warn: () => {}, error: (_, error) => void this.reports.push(error) },
      ...deps,
    })
    this.#members.set(engine, member)
    return engine
  }

  gate(engine: WorkflowEngine): StoreGate {
    return this.#members.get(engine)!.gate
  }

  port(engine: WorkflowEngine): HeldPort {
    return this.#members.get(engine)!.port!
  }

  transport(engine: WorkflowEngine): Transport {
    return this.#members.get(engine)!.transport!
  }

  /** Abandons an engine: nothing it calls returns, nothing it sends arrives, its tasks are gone. */
  async crash(engine: WorkflowEngine): Promise<void> {
    const { gate, port, transport } = this.#members.get(engine)!
    gate.crash()
    port?.disconnect()
    if (transport instanceof InMemoryTransport) await transport.close()
    if (transport && this.#real.delete(transport)) {
      this.#fleet!.forget()
      await transport.close!()
    }
  }

  async run(runId: string): Promise<WorkflowRun> {
    const run = await this.store.getRun(runId)
    if (!run) throw new Error(`there is no run ${runId}`)
    return run
  }

  async status(runId: string): Promise<RunStatus> {
    const { status } = await this.run(runId)
    return status
  }

  async isHeldBy(runId: string, engine: WorkflowEngine): Promise<boolean> {
    const { lockedBy } = await this.run(runId)
    return lockedBy === engine.instanceId
  }

  /** Why the run ended as it did. */
  async errorOf(runId: string): Promise<StepError | undefined> {
    const { error } = await this.run(runId)
    return error
  }

  /** The output of the run, once it is terminal. */
  async output(runId: string): Promise<unknown> {
    const { output } = await this.ended(runId)
    return output
  }

  rows(runId: string): Promise<StepCheckpoint[]> {
    return this.store.listCheckpoints(runId)
  }

  /** The first rows, all by default, as `[seq, name, status]`. */
  async timeline(runId: string, first?: number): Promise<[number, string, string][]> {
    const rows = await this.rows(runId)
    return rows.slice(0, first).map((row) => [row.seq, row.name, row.status])
  }

  /** The run, once it has one of these statuses. */
  async reached(runId: string, ...statuses: RunStatus[]): Promise<WorkflowRun> {
    return until(
      async () => {
        const run = await this.store.getRun(runId)
        return run && statuses.includes(run.status) ? run : undefined
      },
      () => this.#describe(runId, statuses.join(' or '))
    )
  }

  /** The run, once it is terminal. */
  async ended(runId: string): Promise<WorkflowRun> {
    return until(
      async () => {
        const run = await this.store.getRun(runId)
        return run && isTerminalStatus(run.status) ? run : undefined
      },
      () => this.#describe(runId, 'an end')
    )
  }

  /** The run, once it is suspended and its engine has let go of it. */
  async parked(runId: string): Promise<WorkflowRun> {
    await this.reached(runId, 'suspended')
    await this.quiet()
    return this.reached(runId, 'suspended')
  }

  /** Resolves when no engine has called its store for a while. */
  async quiet(): Promise<void> {
    let calls = this.#calls()
    const giveUpAt = performance.now() + QUIET_BUDGET_MS
    for (let round = 0; round < QUIET_ROUNDS; round++) {
      await turns(1)
      if (performance.now() > giveUpAt) throw new Error('the engines never come to rest')
      const now = this.#calls()
      if (this.#busy() || now !== calls) round = -1
      calls = now
    }
  }

  /** Whatever an engine tells its listeners from now on. */
  eventsOf(engine: WorkflowEngine): EngineEvent[] {
    const events: EngineEvent[] = []
    engine.subscribe((event) => void events.push(event))
    return events
  }

  async close(): Promise<void> {
    for (const engine of this.#members.keys()) await this.crash(engine)
    await until(() => !this.#busy(), 'the last store call to return')
    const broken = this.reports.find((error) => (error as { code?: unknown })?.code === 'invariant')
    if (broken) throw broken
  }

  #realTransport(): Transport | undefined {
    const transport = this.#fleet?.open((error) => void this.reports.push(error))
    if (transport) this.#real.add(transport)
    return transport
  }

  #memoryTransport(): InMemoryTransport {
    const { clock } = this.time
    const onError = (error: unknown) => void this.reports.push(error)
    return new InMemoryTransport({ clock, timers: this.time, onError })
  }

  #calls(): number {
    let sum = 0
    for (const { gate } of this.#members.values()) {
      for (const count of gate.calls.values()) sum += count
    }
    return sum
  }

  #busy(): boolean {
    if (this.#fleet?.busy) return true
    return [...this.#members.values()].some(({ gate }) => gate.inFlight > 0)
  }

  async #describe(runId: string, wanted: string): Promise<string> {
    const found = { run: await this.store.getRun(runId), rows: await this.rows(runId) }
    return `run ${runId} to reach ${wanted}; found ${JSON.stringify(found, null, 1)}; reports: ${this.reports.map(String).join(', ')}`
  }
}

/** The world of the test that runs: `world.current` changes with every test of the group. */
export interface WorldOfTest {
  readonly current: World
  readonly opened: OpenStore
}

/** Gives every test of a group a world of its own over one opened store. */
export function useWorld(group: Group, kind: StoreKind): World & WorldOfTest {
  let opened: OpenStore | undefined
  let real: RealTransports | undefined
  let current: World | undefined
  if (REAL_TRANSPORT) {
    group.tap((test) => {
      const why = NOT_OVER_BROKERS[test.title]
      if (why !== undefined) test.skip(true, why)
    })
  }
  group.setup(async () => {
    opened = await kind.open()
    real = await openRealTransports()
    return async () => {
      await real?.close()
      await opened!.close()
    }
  })
  group.each.setup(async () => {
    const world = new World(await opened!.empty(), await real?.fresh())
    current = world
    return () => world.close()
  })
  return new Proxy({} as World & WorldOfTest, {
    get(_, name) {
      if (name === 'current') return current
      if (name === 'opened') return opened
      const member = Reflect.get(current!, name, current) as unknown
      return typeof member === 'function' ? member.bind(current) : member
    },
  })
}
