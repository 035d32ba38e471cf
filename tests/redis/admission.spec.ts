import { test } from '@japa/runner'
import type { Redis } from 'ioredis'
import { RedisAdmissionBackend } from '../../src/flow/redis/main.ts'
import type { RedisAdmissionOptions } from '../../src/flow/redis/main.ts'
import type { QueueConfig } from '../../src/flow/port.ts'
import type { RedisClient } from '../../src/redis/client.ts'
import {
  cleanUp,
  clientOf,
  ioRedis,
  listeners,
  ownPrefix,
  redisUrl,
  SHAPES,
} from '../helpers/redis.ts'
import { TcpProxy } from '../helpers/tcp_proxy.ts'
import { until } from '../helpers/until.ts'

const NOW = 1_767_225_600_000
const url = await redisUrl()

for (const shape of url === null ? [] : SHAPES) {
  test.group(`RedisAdmissionBackend of a fleet | ${shape}`, (group) => {
    let prefix: string
    let redis: Redis
    let now = NOW
    const opened: RedisAdmissionBackend[] = []

    group.each.setup(() => {
      prefix = ownPrefix(url!)
      redis = ioRedis(url!)
      now = NOW
      return async () => {
        for (const backend of opened.splice(0)) await backend.close()
        await cleanUp()
      }
    })

    function open(
      config: Omit<QueueConfig, 'name'>,
      options: RedisAdmissionOptions = {},
      client: RedisClient = clientOf(shape, url!)
    ): RedisAdmissionBackend {
      const backend = new RedisAdmissionBackend(client, { prefix, clock: () => now, ...options })
      backend.registerQueue({ name: 'q', ...config })
      opened.push(backend)
      return backend
    }

    const admits = async (backend: RedisAdmissionBackend, waiterId: string) => {
      const { admitted } = await backend.tryAdmit('q', { waiterId })
      return admitted
    }
    const slots = () => redis.hgetall(`${prefix}:adm:q:slots`)

    test('a rate limit holds across instances', async ({ assert }) => {
      const rateLimit = { limit: 3, periodMs: 60_000 }
      const [a, b] = [open({ rateLimit }), open({ rateLimit })]
      const first = [await admits(a, '1'), await admits(b, '2'), await admits(a, '3')]
      assert.deepEqual(first, [true, true, true])
      assert.deepEqual(await b.tryAdmit('q', { waiterId: '4' }), {
        admitted: false,
        retryAt: NOW + 60_000,
      })
      now += 60_000
      assert.isTrue(await admits(b, '4'))
    })

    test('nothing is left of the slots of an instance that died', async ({ assert }) => {
      const dead = open({ concurrency: 1 }, { instanceId: 'dead', instanceTtlMs: 400 })
      const other = open({ concurrency: 1 })
      assert.isTrue(await admits(dead, '1'))
      await dead.close()
      await until(async () => (await redis.exists(`${prefix}:adm:inst:dead`)) === 0, 'its end')
      assert.isTrue(await admits(other, '2'))
      assert.deepEqual(Object.keys(await slots()), ['2'])
    })

    test('a holder that asks elsewhere keeps its slot, which is of the other instance then', async ({
      assert,
    }) => {
      const [a, b] = [
        open({ concurrency: 1 }, { instanceId: 'a' }),
        open({ concurrency: 1 }, { instanceId: 'b' }),
      ]
      assert.isTrue(await admits(a, '1'))
      assert.isTrue(await admits(b, '1'))
      assert.deepEqual(await slots(), { 1: 'b' })
    })

    test('a slot that comes free is told to every instance, with who is next to those that wait', async ({
      assert,
    }) => {
      const [a, b] = [open({ concurrency: 1 }), open({ concurrency: 1 })]
      const heard: [string, string, readonly string[] | undefined][] = []
      for (const [name, one] of Object.entries({ a, b })) {
        one.onFreed((queue, next) => void heard.push([name, queue, next]))
      }
      await listeners(redis, `${prefix}:adm:freed`, 2)
      await admits(a, '1')
      for (const waiter of ['2', '3']) await admits(b, waiter)
      await a.release('q', '1')
      await until(() => heard.length === 2, 'both instances to hear')
      assert.deepEqual(heard.sort(), [
        ['a', 'q', []],
        ['b', 'q', ['2']],
      ])
    })

    test('a server that forgot the scripts is sent them again', async ({ assert }) => {
      const backend = open({ concurrency: 1 })
      assert.isTrue(await admits(backend, '1'))
      await redis.script('FLUSH')
      assert.isFalse(await admits(backend, '2'))
      await redis.script('FLUSH')
      await backend.release('q', '1')
      assert.isTrue(await admits(backend, '2'))
    })

    test('who waits is told after a reconnection: a slot may have come free meanwhile', async ({
      assert,
    }) => {
      const { hostname, port } = new URL(url!)
      const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
      const quiet = { onError: () => {} }
      const a = open({ concurrency: 1 }, quiet, clientOf(shape, proxy.urlOf(url!)))
      const b = open({ concurrency: 1 })
      const heard: (readonly string[] | undefined)[] = []
      a.onFreed((_, next) => void heard.push(next))
      await listeners(redis, `${prefix}:adm:freed`)
      await admits(b, '1')
      await admits(a, '2')
      proxy.cut()
      await b.release('q', '1')
      assert.deepEqual(heard, [])
      await proxy.mend()
      await until(() => heard.length > 0, 'news of the slot')
      assert.deepEqual(heard[0], ['2'])
      await a.close()
      proxy.cut()
    })

    test('closed, it releases nothing and refuses what comes', async ({ assert }) => {
      const backend = open({ concurrency: 1 }, { instanceId: 'me' })
      await admits(backend, '1')
      await backend.close()
      await backend.close()
      assert.deepEqual(await slots(), { 1: 'me' })
      await assert.rejects(() => admits(backend, '2'), 'the admission backend is closed')
    })
  })
}

if (url !== null) {
  test.group('RedisAdmissionBackend', () => {
    test('a key prefix of the client stands before every key', async ({ assert }) => {
      const prefix = ownPrefix(url)
      const client = ioRedis(url, { keyPrefix: `${prefix}:own:` })
      const open = () => new RedisAdmissionBackend(client, { instanceTtlMs: 60_000 })
      const [a, b] = [open(), open()]
      for (const one of [a, b]) one.registerQueue({ name: 'q', concurrency: 1 })
      assert.deepEqual(await a.tryAdmit('q', { waiterId: '1' }), { admitted: true })
      const { admitted } = await b.tryAdmit('q', { waiterId: '2' })
      assert.isFalse(admitted)
      assert.equal(await ioRedis(url).exists(`${prefix}:own:durable:adm:q:slots`), 1)
      for (const one of [a, b]) await one.close()
    })

    test('options that cannot be are refused by name', ({ assert }) => {
      const redis = ioRedis(url, { lazyConnect: true })
      for (const [name, value] of Object.entries({
        instanceTtlMs: 0,
        retryMs: 1.5,
        waiterTtlMs: -1,
      })) {
        assert.throws(
          () => new RedisAdmissionBackend(redis, { [name]: value }),
          new RegExp(`RedisAdmissionBackend: ${name} must be a whole number`)
        )
      }
      assert.throws(() => new RedisAdmissionBackend({} as never), /this one has no publish\(\)/)
    })
  })
}
