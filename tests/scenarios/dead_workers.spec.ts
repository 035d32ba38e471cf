/*
 * A worker dies holding a claimed step: the claim lapses, another worker takes it, and a step that kills
 * whoever runs it fails after so many. Real processes, real brokers, an engine that sees it through.
 */
import { randomUUID } from 'node:crypto'
import { getActiveTestOrFail, test } from '@japa/runner'
import { Redis } from 'ioredis'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { BullMQTransport } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { backend } from '../helpers/backends.ts'
import { createDatabase, type Dialect, reachableDialects } from '../helpers/databases.ts'
import { DyingWorker, type Over } from '../transport/dying_workers.ts'
import { ADAPTERS, type Behind, dropDatabases, QueueBench } from '../transport/queue/bench.ts'

const LEASE_MS = 2000
const MAX_STALLED = 2
const redisUrl = await backend('redis')
/** Several processes cannot use an adapter of `@adonisjs/queue` over one SQLite file. */
const QUEUES = ADAPTERS.filter((behind) => behind !== 'sqlite')
type Broker = Dialect | 'redis' | `queue on ${Behind}`
const REACHED: Broker[] = [
  ...(await reachableDialects()),
  ...(redisUrl ? (['redis'] as const) : []),
  ...QUEUES.map((behind) => `queue on ${behind}` as const),
]

/** Each of these is mostly waiting for leases: the others are for `npm run test:processes`. */
const SOME: Broker[] = ['postgres', 'redis', 'queue on redis']
const all = process.env.FAULTS === 'all'
const BROKERS = all ? REACHED : REACHED.filter((broker) => SOME.includes(broker))
if (!all) console.log(`a worker that dies: on ${BROKERS}; all brokers with npm run test:processes`)

interface Stage {
  store: StateStore
  transport: Transport
  over: Over
}

async function overDb(dialect: Dialect): Promise<Stage> {
  const { db, location, cleanup } = await createDatabase(dialect)
  const options = { leaseMs: LEASE_MS, maxStalledCount: MAX_STALLED, pollIntervalMs: 50 }
  const transport = new DbTransport({ db, ...options })
  getActiveTestOrFail().cleanup(async () => {
    await transport.close()
    await cleanup()
  })
  const store = new LucidStateStore(db)
  await store.ensureSchema()
  return { store, transport, over: { over: 'db', location, options } }
}

async function overRedis(): Promise<Stage> {
  const options = {
    connection: redisUrl!,
    prefix: `t${randomUUID().slice(0, 8)}`,
    lockDuration: LEASE_MS,
    stalledInterval: LEASE_MS / 2,
    maxStalledCount: MAX_STALLED,
  }
  const transport = await BullMQTransport.create({ ...options, instanceId: 'engine' })
  getActiveTestOrFail().cleanup(async () => {
    await transport.close()
    const redis = new Redis(redisUrl!)
    const keys = await redis.keys(`*${options.prefix}*`)
    if (keys.length > 0) await redis.del(...keys)
    redis.disconnect()
  })
  return { store: new InMemoryStateStore(), transport, over: { over: 'bullmq', options } }
}

async function overQueue(behind: Behind): Promise<Stage> {
  const bench = await QueueBench.open((fn) => getActiveTestOrFail().cleanup(fn), behind)
  getActiveTestOrFail().cleanup(() => dropDatabases())
  const options = {
    prefix: bench.prefix,
    stalledThresholdMs: LEASE_MS,
    stalledCheckIntervalMs: LEASE_MS / 2,
    maxStalledCount: MAX_STALLED,
    pollIntervalMs: 50,
  }
  const transport = await bench.transport({ ...options, instanceId: 'engine' })
  const { backing } = bench
  return { store: new InMemoryStateStore(), transport, over: { over: 'queue', backing, options } }
}

const isQueue = (broker: Broker): broker is `queue on ${Behind}` => broker.startsWith('queue on ')

function open(broker: Broker): Promise<Stage> {
  if (isQueue(broker)) return overQueue(broker.slice('queue on '.length) as Behind)
  return broker === 'redis' ? overRedis() : overDb(broker)
}

async function stage(broker: Broker) {
  const { over, ...deps } = await open(broker)
  const engine = new WorkflowEngine(deps)
  getActiveTestOrFail().cleanup(() => engine.drain())
  engine.register('w', '1', (ctx) => ctx.step('work', null, { retries: 0 }))
  const worker = (name: string, does: 'hang' | 'die' | 'end') => {
    const options = { ...over.options, instanceId: name }
    return new DyingWorker({ ...over, options, name, does } as ConstructorParameters<
      typeof DyingWorker
    >[0])
  }
  const ended = async (runId: string) => {
    await eventually(`the end of ${runId}`, async () => {
      const run = await deps.store.getRun(runId)
      return run?.status === 'completed' || run?.status === 'failed'
    })
    const run = await deps.store.getRun(runId)
    return run!
  }
  return { engine, worker, ended }
}

async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + 60_000
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`waited in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test.group('A worker that dies', (group) => {
  group.each.timeout(120_000)

  test('holding a step on {$self}: another one takes it over, and the run goes on')
    .with(BROKERS)
    .run(async ({ assert }, broker) => {
      const { engine, worker, ended } = await stage(broker)
      void engine.start('w', null, 'a:1')
      const doomed = worker('doomed', 'hang')
      await eventually('the pickup', () => doomed.pickups === 1)
      const next = worker('next', 'end')
      doomed.kill()
      await doomed.exited
      const { status, output } = await ended('a:1')
      assert.deepEqual([status, output], ['completed', 'done by next'])
      assert.deepEqual([doomed.pickups, next.pickups], [1, 1])
    })
    .tags(['@scenario-9'])

  test('of a step on {$self}, again and again: the step fails, and may be retried')
    .with(BROKERS)
    .run(async ({ assert }, broker) => {
      const { engine, worker, ended } = await stage(broker)
      void engine.start('w', null, 'poison')
      let pickups = 0
      for (let life = 0; life <= MAX_STALLED; life++) {
        const doomed = worker(`doomed ${life}`, 'die')
        await doomed.exited
        pickups += doomed.pickups
      }
      const last = worker('last', 'end')
      const { status, error } = await ended('poison')
      assert.equal(status, 'failed')
      assert.match(error?.message ?? '', /^remote step worker failed: /)
      assert.notEqual(error?.retryable, false)
      assert.deepEqual([pickups, last.pickups], [MAX_STALLED + 1, 0])
    })
    .tags(['@scenario-9'])
})
