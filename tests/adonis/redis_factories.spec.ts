import { test } from '@japa/runner'
import {
  admissions,
  type AdmissionBackend,
  type ControlPlane,
  controlPlanes,
  RedisControlPlane,
} from '../../index.ts'
import { RedisAdmissionBackend } from '../../src/flow/redis/main.ts'
import { ioRedis, listeners, ownPrefix, redisUrl } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'
import { bootApp } from './app.ts'

const url = await redisUrl()

/** An application with the connections `main` and `other` to Redis. */
function withRedis(target: string) {
  const { hostname, port } = new URL(target)
  const connection = { host: hostname, port: port || '6379' }
  return bootApp({
    provider: false,
    redis: { connection: 'main', connections: { main: connection, other: connection } },
  })
}

test.group('Factories over Redis', () => {
  test('without Redis in the container they say which provider is missing', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    await assert.rejects(
      async () => controlPlanes.redis()({ app }),
      /controlPlanes\.redis\(\) found no Redis in the container\. List "@adonisjs\/redis\/redis_provider"/
    )
    await assert.rejects(
      async () => admissions.redis()({ app }),
      /admissions\.redis\(\) found no Redis/
    )
  })

  if (url === null) return

  test('a connection that is not defined is named, with those that are', async ({ assert }) => {
    const app = await withRedis(url)
    await assert.rejects(
      async () => controlPlanes.redis({ connection: 'nowhere' })({ app }),
      /names the connection "nowhere", which is none of config\/redis\.ts \(it has "main", "other"\)/
    )
  })

  test('controlPlanes.redis passes every option on', async ({ assert }) => {
    const app = await withRedis(url)
    const prefix = ownPrefix(url)
    const config = { connection: 'other', prefix, pingIntervalMs: 20 }
    const plane: ControlPlane = await controlPlanes.redis(config)({ app })
    assert.instanceOf(plane, RedisControlPlane)
    const manager = await app.container.make('redis')
    plane.onControl(() => {})
    await listeners(ioRedis(url), `${prefix}-control`)
    const connection = manager.connection('other' as never) as {
      ioSubscriberConnection?: { ping(): Promise<string> }
    }
    const subscriber = connection.ioSubscriberConnection!
    const ping = subscriber.ping.bind(subscriber)
    let asked = 0
    subscriber.ping = () => {
      asked += 1
      return ping()
    }
    await until(() => asked > 1, 'the watchdog to ask')
    await plane.close!()
  })

  test('admissions.redis passes every option on', async ({ assert }) => {
    const app = await withRedis(url)
    const prefix = ownPrefix(url)
    const redis = ioRedis(url)
    const backend: AdmissionBackend = await admissions.redis({
      connection: 'other',
      prefix,
      instanceId: 'me',
      instanceTtlMs: 50_000,
      retryMs: 20_000,
      waiterTtlMs: 90_000,
    })({ app })
    assert.instanceOf(backend, RedisAdmissionBackend)
    backend.registerQueue({ name: 'q', concurrency: 1 })
    await backend.tryAdmit('q', { waiterId: '1' })
    const before = Date.now()
    const denied = await backend.tryAdmit('q', { waiterId: '2' })
    assert.isFalse(denied.admitted)
    const retryAt = denied.admitted ? 0 : denied.retryAt
    assert.isAtLeast(retryAt, before + 20_000)
    const [, leaves] = await redis.zrange(`${prefix}:adm:q:wexpire`, 0, -1, 'WITHSCORES')
    assert.equal(Number(leaves) - retryAt, 70_000)
    const { 1: owner } = await redis.hgetall(`${prefix}:adm:q:slots`)
    assert.match(owner, /^me-[0-9a-f]{8}$/)
    const left = await redis.pttl(`${prefix}:adm:inst:${owner}`)
    assert.isTrue(left > 30_000 && left <= 50_000, `${left} ms`)
    await backend.close!()
  })
})
