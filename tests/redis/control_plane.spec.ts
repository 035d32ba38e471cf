import { test } from '@japa/runner'
import type { Redis } from 'ioredis'
import { RedisControlPlane } from '../../src/control_plane/redis/main.ts'
import type { AdonisRedisConnection, RedisClient } from '../../src/control_plane/redis/main.ts'
import { clientProblem } from '../../src/redis/client.ts'
import type { ControlMessage } from '../../src/wire/messages.ts'
import {
  adonisRedis,
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

const CANCEL: ControlMessage = { kind: 'cancel', runId: 'r' }
const url = await redisUrl()

/** Listens, and keeps what it hears. */
function listenOn(plane: RedisControlPlane): ControlMessage[] {
  const heard: ControlMessage[] = []
  plane.onControl((message) => void heard.push(message))
  return heard
}

/** Ids of the connections that are subscribed to something, but for those of before. */
async function subscribers(redis: Redis): Promise<Set<string>> {
  const list = (await redis.client('LIST', 'TYPE', 'PUBSUB')) as string
  return new Set([...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id))
}

for (const shape of url === null ? [] : SHAPES) {
  test.group(`RedisControlPlane | ${shape}`, (group) => {
    let prefix: string
    let channel: string
    let redis: Redis
    const planes: RedisControlPlane[] = []

    group.each.setup(() => {
      prefix = ownPrefix(url!)
      channel = `${prefix}-control`
      redis = ioRedis(url!)
      return async () => {
        for (const plane of planes.splice(0)) await plane.close()
        await cleanUp()
      }
    })

    function open(
      options: ConstructorParameters<typeof RedisControlPlane>[1] = {},
      client: RedisClient = clientOf(shape, url!)
    ): RedisControlPlane {
      const plane = new RedisControlPlane(client, { prefix, ...options })
      planes.push(plane)
      return plane
    }

    const isListening = (plane: RedisControlPlane) => until(() => plane.isListening, 'a listener')

    test('every instance hears what one publishes, the publisher included', async ({ assert }) => {
      const [a, b] = [open({ instanceId: 'a' }), open({ instanceId: 'b' })]
      const [atA, atB] = [listenOn(a), listenOn(b)]
      await isListening(a)
      await isListening(b)
      await a.publishControl(CANCEL)
      await a.publishControl({ ...CANCEL, from: 'engine' })
      await until(() => atA.length === 2 && atB.length === 2, 'both messages')
      assert.deepEqual(atB, [
        { from: 'a', ...CANCEL },
        { from: 'engine', ...CANCEL },
      ])
      assert.deepEqual(atA, atB)
    })

    test('the date of an event is a date again', async ({ assert }) => {
      const plane = open({ instanceId: 'a' })
      const heard = listenOn(plane)
      await isListening(plane)
      const event = {
        type: 'run.completed',
        runId: 'r',
        output: { n: 1 },
        at: new Date(5),
      } as const
      await plane.publishControl({ kind: 'event', event })
      await until(() => heard.length > 0, 'the event')
      assert.deepEqual(heard, [{ from: 'a', kind: 'event', event }])
    })

    test('what cannot be read is dropped, and what comes after is heard', async ({ assert }) => {
      const errors: unknown[] = []
      const plane = open({ onError: (error) => void errors.push(error) })
      const heard = listenOn(plane)
      await isListening(plane)
      for (const text of ['', '{', '[]', 'null', '{"kind":7}', '{"kind":"event","event":{}}']) {
        await redis.publish(channel, text)
      }
      await redis.publish(channel, '{"kind":"later","x":1}')
      await redis.publish(channel, JSON.stringify(CANCEL))
      await until(() => heard.length === 2, 'the readable ones')
      assert.deepEqual(heard, [{ kind: 'later', x: 1 } as never, CANCEL])
      assert.deepEqual(errors, [])
    })

    test('one subscription serves all subscribers, and one that throws keeps it from nobody', async ({
      assert,
    }) => {
      const errors: unknown[] = []
      const plane = open({ onError: (error) => void errors.push(error) })
      plane.onControl(() => {
        throw new Error('mine')
      })
      const heard = listenOn(plane)
      await isListening(plane)
      await redis.publish(channel, JSON.stringify(CANCEL))
      await until(() => heard.length === 1, 'the message')
      assert.equal((errors[0] as Error).message, 'mine')
      assert.deepEqual(await redis.pubsub('NUMSUB', channel), [channel, 1])
    })

    test('a subscriber whose connection was killed hears again', async ({ assert }) => {
      const errors: unknown[] = []
      const before = await subscribers(redis)
      const plane = open({ onError: (error) => void errors.push(error) })
      const heard = listenOn(plane)
      await isListening(plane)
      const after = await subscribers(redis)
      const mine = after.difference(before)
      // Other tests may subscribe meanwhile; their subscribers come back like this one.
      for (const id of mine) await redis.client('KILL', 'ID', id)
      await listeners(redis, channel, 0)
      await until(async () => {
        await redis.publish(channel, JSON.stringify(CANCEL))
        return heard.length > 0
      }, 'a message after the reconnection')
      assert.deepEqual(heard[0], CANCEL)
    })

    test('a connection that died without a word is found by the watchdog', async ({ assert }) => {
      const { hostname, port } = new URL(url!)
      const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
      try {
        const plane = open({ pingIntervalMs: 50 }, clientOf(shape, proxy.urlOf(url!)))
        const heard = listenOn(plane)
        await isListening(plane)
        proxy.stall()
        await until(async () => {
          await redis.publish(channel, JSON.stringify(CANCEL))
          return heard.length > 0
        }, 'a message over a new connection')
        assert.deepEqual(heard[0], CANCEL)
      } finally {
        proxy.cut()
      }
    }).timeout(15_000)

    test('without a watchdog it stays deaf', async ({ assert }) => {
      const { hostname, port } = new URL(url!)
      const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
      try {
        const plane = open({ pingIntervalMs: 0 }, clientOf(shape, proxy.urlOf(url!)))
        const heard = listenOn(plane)
        await isListening(plane)
        proxy.stall()
        for (let i = 0; i < 20; i++) await redis.publish(channel, JSON.stringify(CANCEL))
        assert.deepEqual(heard, [])
      } finally {
        proxy.cut()
      }
    })

    test('closed, it hears and publishes nothing, twice too; the client stays open', async ({
      assert,
    }) => {
      const client = clientOf(shape, url!)
      const plane = open({}, client)
      const heard = listenOn(plane)
      await isListening(plane)
      await plane.close()
      await plane.close()
      await until(async () => {
        const [, count] = await redis.pubsub('NUMSUB', channel)
        return count === 0
      }, 'the subscription to end')
      await redis.publish(channel, JSON.stringify(CANCEL))
      await assert.rejects(() => plane.publishControl(CANCEL), 'the control plane is closed')
      plane.onControl(() => {})
      assert.deepEqual([heard, plane.isListening], [[], false])
      assert.equal(await client.publish(channel, ''), 0)
    })

    test('a question on its way when it is closed opens no connection again', async ({
      assert,
    }) => {
      const { hostname, port } = new URL(url!)
      for (const isClosed of [false, true]) {
        const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
        const fired: (() => void)[] = []
        const hold = (_ms: number, fn: () => void) => {
          fired.push(fn)
          return () => {}
        }
        const client = clientOf(shape, proxy.urlOf(url!))
        const plane = open({ timers: { after: hold, every: hold } }, client)
        listenOn(plane)
        await isListening(plane)
        // Its other connection is there by then.
        await client.publish(channel, '')
        const [ask] = fired.splice(0)
        proxy.stall()
        const known = proxy.accepted
        ask()
        const [giveUp] = fired.splice(0)
        await until(() => proxy.swallowed > 0, 'a question')
        const closing = isClosed && plane.close()
        giveUp()
        if (!isClosed) await until(() => proxy.accepted > known, 'a new connection')
        for (const late of fired.splice(0)) late()
        await closing
        for (let i = 0; i < 20; i++) await redis.ping()
        assert.equal(proxy.accepted - known, isClosed ? 0 : 1)
        await plane.close()
        proxy.cut()
      }
    }).timeout(15_000)
  })
}

if (url !== null) {
  test.group('RedisControlPlane', () => {
    test('a server that cannot be reached is told of once, until it can be', async ({ assert }) => {
      const { hostname, port } = new URL(url)
      const proxy = await TcpProxy.to({ host: hostname, port: Number(port || 6379) })
      const errors: unknown[] = []
      const plane = new RedisControlPlane(ioRedis(proxy.urlOf(url)), {
        prefix: ownPrefix(url),
        onError: (error) => void errors.push(error),
      })
      listenOn(plane)
      await until(() => plane.isListening, 'a listener')
      for (let burst = 1; burst <= 2; burst++) {
        proxy.cut()
        await until(() => errors.length === burst, 'the report')
        await until(() => !plane.isListening, 'the end of the connection')
        await proxy.mend()
        await until(() => plane.isListening, 'a listener again')
        assert.lengthOf(errors, burst)
      }
      await plane.close()
      proxy.cut()
    }).timeout(15_000)

    test('it takes either client, and says what anything else lacks', async ({
      assert,
      expectTypeOf,
    }) => {
      expectTypeOf<Redis>().toExtend<RedisClient>()
      expectTypeOf<ReturnType<typeof adonisRedis>>().toExtend<AdonisRedisConnection>()
      expectTypeOf<{ publish(): void }>().not.toExtend<RedisClient>()
      assert.isUndefined(clientProblem(ioRedis(url, { lazyConnect: true })))
      assert.isUndefined(clientProblem(adonisRedis(url)))
      assert.throws(
        () => new RedisControlPlane('redis://localhost' as never),
        /RedisControlPlane: the client must be an ioredis client or a connection of @adonisjs\/redis, got redis:\/\/localhost/
      )
      assert.throws(() => new RedisControlPlane({} as never), /this one has no publish\(\)/)
    })
  })
}
