import { RuntimeException } from '@adonisjs/core/exceptions'
import { test } from '@japa/runner'
import { spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { fileURLToPath } from 'node:url'
import {
  DbTransport,
  BullMQTransport,
  EventEmitterTransport,
  InMemoryTransport,
  LucidStateStore,
  stores,
  transports,
} from '../../index.ts'
import { loadPeer } from '../../src/adonis/peer.ts'
import type { StepResult } from '../../src/wire/messages.ts'
import { bootApp } from './app.ts'

const RESULT: StepResult = {
  runId: 'r',
  seq: 0,
  stepId: 'r:0',
  status: 'completed',
  startedAt: 1,
} as StepResult

test.group('Factories', () => {
  test('loading a config file loads neither a driver nor a peer', ({ assert }) => {
    const script = `
      import { registerHooks } from 'node:module'
      const loaded = []
      registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
      const { stores } = await import('./src/adonis/stores.ts')
      const { transports } = await import('./src/adonis/transports.ts')
      stores.lucid({ connection: 'pg' })
      transports.memory()
      transports.eventEmitter()
      const { controlPlanes } = await import('./src/adonis/control_planes.ts')
      const { admissions } = await import('./src/adonis/admissions.ts')
      controlPlanes.redis()
      admissions.redis()
      transports.db({ connection: 'pg' })
      transports.bullmq({ connection: 'redis://cache' })
      transports.queue({ connection: 'redis' })
      console.log(JSON.stringify(loaded))
    `
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ['--import=@poppinss/ts-exec', '--input-type=module', '--eval', script],
      { cwd: fileURLToPath(new URL('../../', import.meta.url)), encoding: 'utf8' }
    )
    assert.equal(status, 0, stderr)
    const loaded: string[] = JSON.parse(stdout)
    const heavy = loaded.filter((url) =>
      /@adonisjs\/lucid|@adonisjs\/redis|ioredis|src\/redis|control_plane\/redis|flow\/redis|src\/store\/|memory_transport|event_emitter_transport|db_transport|bullmq|@adonisjs\/queue|queue_transport/.test(
        url
      )
    )
    assert.isNotEmpty(loaded)
    assert.deepEqual(heavy, [])
  }).timeout(30_000)

  test('transports.memory passes every option on', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const seen: StepResult[] = []
    const transport = await transports.memory({ intercept: (result) => void seen.push(result) })({
      app,
    })
    assert.instanceOf(transport, InMemoryTransport)
    transport.onResult(async () => {})
    transport.handle!('step', () => 1)
    await transport.dispatch({
      runId: 'r',
      seq: 0,
      stepId: 'r:0',
      name: 'step',
      group: 'step',
    } as never)
    while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(seen[0].stepId, 'r:0')
    await transport.close!()
  })

  test('transports.eventEmitter passes every option on', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const emitter = new EventEmitter()
    const transport = await transports.eventEmitter({ emitter, namespace: 'eu' })({ app })
    assert.instanceOf(transport, EventEmitterTransport)
    transport.onResult(async () => {})
    assert.isTrue(emitter.eventNames().some((name) => String(name).includes('eu')))
    await transport.close!()
  })

  test('transports.bullmq passes every option on', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const connection = 'redis://127.0.0.1:6379'
    const transport = await transports.bullmq({ connection })({ app })
    assert.instanceOf(transport, BullMQTransport)
    await transport.close!()
    for (const [wrong, problem] of [
      [{ connection: {} }, /connection is missing: ioredis would take the Redis at 127\.0\.0\.1/],
      [{ connection, concurrency: 0 }, /^transports\.bullmq: concurrency must be/],
      [{ connection, closeTimeoutMs: -1 }, /^transports\.bullmq: closeTimeoutMs must be/],
    ] as const) {
      await assert.rejects(async () => transports.bullmq(wrong)({ app }), problem)
    }
    const reported: unknown[] = []
    const named = await transports.bullmq({
      connection,
      namespace: 'acme',
      onError: (error) => void reported.push(error),
    })({ app })
    const foreign = { ...RESULT, name: 'x', group: 'x@other', input: 1, attempt: 1 }
    await assert.rejects(() => named.dispatch(foreign), /namespace "acme"/)
    await named.close!()
  })

  test('errors of a transport go to the log of the application, unless the config says where', async ({
    assert,
  }) => {
    const app = await bootApp({ provider: false })
    const logger = await app.container.make('logger')
    const logged: unknown[] = []
    logger.error = ((...args: unknown[]) => void logged.push(args)) as never
    const failure = new Error('no such run')
    for (const factory of [transports.memory(), transports.eventEmitter()]) {
      const transport = await factory({ app })
      transport.onResult(async () => {
        throw failure
      })
      await deliver(transport, RESULT)
      await until(() => logged.length > 0)
      assert.deepInclude(logged.pop() as object, { err: failure })
      await transport.close!()
    }
    const reported: unknown[] = []
    const transport = await transports.memory({ onError: (error) => void reported.push(error) })({
      app,
    })
    transport.onResult(async () => {
      throw failure
    })
    await deliver(transport, RESULT)
    await until(() => reported.length > 0)
    assert.deepEqual([reported[0], logged], [failure, []])
    await transport.close!()
  })

  test('stores.lucid takes the database from the container, on the connection it names', async ({
    assert,
  }) => {
    const sqlite = {
      client: 'better-sqlite3',
      connection: { filename: ':memory:' },
      useNullAsDefault: true,
    }
    const app = await bootApp({
      provider: false,
      lucid: { connection: 'one', connections: { one: sqlite, two: sqlite } },
    })
    const db = await app.container.make('lucid.db')
    const store = await stores.lucid({ connection: 'two' })({ app })
    assert.instanceOf(store, LucidStateStore)
    await store.ensureSchema!()
    const tables = async (name: string) => {
      const rows = await db
        .connection(name)
        .from('sqlite_master')
        .where('name', 'durable_workflow_runs')
      return rows.length
    }
    assert.deepEqual([await tables('one'), await tables('two')], [0, 1])
  })

  test('transports.db takes the database from the container, and its connection alone', async ({
    assert,
  }) => {
    const sqlite = {
      client: 'better-sqlite3',
      connection: { filename: ':memory:' },
      useNullAsDefault: true,
    }
    const app = await bootApp({
      provider: false,
      lucid: { connection: 'one', connections: { one: sqlite, two: sqlite } },
    })
    const db = await app.container.make('lucid.db')
    const transport = await transports.db({ connection: 'two', namespace: 'eu' })({ app })
    assert.instanceOf(transport, DbTransport)
    await transport.dispatch({
      runId: 'r',
      seq: 0,
      stepId: 'r:0',
      name: 'step',
      group: 'step',
      input: 1,
      attempt: 1,
    })
    const rows = await db.connection('two').from('durable_transport_tasks').select('*')
    assert.deepEqual(
      rows.map((row) => [row.step_id, row.namespace, row.input]),
      [['r:0', 'eu', '1']]
    )
    const tables = await db
      .connection('one')
      .from('sqlite_master')
      .where('name', 'like', 'durable%')
    assert.lengthOf(tables, 0)
    await transport.close!()
    await assert.rejects(
      async () => transports.db({ connection: 'three' })({ app }),
      /transports\.db\(\{ connection: "three" \}\) in config\/durable\.ts names no connection .*"one", "two"/
    )
  })

  test('drivers over a database without one say which provider is missing', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    await assert.rejects(
      async () => transports.db()({ app }),
      /transports\.db\(\) found no database in the container/
    )
  })

  test('stores.lucid without a database says which provider is missing', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    await assert.rejects(
      async () => stores.lucid()({ app }),
      /stores\.lucid\(\) found no database in the container\. List "@adonisjs\/lucid\/database_provider"/
    )
  })
})

test.group('Peers', () => {
  test('a peer that is not installed is one sentence with the command', async ({ assert }) => {
    const load = () => import('no-such-peer' as string)
    try {
      await loadPeer(load, { peer: 'no-such-peer', neededBy: 'transports.bullmq()' })
      assert.fail('did not throw')
    } catch (error) {
      assert.instanceOf(error, RuntimeException)
      assert.equal(
        (error as Error).message,
        'durable: transports.bullmq() needs the optional peer "no-such-peer". Install it with: npm i no-such-peer'
      )
      assert.equal((error as { cause: { code: string } }).cause.code, 'ERR_MODULE_NOT_FOUND')
    }
  })

  test('what an installed peer itself misses is passed on as it is', async ({ assert, fs }) => {
    await fs.create('broken.mjs', `import 'its-own-dependency'`)
    const file = new URL('broken.mjs', fs.baseUrl).href
    try {
      await loadPeer(() => import(file), { peer: '@adonisjs/lucid', neededBy: 'x' })
      assert.fail('did not throw')
    } catch (error) {
      assert.notInstanceOf(error, RuntimeException)
      assert.include((error as Error).message, 'its-own-dependency')
    }
  })

  test('a failure of the code of a peer is passed on as it is', async ({ assert }) => {
    const failure = new Error('boom')
    const load = async () => {
      throw failure
    }
    await assert.rejects(() => loadPeer(load, { peer: 'no-such-peer', neededBy: 'x' }), 'boom')
  })
})

interface Delivering {
  handle?(name: string, fn: () => unknown): void
  dispatch(task: never): Promise<void>
}

/** Has a result of `step` come back. */
async function deliver(transport: Delivering, result: StepResult): Promise<void> {
  transport.handle!('step', () => 1)
  const { runId, seq, stepId } = result
  await transport.dispatch({ runId, seq, stepId, name: 'step', group: 'step' } as never)
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}
