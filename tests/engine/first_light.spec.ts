import { test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'

test.group('Engine', () => {
  test('runs an empty workflow', async ({ assert }) => {
    const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
    engine.register('empty', '1', async () => 'done')
    assert.deepEqual(await engine.start('empty', null, 'r1'), { runId: 'r1', status: 'pending' })
    const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 2000 })
    assert.deepEqual(result, { runId: 'r1', status: 'completed', output: 'done' })
  })

  test('local steps, captures, sleeps, signals and dispatched steps', async ({ assert }) => {
    for (const continuations of [false, {}] as const) {
      const store = new InMemoryStateStore()
      let now = 1000
      const engine = new WorkflowEngine({
        store,
        transport: new InMemoryTransport(),
        continuations,
        clock: () => now,
      })
      engine.handle('double', async (input) => (input as number) * 2)
      let bodies = 0
      engine.register('all', '1', async (ctx, input: number) => {
        bodies++
        const a = await ctx.localStep('a', async () => input + 1)
        const t = await ctx.now()
        const b = await ctx.step<number>('double', a)
        await ctx.sleep('90s')
        const s = await ctx.waitForSignal<{ x: number }>('go')
        const [c, d] = await Promise.all([
          ctx.step<number>('double', s.x),
          ctx.localStep('d', () => 'd'),
        ])
        return { a, t, b, c, d }
      })
      await engine.start('all', 20, 'r')
      let result = await engine.waitForRun('r', { timeoutMs: 2000 })
      while ((await engine.getRun('r'))!.wakeAt! !== 91000)
        await new Promise((r) => setImmediate(r))
      assert.equal(result.status, 'suspended')
      now += 90_001
      const [resumed] = await engine.resumeDueTimers()
      assert.equal(resumed.status, 'suspended')
      await engine.signal('go', { x: 5 })
      result = await engine.waitForRun('r', { terminal: true, timeoutMs: 2000 })
      assert.deepEqual(result.output, { a: 21, t: 1000, b: 42, c: 10, d: 'd' })
      assert.equal(bodies, continuations ? 1 : 4)
      await engine.drain()
    }
  })

  test('a failing run undoes', async ({ assert }) => {
    const engine = new WorkflowEngine({
      store: new InMemoryStateStore(),
      transport: new InMemoryTransport(),
    })
    const undone: unknown[] = []
    engine.handle('reserve', () => 'seat')
    engine.handle('release', (input) => void undone.push(input))
    engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
      await ctx.step('reserve', { n: 1 }, { compensate: 'release' })
      throw new Error('no')
    })
    await engine.start('saga', null, 's')
    const result = await engine.waitForRun('s', { terminal: true, timeoutMs: 2000 })
    assert.equal(result.status, 'failed')
    assert.equal(result.error?.message, 'no')
    assert.deepEqual(undone, [{ input: { n: 1 }, output: 'seat' }, 'one'])
    const rows = await engine.listCheckpoints('s')
    assert.deepEqual(
      rows.map((row) => [row.seq, row.name, row.status]),
      [
        [-2, 'compensate:one', 'completed'],
        [-1, 'compensate:reserve', 'completed'],
        [0, 'one', 'completed'],
        [1, 'reserve', 'completed'],
      ]
    )
  })
})
