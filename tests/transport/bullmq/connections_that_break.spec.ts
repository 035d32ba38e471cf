import { createServer } from 'node:net'
import { test } from '@japa/runner'
import { eventually, repeated } from '../../../src/testing/contracts/transport_session.ts'
import { BullMQTransport } from '../../../src/transport/bullmq/bullmq_transport.ts'
import { TcpProxy } from '../../helpers/tcp_proxy.ts'
import { BullBench, redisUrl } from './bench.ts'

const timers = () =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

if (redisUrl) {
  test.group('bullmq | connections that break', (group) => {
    group.each.timeout(30_000)

    test('what was subscribed to and consumed comes back after its sockets were cut', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const name = `cut-${bench.prefix}`
      const session = await bench.session({ connection: { url: redisUrl!, connectionName: name } })
      session.serve('still', () => 'here')
      assert.equal(await session.outputOf('still'), 'here')
      const list = String(await bench.redis.client('LIST'))
      const ids = list
        .split('\n')
        .filter((line) => line.includes(`name=${name} `))
        .map((line) => /id=(\d+)/.exec(line)![1])
      assert.isAbove(ids.length, 2)
      for (const id of ids) await bench.redis.client('KILL', 'ID', id)
      const before = session.beats.length
      await eventually('a beat again', () => {
        void session.transport.heartbeat?.({ runId: 'r', seq: 0, group: 'x' }).catch(() => {})
        return session.beats.length > before
      })
      assert.equal(await session.outputOf('still'), 'here')
    })

    test('a subscriber whose connection died without a word hears again', async ({
      assert,
      cleanup,
    }) => {
      const { hostname, port } = new URL(redisUrl!)
      const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
      cleanup(() => proxy.cut())
      const bench = new BullBench(cleanup)
      // Only what is subscribed goes through the proxy: beats are sent by another process.
      const engine = await bench.session({
        connection: proxy.urlOf(redisUrl!),
        pingIntervalMs: 50,
      })
      const { transport } = await bench.session()
      const heard = async (what: string) => {
        const before = engine.beats.length
        const again = () => transport.heartbeat!({ runId: 'r', seq: 0, group: 'x' })
        await repeated(what, again, () => engine.beats.length > before)
      }
      await heard('a beat')
      proxy.stall()
      await heard('a beat over a new connection')
      assert.isAbove(proxy.swallowed, 0)
    })

    test('a Redis that does not answer: one report, and close is bounded', async ({
      assert,
      cleanup,
    }) => {
      const before = timers()
      // Accepts and says nothing, as a half-dead proxy does.
      const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
      await eventually('the server', () => silent.listening)
      const { port } = silent.address() as { port: number }
      const errors: unknown[] = []
      const transport = await BullMQTransport.create({
        connection: { host: '127.0.0.1', port },
        closeTimeoutMs: 50,
        onError: (error) => errors.push(error),
      })
      cleanup(async () => {
        await transport.close()
        silent.close()
      })
      transport.onResult(async () => {})
      transport.onHeartbeat(async () => {})
      transport.handle('x', () => null)
      await transport.close()
      silent.close()
      const gone = await BullMQTransport.create({
        connection: { host: '127.0.0.1', port, maxRetriesPerRequest: 1 },
        closeTimeoutMs: 50,
        onError: (error) => errors.push(error),
      })
      cleanup(() => gone.close())
      const task = {
        runId: 'r',
        seq: 0,
        stepId: 'r:0',
        name: 'x',
        group: 'x',
        input: 1,
        attempt: 1,
      }
      await assert.rejects(() => gone.dispatch(task), /queue durable-tasks-x took no job/)
      await eventually('a report', () => errors.length > 0)
      assert.lengthOf(errors, 1)
      await gone.close()
      await assert.rejects(() => gone.dispatch(task), /closed/)
      await eventually('nothing that keeps the process alive', () => timers() <= before)
    })

    test('a Redis that refuses: what consumes is closed between two attempts, and lets the process go', async ({
      assert,
      cleanup,
    }) => {
      const before = timers()
      const refusing = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
      cleanup(() => void refusing.close())
      await eventually('the server', () => refusing.listening)
      const { port } = refusing.address() as { port: number }
      const errors: unknown[] = []
      const transport = await BullMQTransport.create({
        // It is between two attempts for good.
        connection: { host: '127.0.0.1', port, retryStrategy: () => 60_000 },
        closeTimeoutMs: 50,
        // BullMQ waits once more for this, and 5 s for a connection that failed, before it sees the end.
        stalledInterval: 50,
        onError: (error) => errors.push(error),
      })
      cleanup(() => transport.close())
      transport.onResult(async () => {})
      transport.handle('x', () => null)
      await eventually('a report', () => errors.length > 0)
      await transport.close()
      await eventually('nothing that keeps the process alive', () => timers() <= before)
      assert.lengthOf(errors, 1)
    })

    test('a client of ioredis is used, and left open', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session({ connection: bench.redis })
      session.serve('own', () => 'client')
      assert.equal(await session.outputOf('own'), 'client')
      await session.transport.close?.()
      assert.equal(await bench.redis.ping(), 'PONG')
    })
  })
}
