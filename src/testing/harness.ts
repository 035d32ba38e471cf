/*
 * An engine for a test: memory behind it, a clock that the test moves, and verbs that wait until nothing
 * is left to do. It has no worker loop: what is due happens when it is asked for.
 */
import { registerWorkflowClass } from '../authoring/discover_workflows.ts'
import { workflowName } from '../authoring/workflow_ref.ts'
import type { WorkflowEngineDeps } from '../engine/deps.ts'
import { WorkflowEngine } from '../engine/workflow_engine.ts'
import {
  keepProcessAlive,
  nextMacrotask,
  sleepOn,
  systemClock,
  systemTimers,
} from '../foundation/clock.ts'
import { nextLinkId, randomId } from '../foundation/ids.ts'
import { InMemoryStateStore } from '../store/memory/memory_store.ts'
import type { StateStore } from '../store/state_store.ts'
import { InMemoryTransport } from '../transport/memory/memory_transport.ts'
import { isTerminalStatus, type RunResult, type WorkflowRun } from '../types/run.ts'
import type {
  StartOptions,
  WorkflowClass,
  WorkflowInputOf,
  WorkflowOutputOf,
} from '../types/workflow.ts'
import { countingStore } from './counting_store.ts'
import { MutableClock, timersOf } from './mutable_clock.ts'

/** Where the clock of a test engine begins, in epoch ms. */
const BEGINNING = 1000

/** Rounds of the event loop without a store call after which nothing moves by itself. */
const QUIET_ROUNDS = 4
const EAGER_ROUNDS = 50

/** Options of a test engine: every dependency of an engine, and how long its verbs wait. */
export interface TestEngineOptions extends Omit<
  WorkflowEngineDeps,
  'store' | 'transport' | 'transports' | 'clock'
> {
  /** Default an empty `InMemoryStateStore`; pass the one of another test engine to take over its runs. */
  store?: StateStore
  /** Default one of its own that begins at 1000. */
  clock?: MutableClock
  /** Real ms that a verb waits before it rejects; default 5000. */
  timeoutMs?: number
}

/** Options of `run` and `runToEnd`. */
export interface TestRunOptions extends StartOptions {
  /** Default random. */
  runId?: string
}

/** What `createTestEngine` answers. Its verbs may be taken out of it. */
export interface TestEngine {
  readonly engine: WorkflowEngine
  readonly store: StateStore
  readonly transport: InMemoryTransport
  readonly clock: MutableClock
  /**
   * Starts a run and waits until it is suspended or has ended, and nothing else is left to do now. A
   * workflow class that is not registered yet is registered first. Rejects when the run still executes
   * after `timeoutMs`, and with what `engine.start` rejects with.
   */
  run<C extends WorkflowClass>(
    workflow: C,
    input: WorkflowInputOf<C>,
    options?: TestRunOptions
  ): Promise<RunResult<WorkflowOutputOf<C>>>
  run(workflow: string, input?: unknown, options?: TestRunOptions): Promise<RunResult>
  /**
   * As `run`, then moves the clock to whatever is due next until the run, and whatever it continued as,
   * has ended. Rejects when only a signal or a worker could move it.
   */
  runToEnd<C extends WorkflowClass>(
    workflow: C,
    input: WorkflowInputOf<C>,
    options?: TestRunOptions
  ): Promise<RunResult<WorkflowOutputOf<C>>>
  runToEnd(workflow: string, input?: unknown, options?: TestRunOptions): Promise<RunResult>
  /** Moves the clock on by `ms` (default 0), executes the runs that are due, and waits until all is quiet. */
  tick(ms?: number): Promise<void>
  /** Waits until no run is executing or about to, and no step is in flight. Rejects after `timeoutMs`. */
  settle(): Promise<void>
  /** Waits for what is in flight, then lets go of the engine and its transport. The data stay. */
  close(): Promise<void>
}

/**
 * An engine over memory with a clock that only the test moves. Its defaults are those of an engine built
 * by hand, so continuations are off and every suspension is followed by a replay; only `reconcileMs` is 0:
 * a run that waits for news stays as it is. Timers fire when the clock passes them, or when their time
 * has really gone by. Throws `InvalidArgumentError` for a dependency that cannot be used.
 */
export function createTestEngine(options: TestEngineOptions = {}): TestEngine {
  const harness = new Harness(options)
  const { engine, store, transport, clock } = harness
  return {
    engine,
    store,
    transport,
    clock,
    run: harness.run.bind(harness) as TestEngine['run'],
    runToEnd: harness.runToEnd.bind(harness) as TestEngine['runToEnd'],
    tick: harness.tick.bind(harness),
    settle: harness.settle.bind(harness),
    close: harness.close.bind(harness),
  }
}

class Harness {
  readonly engine: WorkflowEngine
  readonly store: StateStore
  readonly transport: InMemoryTransport
  readonly clock: MutableClock
  readonly #timeoutMs: number
  readonly #activity: () => number
  readonly #registered = new Set<unknown>()

  constructor(options: TestEngineOptions) {
    const { store, clock, timeoutMs = 5000, ...deps } = options
    this.store = store ?? new InMemoryStateStore()
    this.clock = clock ?? new MutableClock(BEGINNING)
    this.#timeoutMs = timeoutMs
    const timers = deps.timers ?? timersOf(this.clock)
    this.transport = new InMemoryTransport({ clock: this.clock.now, timers })
    const counted = countingStore(this.store)
    this.#activity = counted.activity
    this.engine = new WorkflowEngine({
      reconcileMs: 0,
      ...deps,
      timers,
      store: counted.store,
      transport: this.transport,
      clock: this.clock.now,
    })
  }

  async run(
    workflow: string | WorkflowClass,
    input?: unknown,
    options: TestRunOptions = {}
  ): Promise<RunResult<never>> {
    const { runId = randomId(), ...start } = options
    await this.#register(workflow)
    await this.engine.start(workflowName(workflow), input, runId, start)
    await this.settle()
    const run = await this.engine.getRun(runId)
    return resultOf(run!)
  }

  async runToEnd(
    workflow: string | WorkflowClass,
    input?: unknown,
    options: TestRunOptions = {}
  ): Promise<RunResult<never>> {
    const runId = options.runId ?? randomId()
    await this.run(workflow, input, { ...options, runId })
    for (;;) {
      const end = await this.#endOf(runId)
      if (end) return end
      const due = await this.#nextDue()
      if (due === undefined) throw new Error(await this.#describeStuck())
      await this.tick(Math.max(0, due - this.clock.now()))
    }
  }

  async tick(ms = 0): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`tick: ${ms} is no number of milliseconds`)
    if (ms > 0) this.clock.advance(ms)
    await this.settle()
    await this.engine.resumeDueTimers()
    await this.settle()
  }

  async settle(): Promise<void> {
    const giveUpAt = systemClock() + this.#timeoutMs
    const sleep = keepProcessAlive()
    try {
      let before = this.#activity()
      for (let quiet = 0, rounds = 0; quiet < QUIET_ROUNDS; rounds++) {
        // Most of what is in flight moves within the loop; real IO of a step needs some patience.
        await (rounds < EAGER_ROUNDS ? nextMacrotask() : sleepOn(systemTimers, 1))
        const moved = this.#activity() !== before
        const busy = moved || this.transport.inFlight > 0 || (await this.#executing())
        before = this.#activity()
        quiet = busy ? 0 : quiet + 1
        if (busy && systemClock() > giveUpAt) throw new Error(await this.#describeBusy())
      }
    } finally {
      sleep()
    }
  }

  async close(): Promise<void> {
    await this.engine.drain(this.#timeoutMs)
    await this.transport.close()
  }

  async #register(workflow: string | WorkflowClass): Promise<void> {
    if (typeof workflow === 'string' || this.#registered.has(workflow)) return
    await registerWorkflowClass(this.engine, workflow)
    this.#registered.add(workflow)
  }

  /** A run of another process, or of one that died, is none of ours. */
  async #executing(): Promise<boolean> {
    const running = await this.store.listRuns({ status: 'running' })
    return running.some(({ lockedBy }) => lockedBy === this.engine.instanceId)
  }

  /** The end of the run, or of the last link of its chain. */
  async #endOf(runId: string): Promise<RunResult<never> | undefined> {
    let run = await this.engine.getRun(runId)
    while (run?.status === 'completed' && run.output === undefined) {
      const next = await this.engine.getRun(nextLinkId(run.id))
      if (!next) break
      run = next
    }
    return run && isTerminalStatus(run.status) ? resultOf(run) : undefined
  }

  /** When the next run is due. */
  async #nextDue(): Promise<number | undefined> {
    const waiting = await this.#waiting()
    const due = waiting.flatMap(({ wakeAt }) => (wakeAt === undefined ? [] : [wakeAt]))
    return due.length > 0 ? Math.min(...due) : undefined
  }

  #waiting(): Promise<WorkflowRun[]> {
    return this.store.listRuns({ statuses: ['suspended', 'blocked'] })
  }

  async #describeStuck(): Promise<string> {
    const waiting = await this.#waiting()
    const lines = await Promise.all(
      waiting.map(async ({ id }) => {
        const rows = await this.engine.listCheckpoints(id)
        const open = rows.filter(({ status }) => status === 'pending' || status === 'running')
        const waiters = await this.store.listSignalWaiters('')
        const tokens = waiters.filter(({ runId }) => runId === id).map(({ token }) => token)
        const on = [...open.map(({ name }) => name), ...tokens.map((token) => `signal ${token}`)]
        return `run ${id} waits for ${on.join(', ') || 'something outside its ctx'}`
      })
    )
    return `nothing is due any more: ${lines.join('; ')}`
  }

  async #describeBusy(): Promise<string> {
    const runs = await this.store.listRuns({ status: 'running' })
    const names = runs.map(({ id }) => `run ${id} executes`).join(', ') || 'no run executes'
    return (
      `still busy after ${this.#timeoutMs} ms: ${names}; ` +
      `${this.transport.inFlight} dispatched steps in flight`
    )
  }
}

function resultOf({ id, status, output, error }: WorkflowRun): RunResult<never> {
  const result: RunResult = { runId: id, status }
  if (output !== undefined) result.output = output
  if (error !== undefined) result.error = error
  return result as RunResult<never>
}
