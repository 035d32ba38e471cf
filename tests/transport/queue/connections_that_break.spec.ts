/*
 * A Redis that goes away while steps run, and comes back: everything goes on by itself.
 */
import { test } from '@japa/runner'
import { deferred } from '../../../src/foundation/deferred.ts'
import { eventually } from '../../../src/testing/contracts/transport_session.ts'
import { redisUrl } from '../../helpers/redis.ts'
import { TcpProxy } from '../../helpers/tcp_proxy.ts'
import { QueueBench, openAdapter } from './bench.ts'

const url = await redisUrl()

if (url !== null) {
  test.group('queue on redis | connections that break', (group) => {
    group.each.timeout(60_000)

    /** An engine and a worker whose way to Redis can be cut. */
    async function setUp(cleanup: Parameters<typeof QueueBench.open>[0]) {
      const { hostname: host, port } = new URL(url!)
      const line = await TcpProxy.to({ host, port: Number(port || 6379) })
      cleanup(() => line.cut())
      const bench = await QueueBench.open(cleanup, 'redis')
      const session = async () => {
        const { adapter, close } = await openAdapter({ redis: line.urlOf(url!) })
        cleanup(close)
        return bench.session({
          adapter,
          stalledThresholdMs: 10_000,
          stalledCheckIntervalMs: 100,
          closeTimeoutMs: 0,
        })
      }
      const [engine, worker] = [await session(), await session()]
      return { line, engine, worker }
    }

    test('a step that ends meanwhile is answered, and what is dispatched then throws or arrives', async ({
      assert,
      cleanup,
    }) => {
      const { line, engine, worker } = await setUp(cleanup)
      const [picked, finish] = [deferred(), deferred()]
      worker.serve('work', async (input) => {
        picked.resolve(undefined)
        await finish.promise
        return input
      })
      const held = engine.task('work', 1)
      await engine.transport.dispatch(held)
      await picked.promise
      line.cut()
      finish.resolve(undefined)
      const tasks = [2, 3].map((input) => engine.task('work', input))
      const sending = tasks.map((task) => engine.transport.dispatch(task))
      const outcomes = Promise.allSettled(sending)
      // The client tries for about ten seconds.
      await eventually('a look that fails', () => engine.errors.length > 0)
      assert.lengthOf(engine.results, 0)
      await line.mend()
      const ends = await outcomes
      for (const [index, outcome] of ends.entries()) {
        if (outcome.status === 'fulfilled') continue
        assert.equal((outcome.reason as { code: string }).code, 'transport_unavailable')
        await engine.transport.dispatch(tasks[index])
      }
      for (const task of [held, ...tasks]) {
        const { output } = await engine.resultOf(task)
        assert.equal(output, task.input)
      }
      assert.equal(await engine.outputOf('work', 4), 4)
    })

    test('a worker that is cut off for longer than its claim lasts: the step runs again elsewhere')
      .with(['still runs', 'has ended'] as const)
      .run(async ({ assert, cleanup }, first) => {
        const { hostname: host, port } = new URL(url!)
        const line = await TcpProxy.to({ host, port: Number(port || 6379) })
        cleanup(() => line.cut())
        const bench = await QueueBench.open(cleanup, 'redis')
        const { adapter, close } = await openAdapter({ redis: line.urlOf(url!) })
        cleanup(close)
        const claims = { stalledThresholdMs: 1000, stalledCheckIntervalMs: 100, closeTimeoutMs: 0 }
        const engine = await bench.session(claims)
        const worker = await bench.session({ ...claims, adapter })
        const [picked, finish, again] = [deferred(), deferred(), deferred()]
        worker.serve('work', async () => {
          picked.resolve(undefined)
          await finish.promise
          return 'cut off'
        })
        const task = engine.task('work', null)
        await engine.transport.dispatch(task)
        await picked.promise
        line.cut()
        if (first === 'has ended') finish.resolve(undefined)
        engine.serve('work', () => {
          again.resolve(undefined)
          return 'elsewhere'
        })
        await again.promise
        await line.mend()
        const lost = (error: unknown) => (error as { code?: string }).code === 'claims_lost'
        await eventually('the report', () => worker.errors.some(lost))
        finish.resolve(undefined)
        await eventually('both answers', () => engine.heard(task).length === 2)
        const outputs = engine.heard(task).map(({ output }) => output)
        assert.sameMembers(outputs, ['cut off', 'elsewhere'])
        assert.deepEqual(
          engine.heard(task).map(({ attempt }) => attempt),
          [1, 1]
        )
      })
  })
}
