import { drivers } from '@adonisjs/queue'
import type { AdapterFactory } from '@adonisjs/queue/types'
import { test } from '@japa/runner'
import { QueueTransport, type QueueAdapter, transports } from '../../index.ts'
import { bootApp } from './app.ts'

type Adapter = ReturnType<AdapterFactory>

/** What the package declares is what the transport asks for. */
const accepts = (adapter: Adapter): QueueAdapter => adapter

const SQLITE = {
  client: 'better-sqlite3' as const,
  connection: { filename: ':memory:' },
  useNullAsDefault: true,
}

/** An adapter that notes what it is given. */
function recorder() {
  const pushed: [queue: string, job: { name: string; payload: unknown }][] = []
  let destroyed = 0
  let workerId = ''
  const adapter = {
    setWorkerId: (id: string) => void (workerId = id),
    pushOn: async (queue: string, job: never) => void pushed.push([queue, job]),
    popFrom: async () => null,
    sizeOf: async () => 7,
    destroy: async () => void destroyed++,
  } as unknown as Adapter
  return {
    adapter: accepts(adapter),
    pushed,
    get destroyed() {
      return destroyed
    },
    get workerId() {
      return workerId
    },
  }
}

const TASK = { runId: 'r', seq: 0, stepId: 'r:0', name: 's', group: 's', input: 1, attempt: 1 }

test.group('transports.queue', () => {
  test('takes the default adapter of config/queue.ts, or the one it names', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const [one, two] = [recorder(), recorder()]
    app.config.set('queue', {
      default: 'one',
      adapters: {
        one: () => one.adapter,
        two: { type: 'provider', resolver: async () => () => two.adapter },
      },
    })
    for (const [config, taken, prefix] of [
      [{ instanceId: 'me' }, one, 'durable'],
      [{ connection: 'two', prefix: 'd', namespace: 'eu', instanceId: 'you' }, two, 'd-eu'],
    ] as const) {
      const transport = await transports.queue(config)({ app })
      assert.instanceOf(transport, QueueTransport)
      assert.equal(taken.workerId, config.instanceId)
      await transport.dispatch(TASK)
      assert.equal(taken.pushed[0][0], `${prefix}:tasks:s`)
      assert.deepEqual(taken.pushed[0][1].payload, TASK)
      await transport.close!()
      assert.equal(taken.destroyed, 1)
    }
  })

  test('an adapter that is given is used and left open', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const { adapter, ...given } = recorder()
    const transport = await transports.queue({ adapter })({ app })
    await transport.dispatch(TASK)
    await transport.close!()
    assert.lengthOf(given.pushed, 1)
    assert.equal(given.destroyed, 0)
  })

  test('what is missing or misspelt is one sentence with the fix', async ({ assert }) => {
    const app = await bootApp({ provider: false })
    const build = async (config?: object) => transports.queue(config)({ app })
    await assert.rejects(
      () => build(),
      'durable: transports.queue() found no config/queue.ts. Run: node ace configure @adonisjs/queue'
    )
    app.config.set('queue', { adapters: { redis: () => {}, sync: drivers.sync() } })
    await assert.rejects(() => build(), /config\/queue\.ts has no `default`/)
    await assert.rejects(
      () => build({ connection: 'reddis' }),
      /transports\.queue\(\{ connection: "reddis" \}\).* names no adapter .*"redis", "sync"/
    )
    await assert.rejects(() => build({ connection: 'sync' }), /sync adapter, which carries nothing/)
    const { adapter } = recorder()
    for (const [wrong, problem] of [
      [{ adapter: {} }, /^transports\.queue: adapter must be an adapter of @adonisjs\/queue/],
      [{ adapter, concurrency: 0 }, /^transports\.queue: concurrency must be/],
      [{ adapter, stalledThresholdMs: 0 }, /^transports\.queue: stalledThresholdMs must be/],
      [{ adapter, maxStalledCount: 1.5 }, /^transports\.queue: maxStalledCount must be a whole/],
      [{ adapter, prefix: '' }, /^transports\.queue: prefix must not be empty/],
      [{ adapter, instanceId: '' }, /^transports\.queue: instanceId must have/],
    ] as const) {
      await assert.rejects(() => build(wrong), problem)
    }
  })

  test('workers are seen alive in the database, if there is one and it is wanted', async ({
    assert,
    cleanup,
  }) => {
    const app = await bootApp({
      provider: false,
      lucid: { connection: 'one', connections: { one: SQLITE } },
    })
    const { adapter } = recorder()
    const transport = await transports.queue({ adapter, instanceId: 'w1' })({ app })
    cleanup(() => transport.close!())
    transport.handle!('ship', () => null)
    const db = await app.container.make('lucid.db')
    let groups: string[] = []
    while (groups.length === 0) {
      await new Promise((resolve) => setImmediate(resolve))
      groups = await transport.listWorkerGroups!()
    }
    const health = await transport.groupHealth!('ship')
    assert.equal(health.depth, 7)
    assert.deepEqual(
      health.liveWorkers.map(({ instanceId }) => instanceId),
      ['w1']
    )
    const rows = await db.from('durable_transport_worker_keys').select('key_name')
    assert.deepEqual(rows, [{ key_name: 'durable-worker-heartbeat:ship:w1' }])
    const tables = await db.from('sqlite_master').where('name', 'like', 'durable\\_%')
    assert.isTrue(tables.every(({ tbl_name: name }) => name === 'durable_transport_worker_keys'))
    const blind = await transports.queue({ adapter, workerKeys: false })({ app })
    assert.isUndefined(blind.groupHealth)
    await blind.close!()
  })

  test('drivers of the package are adapters for it', async ({ assert, cleanup }) => {
    const app = await bootApp({
      provider: false,
      lucid: { connection: 'one', connections: { one: SQLITE } },
    })
    app.config.set('queue', { default: 'db', adapters: { db: drivers.database({}) } })
    const transport = await transports.queue()({ app })
    cleanup(() => transport.close!())
    // Its tables are those of the package's own migration.
    await assert.rejects(() => transport.dispatch(TASK), /took no job: .*no such table: queue_jobs/)
  })
})
