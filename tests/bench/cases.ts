/*
 * What is timed. Every case runs on an engine of its own over empty data, learns from events when a run is
 * done, and counts what it sent in a rehearsal, so that counting does not slow down what is timed.
 */
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { randomUUID } from 'node:crypto'

/** One measurement: how often, in how many ms, with how much CPU of this process. */
export interface Timing {
  units: number
  ms: number
  cpuMs: number
}

export interface Sizes {
  workflows: number
  dispatching: number
  stepsEach: number
  sequential: number
  starts: number
}

export const SIZES = {
  full: { workflows: 1_000, dispatching: 60, stepsEach: 20, sequential: 1_000, starts: 300 },
  quick: { workflows: 100, dispatching: 20, stepsEach: 5, sequential: 100, starts: 50 },
} satisfies Record<string, Sizes>

const IN_FLIGHT = 20
const LOCAL_STEPS = 5

export interface BenchOptions {
  transport?: Transport
  /** The step runs here; default true. */
  serves?: boolean
}

export class Bench {
  readonly engine: WorkflowEngine
  readonly #done = new Map<string, (error?: unknown) => void>()
  readonly #prefix = randomUUID()
  #runs = 0
  /** When the body of a run began, in ms of `performance`. */
  readonly began = new Map<string, number>()
  /** How long each dispatched step took in the eyes of its body. */
  readonly stepMs: number[] = []

  constructor(store: StateStore, options: BenchOptions = {}) {
    const { transport = new InMemoryTransport(), serves = true } = options
    this.engine = new WorkflowEngine({ store, transport, continuations: {} })
    this.engine.subscribe(({ type, runId, error }) => {
      if (type === 'run.completed') this.#done.get(runId)?.()
      if (type === 'run.failed') this.#done.get(runId)?.(new Error(JSON.stringify(error)))
    })
    if (serves) this.engine.handle('remote', (input) => input)
    this.engine.register('local', '1', async (ctx) => {
      for (let i = 0; i < LOCAL_STEPS; i++) await ctx.localStep(`step ${i}`, async () => ({ i }))
    })
    this.engine.register('dispatching', '1', async (ctx, steps: number) => {
      for (let i = 0; i < steps; i++) {
        const startedAt = performance.now()
        await ctx.step('remote', { i })
        this.stepMs.push(performance.now() - startedAt)
      }
    })
    this.engine.register('empty', '1', async (ctx) => {
      this.began.set(ctx.runId, performance.now())
    })
  }

  async run(workflow: string, input: unknown): Promise<string> {
    const runId = `${this.#prefix}-${++this.#runs}`
    const done = new Promise<void>((resolve, reject) => {
      this.#done.set(runId, (error) => (error === undefined ? resolve() : reject(error)))
    })
    await this.engine.start(workflow, input, runId)
    await done
    this.#done.delete(runId)
    return runId
  }

  /** So many runs, a fixed number of them at once. */
  async inFlight(runs: number, workflow: string, input: unknown): Promise<void> {
    let left = runs
    const lane = async () => {
      while (left-- > 0) await this.run(workflow, input)
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  }
}

async function timed(units: number, work: () => Promise<unknown>): Promise<Timing> {
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  await work()
  const ms = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpu)
  return { units, ms, cpuMs: (user + system) / 1000 }
}

export interface Case {
  name: string
  /** What is counted. */
  unit: string
  /** How many units `rehearse` plays. */
  rehearsed: number
  rehearse(bench: Bench): Promise<unknown>
  measure(bench: Bench, sizes: Sizes): Promise<Timing>
}

export const CASES: Case[] = [
  {
    name: `workflows of ${LOCAL_STEPS} local steps, ${IN_FLIGHT} in flight`,
    unit: 'workflows',
    rehearsed: 1,
    rehearse: (bench) => bench.run('local', null),
    measure: (bench, { workflows }) =>
      timed(workflows, () => bench.inFlight(workflows, 'local', null)),
  },
  {
    name: `dispatched steps, ${IN_FLIGHT} runs in flight`,
    unit: 'steps',
    rehearsed: 10,
    rehearse: (bench) => bench.run('dispatching', 10),
    measure: (bench, { dispatching, stepsEach }) =>
      timed(dispatching * stepsEach, () => bench.inFlight(dispatching, 'dispatching', stepsEach)),
  },
  {
    name: 'dispatched steps one after the other, in one run',
    unit: 'steps',
    rehearsed: 10,
    rehearse: (bench) => bench.run('dispatching', 10),
    measure: (bench, { sequential }) =>
      timed(sequential, () => bench.run('dispatching', sequential)),
  },
]

/** From the call of `start` to the first line of the body, in ms, ascending. */
export async function startLatencies(bench: Bench, { starts }: Sizes): Promise<number[]> {
  const latencies: number[] = []
  for (let i = 0; i < starts; i++) {
    const calledAt = performance.now()
    const runId = await bench.run('empty', null)
    latencies.push(bench.began.get(runId)! - calledAt)
  }
  return latencies.sort((a, b) => a - b)
}
