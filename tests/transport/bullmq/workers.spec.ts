import { test } from '@japa/runner'
import { eventually, quietly } from '../../../src/testing/contracts/transport_session.ts'
import { encode } from '../../../src/wire/codec.ts'
import { BullBench, redisUrl } from './bench.ts'

if (redisUrl) {
  test.group('bullmq | how much at once', (group) => {
    group.each.timeout(30_000)

    test('{$self} tasks of a queue at once, and no more')
      .with([1, 4])
      .run(async ({ assert, cleanup }, concurrency) => {
        const bench = new BullBench(cleanup)
        const session = await bench.session({ concurrency })
        let running = 0
        let most = 0
        const waiting: (() => void)[] = []
        session.serve('busy', async () => {
          most = Math.max(most, ++running)
          await new Promise<void>((resolve) => waiting.push(resolve))
          running--
        })
        const tasks = Array.from({ length: 9 }, () => session.task('busy', null))
        for (const task of tasks) await session.transport.dispatch(task)
        await eventually('a full house', () => running === concurrency)
        await quietly()
        while (tasks.some((task) => session.heard(task).length === 0)) {
          for (const resolve of waiting.splice(0)) resolve()
          await quietly()
        }
        assert.equal(most, concurrency)
      })

    test('an adaptive limit moves the workers that run', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session({
        concurrency: { mode: 'adaptive', max: 3, tickMs: 20, ramCeilingPct: 100 },
        // Time that stands still: nothing is slow, and nothing stalls.
        clock: () => 1_700_000_000_000,
      })
      const waiting: (() => void)[] = []
      session.serve('busy', () => new Promise<void>((resolve) => waiting.push(resolve)))
      const tasks = Array.from({ length: 30 }, () => session.task('busy', null))
      for (const task of tasks) await session.transport.dispatch(task)
      let polls = 0
      await eventually('three at once', () => {
        // BullMQ looks at a new limit when something completes.
        if (++polls % 40 === 0) waiting.shift()?.()
        return waiting.length >= 3
      })
      const health = await session.transport.groupHealth?.('busy')
      assert.deepInclude(health?.liveWorkers[0].status?.concurrency, { mode: 'adaptive', max: 3 })
      await eventually('the end', () => {
        for (const resolve of waiting.splice(0)) resolve()
        return tasks.every((task) => session.heard(task).length > 0)
      })
    })

    for (const [concurrency, atOnce] of [
      [3, 3],
      [{ mode: 'adaptive', min: 3, max: 8 }, 1],
    ] as const) {
      test(`messages between processes: ${atOnce} at once with concurrency ${JSON.stringify(concurrency)}`, async ({
        assert,
        cleanup,
      }) => {
        const bench = new BullBench(cleanup)
        const transport = await bench.transport({ concurrency })
        let running = 0
        let most = 0
        let done = 0
        const waiting: (() => void)[] = []
        transport.onStepEvent(async () => {
          most = Math.max(most, ++running)
          await new Promise<void>((resolve) => waiting.push(resolve))
          running--
          done++
        })
        for (let seq = 0; seq < 6; seq++) {
          const event = { runId: 'r', seq, name: 'x', phase: 'running', startedAt: 1 } as const
          await transport.dispatchStepEvent(event)
        }
        await eventually('a full house', () => running === atOnce)
        await quietly()
        await eventually('the end', () => {
          for (const resolve of waiting.splice(0)) resolve()
          return done === 6
        })
        assert.equal(most, atOnce)
      })
    }

    test('resultConcurrency bounds the results in hand', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const transport = await bench.transport({ resultConcurrency: 2, concurrency: 8 })
      let running = 0
      let most = 0
      let done = 0
      const waiting: (() => void)[] = []
      transport.onResult(async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => waiting.push(resolve))
        running--
        done++
      })
      transport.handle('quick', () => null)
      for (let seq = 0; seq < 6; seq++) {
        const ids = { runId: 'r', seq, stepId: `r:${seq}`, name: 'quick', group: 'quick' }
        await transport.dispatch({ ...ids, input: null, attempt: 1 })
      }
      await eventually('two results in hand', () => running === 2)
      await eventually('all of them', () => {
        for (const resolve of waiting.splice(0)) resolve()
        return done === 6
      })
      assert.equal(most, 2)
    })

    test('the more urgent task is taken first, equals in their order', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session()
      const ids = [
        [1, 5],
        [2, 9],
        [3, 5],
        [4, 1],
      ]
      const tasks = ids.map(([input, priority]) => session.task('ranked', input, { priority }))
      for (const task of tasks) await session.transport.dispatch(task)
      const order: unknown[] = []
      session.serve('ranked', (input) => order.push(input))
      for (const task of tasks) await session.resultOf(task)
      assert.deepEqual(order, [2, 1, 3, 4])
    })
  })

  test.group('bullmq | the fleet', (group) => {
    group.each.timeout(30_000)

    test('a live worker and the backlog are seen; a closed one is gone', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.transport()
      const worker = await bench.transport({ instanceId: 'w-1', partition: 'acme' })
      const token = 'charge@acme'
      let finish: () => void = () => {}
      let picked = 0
      worker.handle('charge', () => {
        picked++
        return new Promise<void>((resolve) => (finish = resolve))
      })
      for (const [seq, priority] of [undefined, 3, undefined].entries()) {
        const ids = { runId: 'r', seq, stepId: `r:${seq}`, name: 'charge', group: token }
        await engine.dispatch({ ...ids, input: null, attempt: 1, priority })
      }
      await eventually('the pickup', () => picked > 0)
      const health = await engine.groupHealth(token)
      assert.equal(health.depth, 3)
      assert.lengthOf(health.liveWorkers, 1)
      const [{ instanceId, lastBeatAt, status }] = health.liveWorkers
      assert.equal(instanceId, 'w-1')
      assert.isAbove(lastBeatAt, 1e12)
      assert.deepInclude(status, { runtime: 'node', concurrency: { mode: 'fixed', limit: 1 } })
      const key = `${bench.prefix}-worker-heartbeat:${token}:w-1`
      assert.isAtLeast(await bench.redis.ttl(key), 30)
      assert.deepEqual(await engine.listWorkerGroups(), [token])
      finish()
      await worker.close()
      const after = await engine.groupHealth(token)
      assert.deepEqual(after.liveWorkers, [])
      assert.deepEqual(await engine.listWorkerGroups(), [])
    })

    test('keys of peers are read in every form; what cannot be read is left out', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.transport({ onError: () => {} })
      const descriptor = {
        instanceId: 'py-1',
        runtime: 'python' as const,
        sdk: { name: 'durable', version: '1' },
        workflows: [],
        steps: ['a[b]*'],
        startedAt: 5,
      }
      const beats = `${bench.prefix}-worker-heartbeat`
      const descriptors = `${bench.prefix}-worker-descriptor`
      const values = {
        [`${beats}:a[b]*:py-1`]: '1700000000',
        [`${beats}:a[b]*:py-2`]: '{"ts":1700000000000,"status":"up","descriptorHash":"x"}',
        [`${beats}:ab:py-3`]: 'garbage',
        [`${beats}:broken`]: '1',
        [`${descriptors}:a[b]*:py-1`]: encode('descriptor', descriptor),
        [`${descriptors}:ab:py-1`]: encode('descriptor', descriptor),
        [`${descriptors}:a[b]*:py-9`]: '{"nothing":true}',
        [`${descriptors}:a[b]*:py-8`]: 'garbage',
      }
      for (const [key, value] of Object.entries(values)) await bench.redis.set(key, value)
      const { liveWorkers } = await engine.groupHealth('a[b]*')
      assert.deepEqual(
        liveWorkers.map((worker) => [worker.instanceId, worker.lastBeatAt]),
        [
          ['py-1', 1_700_000_000_000],
          ['py-2', 1_700_000_000_000],
        ]
      )
      assert.deepEqual(await engine.listWorkerGroups(), ['a[b]*', 'ab'])
      const all = await engine.readAllWorkerHeartbeats()
      assert.deepEqual(
        all.map(({ instanceId, lastBeatAt }) => [instanceId, lastBeatAt]),
        [
          ['py-1', 1_700_000_000_000],
          ['py-2', 1_700_000_000_000],
          ['py-3', 0],
        ]
      )
      const expected = [descriptor]
      assert.deepEqual(await engine.listWorkerDescriptors('a[b]*'), expected)
      assert.deepEqual(await engine.readAllWorkerDescriptors(), expected)
      assert.deepEqual(await engine.listWorkerDescriptors('nobody'), [])
      await engine.close()
      assert.deepEqual(await engine.listWorkerDescriptors('a[b]*'), [])
    })

    test('a dispatch reads no keys, and a parked worker is not announced', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const seen: string[] = []
      const monitor = await bench.redis.monitor()
      cleanup(() => monitor.disconnect())
      monitor.on('monitor', (_time: string, args: string[]) => {
        if (['scan', 'keys'].includes(args[0].toLowerCase())) seen.push(args.join(' '))
      })
      const session = await bench.session({ deferred: true })
      session.serve('parked', () => 'done')
      const task = session.task('parked', null)
      await session.transport.dispatch(task)
      assert.deepEqual(
        seen.filter((line) => line.includes(bench.prefix)),
        []
      )
      assert.deepEqual(await session.transport.listWorkerGroups?.(), [])
      session.transport.startConsumers?.()
      await session.resultOf(task)
      assert.deepEqual(await session.transport.listWorkerGroups?.(), ['parked'])
      const scans = seen.filter((line) => line.includes(bench.prefix))
      assert.isAbove(scans.length, 0)
      assert.isTrue(scans.every((line) => /^scan \d+ MATCH .+ COUNT 100$/i.test(line)))
    })
  })
}
