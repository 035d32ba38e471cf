/*
 * Measures what suspended runs keep in memory, in a process of its own that runs with `--expose-gc`: with
 * their bodies live, after the bodies were evicted, and after their histories were dropped as well. Prints
 * one line of JSON. With `snapshot`, a folder, it leaves a heap snapshot of each.
 *
 *   node --expose-gc --import=@poppinss/ts-exec tests/integration/memory/measure.ts '{"runs":10000}'
 */
import { setImmediate as tick } from 'node:timers/promises'
import { writeHeapSnapshot } from 'node:v8'
import { join } from 'node:path'
import { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { InMemoryTransport } from '../../../src/transport/memory/memory_transport.ts'
import { createDatabase } from '../../helpers/databases.ts'
import { FakeTime } from '../../helpers/fake_time.ts'

export interface MeasureOptions {
  runs: number
  /** Folder for heap snapshots. */
  snapshot?: string
}

/** Heap that each suspended run adds, in bytes. */
export interface Measured {
  live: number
  /** Bodies evicted, histories warm. */
  warm: number
  /** Nothing kept. */
  cold: number
  /** Runs that are suspended, as the store says. */
  suspended: number
  /** Of those asked to go on at the end, the ones that completed, in percent. */
  completed: number
}

const { runs, snapshot } = JSON.parse(process.argv[2]) as MeasureOptions
const BODIES_IDLE_MS = 30_000
/** Longer than any history is kept, and than the pause between two sweeps. */
const EVERYTHING_IDLE_MS = 600_000

const database = await createDatabase('sqlite')
const store = new LucidStateStore(database.db)
await store.ensureSchema()
const time = new FakeTime()
const { clock } = time
const engine = new WorkflowEngine({
  store,
  clock,
  timers: time,
  continuations: { max: runs * 2, idleMs: BODIES_IDLE_MS },
  transport: new InMemoryTransport({ clock, timers: time }),
})
engine.handle('quote', () => ({ price: 100, currency: 'EUR' }))
engine.register('approval', '1', async (ctx, input: { order: string }) => {
  const at = await ctx.now()
  const quote = await ctx.step<{ price: number }>('quote', input)
  const customer = await ctx.localStep('customer', () => ({ name: `customer of ${input.order}` }))
  const approval = await ctx.waitForSignal<string>(`approve:${ctx.runId}`)
  return { at, quote, customer, approval }
})

/** Starts runs, a few at a time, and waits until each has parked on its signal. */
async function park(from: number, to: number): Promise<void> {
  const waiting = new Set<string>()
  let drained: () => void = () => {}
  const seen = new Map<string, number>()
  const stop = engine.subscribe(({ type, runId }) => {
    if (type !== 'run.suspended') return
    // Once for the step, once for the signal.
    seen.set(runId, (seen.get(runId) ?? 0) + 1)
    if (seen.get(runId)! < 2) return
    waiting.delete(runId)
    if (waiting.size === 0) drained()
  })
  for (let i = from; i < to; i += 100) {
    const batch = Array.from({ length: Math.min(100, to - i) }, (_, n) => `run-${i + n}`)
    for (const id of batch) waiting.add(id)
    const parked = new Promise<void>((resolve) => (drained = resolve))
    await Promise.all(batch.map((id) => engine.start('approval', { order: id }, id)))
    await parked
    seen.clear()
  }
  stop()
}

async function heap(): Promise<number> {
  for (let i = 0; i < 5; i++) {
    await tick()
    globalThis.gc!()
  }
  return process.memoryUsage().heapUsed
}

async function bytesARun(name: string): Promise<number> {
  const bytes = ((await heap()) - before) / runs
  if (snapshot) writeHeapSnapshot(join(snapshot, `${name}.heapsnapshot`))
  return Math.round(bytes)
}

// What the first runs bring in stays for all: code, caches, prepared statements.
const WARM_UP = 500
await park(0, WARM_UP)
await time.advance(EVERYTHING_IDLE_MS)
const before = await heap()
await park(WARM_UP, WARM_UP + runs)
const live = await bytesARun('live')
await time.advance(3 * BODIES_IDLE_MS)
const warm = await bytesARun('warm')
const suspended = await store.countRuns({ status: 'suspended' })

/** Sees that some of them still go on; answers how many percent did. */
async function goOn(from: number): Promise<number> {
  const asked = 20
  let completed = 0
  for (let i = 0; i < asked; i++) {
    const id = `run-${from + i}`
    const result = await engine.signal(`approve:${id}`, 'yes')
    if (result?.status === 'completed') completed += 1
  }
  return (100 * completed) / asked
}

const afterWarm = await goOn(WARM_UP)
await time.advance(EVERYTHING_IDLE_MS)
const cold = await bytesARun('cold')
const completed = Math.min(afterWarm, await goOn(WARM_UP + 20))

const measured: Measured = { live, warm, cold, suspended, completed }
process.stdout.write(`${JSON.stringify(measured)}\n`)
await engine.drain()
await database.cleanup()
