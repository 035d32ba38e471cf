/*
 * Runs one fan in a process of its own with `--expose-gc` and prints one line of JSON: what it cost in
 * executions of the parent's body, and what it leaves in memory.
 *
 *   node --expose-gc --import=@poppinss/ts-exec tests/integration/memory/big_fan.ts '{"members":10000,"kind":"step"}'
 */
import { setImmediate as tick } from 'node:timers/promises'
import { defineStep } from '../../../src/authoring/step.ts'
import { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import { InMemoryTransport } from '../../../src/transport/memory/memory_transport.ts'

export interface BigFanOptions {
  members: number
  kind: 'child' | 'step'
  concurrency?: number
}

export interface BigFan {
  output: unknown
  bodies: number
  /** Heap beyond what the rows of the run take, in bytes, after the run and a collection. */
  left: number
  /** The most that was in use while it ran, in bytes a member, after collections. */
  peakAMember: number
}

const { members, kind, concurrency } = JSON.parse(process.argv[2]) as BigFanOptions
const STEP = defineStep('member', (input: number) => input)
const engine = new WorkflowEngine({
  store: new InMemoryStateStore(),
  transport: new InMemoryTransport(),
})
engine.handle('member', (input) => input)
engine.register('member', '1', async (_ctx, input) => input)
let bodies = 0
engine.register('fan', '1', async (ctx, n: number) => {
  bodies += 1
  const inputs = Array.from({ length: n }, (_, i) => i)
  const options = concurrency === undefined ? {} : { concurrency }
  const results =
    kind === 'child'
      ? await ctx.all('member', inputs, options)
      : await ctx.all(STEP, inputs, options)
  return results.length === n && results.every((result, i) => result === i)
})

function heap(): number {
  globalThis.gc!()
  return process.memoryUsage().heapUsed
}

async function play(n: number, runId: string): Promise<unknown> {
  await engine.start('fan', n, runId)
  const { output } = await engine.waitForRun(runId, { terminal: true })
  return output
}

await play(100, 'warm-up')
await tick()
const before = heap()
let peak = before
const sampler = setInterval(() => (peak = Math.max(peak, heap())), 250)
bodies = 0
const output = await play(members, 'big')
const seen = bodies
clearInterval(sampler)
await engine.deleteRun('big')
// What the last turn still holds goes within a few rounds.
for (let round = 0; round < 10; round++) {
  await tick()
  heap()
}

const measured: BigFan = {
  output,
  bodies: seen,
  left: heap() - before,
  peakAMember: Math.round((peak - before) / members),
}
process.stdout.write(`${JSON.stringify(measured)}\n`)
await engine.drain()
