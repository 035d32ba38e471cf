import { test } from '@japa/runner'
import { readConnection } from '../../../src/transport/bullmq/connection.ts'
import { readSettings } from '../../../src/transport/bullmq/options.ts'

const settingsOf = (given: Parameters<typeof readConnection>[0]) => {
  const source = readConnection(given)
  return source.kind === 'settings' ? source.settings : undefined
}

test.group('bullmq | connection', () => {
  test('a URL says where Redis is')
    .with([
      ['redis://cache', { host: 'cache', port: 6379 }],
      ['redis://cache:6380/2', { host: 'cache', port: 6380, db: 2 }],
      ['redis://:secret@cache', { host: 'cache', port: 6379, password: 'secret' }],
      [
        'rediss://me:p%40ss%2Fw%3Ard@cache:6380/0?family=6',
        {
          host: 'cache',
          port: 6380,
          username: 'me',
          password: 'p@ss/w:rd',
          db: 0,
          family: 6,
          tls: {},
        },
      ],
      ['redis://[::1]:6379', { host: '::1', port: 6379 }],
      ['REDIS://cache?family=0', { host: 'cache', port: 6379, family: 0 }],
    ] as const)
    .run(({ assert }, [url, settings]) => {
      assert.deepEqual(settingsOf(url), settings)
    })

  test('what names no Redis is refused, and the localhost default is named', ({ assert }) => {
    const nothing = [
      undefined,
      null,
      {},
      { host: undefined, port: undefined },
      { host: undefined, port: 6379 },
      { host: '' },
      '',
      'redis://',
    ]
    for (const given of nothing) {
      assert.throws(
        () => readConnection(given),
        /^transports\.bullmq: connection .*127\.0\.0\.1:6379/
      )
    }
  })

  test('what is no connection is refused without its password', ({ assert }) => {
    const wrong = [
      ['http://:hunter2@cache', /redis:\/\/ or rediss:\/\//],
      ['cache:6379', /redis:\/\/ or rediss:\/\//],
      ['redis://:hunter2@cache/two', /"two".*whole number/],
      ['redis://:hunter2@cache?family=5', /family=5/],
      ['redis://:hunter2%zz@cache', /password that is not percent-encoded/],
      [42, /must be an object/],
    ] as const
    for (const [given, problem] of wrong) {
      try {
        readConnection(given as string)
        assert.fail(`${given} was taken`)
      } catch (error) {
        assert.match((error as Error).message, problem)
        assert.notInclude((error as Error).message, 'hunter2')
      }
    }
  })

  test('options pass through as they are, a url among them is read', ({ assert }) => {
    const settings = { host: 'cache', port: 1, connectTimeout: 5 }
    assert.deepEqual(settingsOf(settings), settings)
    assert.deepEqual(settingsOf({ path: '/run/redis.sock' }), { path: '/run/redis.sock' })
    assert.deepEqual(settingsOf({ sentinels: [{ host: 'a' }], name: 'x' }), {
      sentinels: [{ host: 'a' }],
      name: 'x',
    })
    assert.deepEqual(settingsOf({ url: 'redis://cache', db: 3 }), {
      host: 'cache',
      port: 6379,
      db: 3,
    })
  })

  test('a bad option is refused by name')
    .with([
      [{ prefix: '' }, /^transports\.bullmq: prefix must not be empty/],
      [{ prefix: 'a:b' }, /^transports\.bullmq: prefix .*without ':'/],
      [{ namespace: 'a:b' }, /^transports\.bullmq: namespace .*without ':'/],
      [{ partition: 'a:b' }, /^transports\.bullmq: partition .*without ':'/],
      [{ instanceId: '' }, /^transports\.bullmq: instanceId/],
      [{ resultConcurrency: 0 }, /^transports\.bullmq: resultConcurrency/],
      [{ runConcurrency: 1.5 }, /^transports\.bullmq: runConcurrency/],
      [{ closeTimeoutMs: -1 }, /^transports\.bullmq: closeTimeoutMs/],
      [{ pingIntervalMs: Number.NaN }, /^transports\.bullmq: pingIntervalMs/],
      [{ stepTimeoutMs: '5s' }, /^transports\.bullmq: stepTimeoutMs/],
      [{ lockDuration: 0 }, /^transports\.bullmq: lockDuration/],
      [{ maxStalledCount: -1 }, /^transports\.bullmq: maxStalledCount/],
    ] as const)
    .run(({ assert }, [wrong, problem]) => {
      assert.throws(() => readSettings({ connection: 'redis://cache', ...wrong } as never), problem)
    })

  test('the defaults', ({ assert }) => {
    const { resultConcurrency, runConcurrency, pingIntervalMs, closeTimeoutMs, maxStalledCount } =
      readSettings({ connection: 'redis://cache' })
    assert.deepEqual(
      { resultConcurrency, runConcurrency, pingIntervalMs, closeTimeoutMs, maxStalledCount },
      {
        resultConcurrency: 1,
        runConcurrency: 10,
        pingIntervalMs: 30_000,
        closeTimeoutMs: 5000,
        maxStalledCount: 3,
      }
    )
    const off = readSettings({ connection: 'redis://cache', pingIntervalMs: false })
    assert.equal(off.pingIntervalMs, 0)
  })
})
