/*
 * Every option that a transport takes gets there by way of its factory: one that a factory drops is not
 * missed by anything that builds the transport by hand.
 */
import { test } from '@japa/runner'
import {
  type BullMQTransportConfig,
  type DbTransportConfig,
  type QueueAdapter,
  type QueueTransportConfig,
  type TransportFactory,
  transports,
} from '../../index.ts'
import { bootApp } from './app.ts'

/** What only tests set, what is ignored, and what no value is wrong for. */
type Unchecked = 'clock' | 'timers' | 'group' | 'onError' | 'logger' | 'db'
type Wrong<Config, Fits extends keyof Config = never> = Record<
  Exclude<keyof Config, Unchecked | Fits>,
  unknown
>

const DB: Wrong<DbTransportConfig, 'partition' | 'namespace' | 'autoCreate' | 'instanceId'> = {
  connection: 'nowhere',
  pollIntervalMs: 0,
  idleBackoffMax: 0,
  leaseMs: 0,
  batchSize: 0,
  concurrency: 0,
  resultConcurrency: 0,
  maxStalledCount: -1,
  closeTimeoutMs: -1,
  inboxTtlMs: 0,
  tenantSubscribersCacheMs: -1,
  inboxSweepIntervalMs: 0,
}

const QUEUE: Wrong<QueueTransportConfig, 'connection' | 'workerKeys'> = {
  adapter: {},
  partition: 1,
  namespace: 1,
  prefix: '',
  instanceId: '',
  pollIntervalMs: 0,
  idleBackoffMax: 0,
  concurrency: 0,
  resultConcurrency: 0,
  runConcurrency: 0,
  stalledCheckIntervalMs: -1,
  stalledThresholdMs: 0,
  maxStalledCount: -1,
  inboxTtlMs: 0,
  tenantSubscribersCacheMs: -1,
  inboxSweepIntervalMs: 0,
  closeTimeoutMs: -1,
}

const BULLMQ: Wrong<BullMQTransportConfig> = {
  connection: {},
  partition: 'a:b',
  namespace: 'a:b',
  prefix: 'a:b',
  instanceId: '',
  concurrency: 0,
  resultConcurrency: 0,
  runConcurrency: 0,
  pingIntervalMs: -1,
  stepTimeoutMs: 0,
  closeTimeoutMs: -1,
  lockDuration: 0,
  stalledInterval: 0,
  maxStalledCount: -1,
}

const adapter = {
  setWorkerId: () => {},
  pushOn: async () => {},
  popFrom: async () => null,
  sizeOf: async () => 0,
  destroy: async () => {},
} as unknown as QueueAdapter

const SQLITE = {
  client: 'better-sqlite3' as const,
  connection: { filename: ':memory:' },
  useNullAsDefault: true,
}

const boot = () =>
  bootApp({ provider: false, lucid: { connection: 'one', connections: { one: SQLITE } } })

test.group('Options of transports', () => {
  for (const [name, wrong, right] of [
    ['db', DB, {}],
    ['queue', QUEUE, { adapter }],
    ['bullmq', BULLMQ, { connection: 'redis://127.0.0.1:6379' }],
  ] as const) {
    test(`transports.${name} refuses each by name`, async ({ assert }) => {
      const app = await boot()
      const build = transports[name] as (config: object) => TransportFactory
      for (const [option, value] of Object.entries(wrong)) {
        const config = { ...right, [option]: value }
        await assert.rejects(async () => build(config)({ app }), new RegExp(`\\b${option}\\b`))
      }
    })
  }

  test('those of transports.db that take any text or flag have their effect', async ({
    assert,
    cleanup,
  }) => {
    const app = await boot()
    const named = { partition: 'p', namespace: 'eu', instanceId: 'i' }
    const transport = await transports.db(named)({ app })
    cleanup(() => transport.close!())
    transport.handle!('step', () => null)
    const keys = async () => {
      const beats = await transport.readAllWorkerHeartbeats!()
      return beats.map(({ group, instanceId }) => [group, instanceId])
    }
    let seen: string[][] = []
    while (seen.length === 0) seen = await keys()
    assert.deepEqual(seen, [['step@p', 'i']])
    const db = await app.container.make('lucid.db')
    const rows = await db.from('durable_transport_worker_keys').select('key_name')
    assert.deepEqual(rows, [{ key_name: 'durable-eu-worker-heartbeat:step@p:i' }])
    const bare = await transports.db({ autoCreate: false })({ app: await boot() })
    cleanup(() => bare.close!())
    const task = { runId: 'r', seq: 0, stepId: 'r:0', name: 's', group: 's', input: 1, attempt: 1 }
    await assert.rejects(() => bare.dispatch(task), /misses the table durable_transport_/)
  })
})
