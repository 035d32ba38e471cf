/*
 * A world: one seed, one random program, one random schedule of faults. A few processes share a store
 * and a broker; clients start, signal, cancel and requeue; processes crash and come back. After a while
 * the faults end, and everything has to come to its end.
 */
import type { WorkflowEngineDeps } from '../../src/engine/deps.ts'
import type { QueueConfig } from '../../src/flow/port.ts'
import { InvariantError } from '../../src/foundation/failure.ts'
import type { ClaimedRun } from '../../src/store/ports/run_claims.ts'
import { LIVE_RUN_STATUSES, type WorkflowRun } from '../../src/types/run.ts'
import { type Backend, type BackendContext, memoryBackend } from './backend.ts'
import { Broker } from './broker.ts'
import { Checks } from './checks.ts'
import { Effects } from './effects.ts'
import { faultyStore, type StoreWorld } from './faulty_store.ts'
import { LocalWorkers } from './local_workers.ts'
import { isEntityRun } from './entities.ts'
import { Operators } from './operators.ts'
import { Outside } from './outside.ts'
import { Payloads } from './payloads.ts'
import { hasLaterLeaves, type Program, randomProgram, TOKENS, workflowsOf } from './programs.ts'
import { below, pick, type Random, seeded } from './random.ts'
import { type RuleName, trusting } from './rules.ts'
import { SimProcess } from './sim_process.ts'
import { queueOf, Slots } from './slots.ts'
import { windowsOf } from './windows.ts'
import { macrotask, ProcessTime, VirtualTime } from './virtual_time.ts'
import { verify } from './verdict.ts'

const LEASE_MS = 300
const SKEW_MS = 200
const RECONCILE_MS = 4000
/** Faults and operators act until here. */
const CHAOS_MS = 9000
const DRAIN_MS = 3000
/** What is left to do when every run has ended is done by then; entities may need another poll for it. */
const REST_MS = 4000
const ENTITY_REST_MS = RECONCILE_MS + 3000
/** A process that cannot run something leaves it alone for so long. */
const REFUSED_MS = 61_000
const LIMIT_MS = CHAOS_MS + 30 * RECONCILE_MS

export interface WorldOptions {
  seed: number
  program?: Program
  /** Collects the story. */
  trace?: string[]
  backend?: (dice: BackendContext) => Backend
  /** Rules that do not hold in this world. */
  off?: ReadonlySet<RuleName>
  /** One run only. */
  solo?: boolean
}

export interface WorldResult {
  seed: number
  program: Program
  /** Kind of failure → its first text. */
  failures: Map<string, string>
  stats: { events: number; crashes: number; tasks: number; rows: number; statuses: string[] }
}

export async function simulate(options: WorldOptions): Promise<WorldResult> {
  return new World(options).run()
}

class World {
  readonly #options: WorldOptions
  readonly #random: Random
  readonly #time = new VirtualTime()
  readonly #failures = new Map<string, string>()
  readonly #programs = new Map<string, Program>()
  readonly #backend: Backend
  readonly #checks: Checks
  readonly #store: StoreWorld
  readonly #broker: Broker
  /** Steps run in the engines' own processes; without them, behind the broker. */
  readonly #workers?: LocalWorkers
  readonly #processes: SimProcess[] = []
  readonly #payloads = new Payloads()
  readonly #outside: Outside
  readonly #operators: Operators
  readonly #faults: { store: number; broker: number; crashes: number; lossy: boolean }
  readonly #passive: boolean
  /** Some process boots before its workflows are there. */
  readonly #refusing: boolean
  /** Macrotasks after each event; undefined: as many as something moves. */
  readonly #sluggish?: number
  readonly #settings: Partial<WorkflowEngineDeps>
  readonly #queue?: QueueConfig
  #boots = 0
  #crashes = 0
  #waiting: Promise<unknown>[] = []

  constructor(options: WorldOptions) {
    this.#options = options
    const random = (this.#random = seeded(options.seed))
    this.#addProgram('w0', options.program ?? randomProgram(options.seed))
    this.#faults = {
      store: pick(random, [0, 0.004, 0.015]),
      broker: pick(random, [0, 0.01, 0.04]),
      crashes: below(random, 5),
      lossy: random() < 0.3,
    }
    const { store, crashes, broker } = this.#faults
    this.#passive = store === 0 && crashes === 0 && broker === 0 && random() < 0.8
    if (!this.#passive && random() < 0.3) this.#sluggish = 1 + below(random, 3)
    this.#settings = this.#randomSettings()
    this.#queue = queueOf(options.seed)
    this.#backend = (options.backend ?? memoryBackend)({
      random,
      after: (ms, work) => void this.#time.after(ms, work),
    })
    const { shadow } = this.#backend
    const fail = (kind: string, text: string) => this.#fail(kind, text)
    const note = (text: () => string) => this.#note(text)
    const time = this.#time
    const roll = () => random()
    const active = () => time.now < CHAOS_MS
    this.#refusing = !this.#passive && random() < 0.1
    this.#checks = new Checks({
      slots: new Slots(this.#queue, { shadow, fail }),
      shadow,
      time,
      passive: this.#passive,
      payloads: this.#payloads,
      refusing: this.#refusing,
      fail,
      note,
    })
    this.#outside = new Outside({
      time,
      random,
      shadow,
      store: this.#backend.store,
      payloads: this.#payloads,
      programs: this.#programs,
      refusing: this.#refusing,
      any: () => this.#any(),
      fail,
      note,
    })
    shadow.watcher = this.#checks
    const asked = () => void time.activity++
    const hastyTransactions = !this.#backend.synchronous
    this.#operators = new Operators({
      time,
      random,
      shadow,
      chaosMs: CHAOS_MS,
      any: () => this.#any(),
      crash: this.#faults.crashes > 0 ? (one) => this.#crash(one) : undefined,
      note,
    })
    const effects = new Effects({
      shadow,
      fail,
      note,
      asked,
      roll,
      hastyTransactions,
      handedOver: (runId, leaf) => this.#outside.handedOver(runId, leaf),
      minted: (token) => this.#outside.minted(token),
    })
    if (random() < 0.25) this.#workers = new LocalWorkers({ random, effects, fail, note })
    this.#store = {
      time,
      random,
      backend: this.#backend,
      shadow,
      effects,
      // Silence is measured in leases: where it decides, nothing takes as long as a lease.
      faults: { rate: store, slow: 0.02, slowMs: this.#workers ? 150 : 600, active },
      note,
      before: (by) => this.#checks.before(by),
      after: (by, answer) => this.#checks.after(by, answer),
      wait: (work) => void this.#waiting.push(work.catch(() => {})),
    }
    this.#broker = new Broker({
      time,
      random,
      shadow,
      effects,
      faults: { rate: broker, lossy: this.#faults.lossy, active },
      hasty: this.#isOff('ack'),
      forgetful: this.#isOff('resend'),
      fail,
      note,
      roll,
    })
    const fleet = 1 + below(random, 3)
    for (let slot = 0; slot < fleet; slot++) this.#boot(slot)
  }

  async run(): Promise<WorldResult> {
    const systemRandom = Math.random
    const onRejection = (error: unknown) => this.#fail('unhandled', describe(error))
    Math.random = this.#random
    process.on('unhandledRejection', onRejection)
    try {
      this.#schedule()
      const events = await this.#play()
      for (const { time } of this.#processes) time.die()
      await this.#verify()
      return this.#result(events)
    } finally {
      Math.random = systemRandom
      process.off('unhandledRejection', onRejection)
      await this.#backend.close()
    }
  }

  #schedule(): void {
    const random = this.#random
    const time = this.#time
    const chaos = () => CHAOS_MS * random() * random()
    const roots = !this.#options.solo && random() < 0.25 ? 2 : 1
    for (let i = 0; i < roots; i++) {
      if (i > 0)
        this.#addProgram(
          `w${i}`,
          randomProgram(below(random, 1e9), 1, hasLaterLeaves(this.#options.seed))
        )
      const name = `w${i}`
      time.after(i * 200 * random(), () => {
        if (i > 0) for (const one of this.#processes) one.register()
        this.#operators.start(name, `r${i}`)
      })
    }
    for (let i = below(random, 10); i > 0; i--) {
      time.after(chaos(), () => this.#outside.signal(pick(random, TOKENS)))
    }
    for (let i = this.#faults.crashes; i > 0; i--) {
      time.after(chaos(), () => this.#crash(this.#any()))
    }
    if (random() < 0.2) time.after(chaos(), () => this.#retire(this.#any()))
    if (!this.#passive && random() < 0.1) {
      for (let i = 0; i < 4; i++) {
        time.after(chaos(), () => this.#any()?.time.jump(SKEW_MS * (random() - 0.5)))
      }
    }
    if (random() < 0.25) this.#operators.scheduleCancel()
    if (random() < 0.1) this.#operators.scheduleCancel()
    if (random() < 0.5) {
      for (let i = 0; i < 4; i++) {
        time.after(1000 + 0.8 * CHAOS_MS * random(), () => {
          this.#operators.reopenFailed()
          if (random() < 0.2) time.after(60 * random(), () => this.#operators.reopenFailed())
        })
      }
    }
    if (random() < 0.3) {
      for (let i = 0; i < 5; i++) time.after(chaos(), () => this.#any()?.register())
    }
    this.#outside.schedule(chaos)
    const answerAll = () => {
      if (this.#isOver()) return
      void this.#backend.waiters().then((waiters) => {
        for (const waiter of waiters) void this.#outside.answer(waiter)
      })
      time.after(500, answerAll)
    }
    time.after(CHAOS_MS, answerAll)
  }

  async #play(): Promise<number> {
    let events = 0
    let endAt: number | undefined
    while (this.#time.now < LIMIT_MS && events < 400_000 && this.#time.step()) {
      events++
      while (this.#waiting.length > 0) await Promise.all(this.#waiting.splice(0))
      if (this.#sluggish === undefined) await this.#time.settled()
      else for (let i = 0; i < this.#sluggish; i++) await macrotask()
      if (events % 16 > 0) continue
      if (!this.#isOver()) endAt = undefined
      else if ((endAt ??= this.#time.now) + this.#restMs(endAt) < this.#time.now) break
    }
    return events
  }

  /* ---- processes ---- */

  #boot(slot: number): void {
    const random = this.#random
    const time = new ProcessTime(this.#time, { skew: (random() - 0.5) * SKEW_MS, random })
    const { effects } = this.#store
    const options = {
      id: this.#isOff('nonce') ? `e${slot}` : `e${slot}.${this.#boots++}`,
      time,
      effects,
      programs: this.#programs,
      settings: { ...this.#settings, ...this.#ownSettings() },
      // Where a handler is alive, an attempt that is given up would be a second one.
      windows: this.#workers ? undefined : windowsOf(this.#options.seed),
      queue: this.#isOff('slot') ? undefined : this.#queue,
      report: (error: unknown, what: string) => this.#reported(error, what),
      serve: this.#workers && this.#workers.serve.bind(this.#workers),
      bare: this.#refusing && random() < 0.4,
    }
    const created = new SimProcess(options, (self) => {
      const client = { id: self.id, time, claimed: (run: ClaimedRun) => self.claimed(run) }
      const store = faultyStore(this.#store, client)
      return {
        store: this.#isOff('turns') ? trusting(store) : store,
        transport: this.#workers?.connect(time) ?? this.#broker.connect(self.id, time),
      }
    })
    if (options.bare) time.after(2000 * random(), () => created.register())
    this.#processes[slot] = created
    this.#note(() => `${created.id} boots`)
    this.#beat(created)
  }

  /** Settings that all processes share, as one configuration would. */
  #randomSettings(): Partial<WorkflowEngineDeps> {
    const random = this.#random
    return {
      leaseMs: LEASE_MS,
      reconcileMs: RECONCILE_MS,
      compensationRetries: 1 + below(random, 3),
      compensationTimeoutMs: 3000,
      remoteRedispatchMs: this.#faults.lossy ? 1500 : undefined,
      trackStepStart: random() < 0.7,
      maxRecoveryAttempts: random() < 0.05 ? 1 + below(random, 3) : undefined,
    }
  }

  #ownSettings(): Partial<WorkflowEngineDeps> {
    const random = this.#random
    return {
      continuations: random() < 0.6 ? { max: random() < 0.3 ? 1 : 100, idleMs: 60_000 } : false,
      turnSlots: random() < 0.2 ? 1 : 100,
    }
  }

  #beat(one: SimProcess): void {
    const rare = this.#passive && this.#time.now < CHAOS_MS
    one.time.after((rare ? 4500 : 150) + 100 * this.#random(), () => {
      one.poll()
      this.#beat(one)
    })
  }

  #addProgram(name: string, program: Program): void {
    for (const [each, its] of workflowsOf(name, program)) this.#programs.set(each, its)
  }

  #isOff(rule: RuleName): boolean {
    return this.#options.off?.has(rule) ?? false
  }

  #any(): SimProcess | undefined {
    const alive = this.#processes.filter((one) => one.alive)
    return alive[below(this.#random, alive.length)]
  }

  #crash(one: SimProcess | undefined): void {
    if (!one?.alive) return
    this.#note(() => `CRASH ${one.id}`)
    this.#crashes++
    one.crash()
    const slot = this.#processes.indexOf(one)
    this.#time.after(50 + 600 * this.#random(), () => this.#boot(slot))
  }

  /** A process ends as it should: nothing of it is left under way. */
  #retire(one: SimProcess | undefined): void {
    if (!one) return
    const began = this.#time.now
    this.#note(() => `${one.id} drains`)
    void one.engine.drain(DRAIN_MS).then(() => {
      if (!one.alive) return
      const held = this.#backend.shadow.runs().find(({ lockedBy }) => lockedBy === one.id)
      const inTime = this.#time.now - began < DRAIN_MS
      if (held && inTime && this.#faults.store === 0) {
        this.#fail('drain', `${one.id} is drained and holds ${held.id}`)
      }
      this.#crash(one)
    })
  }

  /* ---- the end ---- */

  #restMs(endAt: number): number {
    if (!this.#backend.shadow.runs().some(isEntityRun)) return REST_MS
    const refusedMs = this.#refusing ? REFUSED_MS : 0
    return Math.max(0, this.#outside.toldAt - endAt) + ENTITY_REST_MS + refusedMs
  }

  #isOver(): boolean {
    const runs = this.#backend.shadow.runs()
    const isLive = (run: WorkflowRun) => LIVE_RUN_STATUSES.includes(run.status)
    return runs.length > 0 && !runs.some((run) => isLive(run) && !isEntityRun(run))
  }

  async #verify(): Promise<void> {
    const { shadow, store } = this.#backend
    const fail = (kind: string, text: string) => this.#fail(kind, text)
    this.#outside.verify()
    await this.#payloads.verify({ shadow, store, fail })
    await verify({
      shadow,
      effects: this.#store.effects,
      programs: this.#programs,
      intents: this.#checks.intents,
      settledBeforeUnwind: (row) => this.#checks.wasSettledBeforeUnwind(row),
      attributesAtFirst: (runId) => this.#checks.attributesAtFirst(runId),
      told: this.#outside.told,
      fail,
    })
  }

  #result(events: number): WorldResult {
    const { shadow } = this.#backend
    const runs = shadow.runs()
    return {
      seed: this.#options.seed,
      program: this.#programs.get('w0')!,
      failures: this.#failures,
      stats: {
        events,
        crashes: this.#crashes,
        tasks: this.#broker.tasks + (this.#workers?.tasks ?? 0),
        rows: runs.reduce((sum, { id }) => sum + shadow.rows(id).length, 0),
        statuses: runs.map(({ status }) => status),
      },
    }
  }

  /** What an engine reports: failing stores and brokers are expected, its own defects are not. */
  #reported(error: unknown, what: string): void {
    this.#note(() => `${what} reports ${describe(error)}`)
    const defect = error instanceof InvariantError || error instanceof TypeError
    if (defect) this.#fail('defect', `${what}: ${describe(error)}`)
  }

  #fail(kind: string, text: string): void {
    const at = `t=${this.#time.now.toFixed(1)} ${text}`
    this.#note(() => `!!! ${kind}: ${text}`)
    if (!this.#failures.has(kind)) this.#failures.set(kind, at)
  }

  #note(text: () => string): void {
    this.#options.trace?.push(`${this.#time.now.toFixed(1).padStart(8)} ${text()}`)
  }
}

const describe = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)
