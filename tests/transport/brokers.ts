/*
 * Every real broker that can be reached, behind one face: a store, and transports of several processes that
 * meet there. Closed, and nothing left behind, when the test ends.
 */
import { randomUUID } from 'node:crypto'
import { getActiveTestOrFail } from '@japa/runner'
import { Redis } from 'ioredis'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { BullMQTransport } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { backend } from '../helpers/backends.ts'
import { createDatabase, type Dialect, reachableDialects } from '../helpers/databases.ts'
import { ADAPTERS, type Behind, dropDatabases, QueueBench } from './queue/bench.ts'

export type Broker = `db on ${Dialect}` | 'bullmq' | `queue on ${Behind}`

const redisUrl = await backend('redis')
const dialects = await reachableDialects()

export const BROKERS: Broker[] = [
  ...dialects.map((dialect) => `db on ${dialect}` as const),
  ...(redisUrl ? (['bullmq'] as const) : []),
  ...ADAPTERS.map((behind) => `queue on ${behind}` as const),
]

export interface OpenBroker {
  store: StateStore
  /** The transport of one more process. */
  open(instanceId: string): Promise<Transport>
}

export function openBroker(broker: Broker): Promise<OpenBroker> {
  if (broker === 'bullmq') return overBullmq()
  const [kind, behind] = broker.split(' on ')
  return kind === 'db' ? overDb(behind as Dialect) : overQueue(behind as Behind)
}

async function overDb(dialect: Dialect): Promise<OpenBroker> {
  const { db, cleanup } = await createDatabase(dialect)
  atEnd(cleanup)
  const store = new LucidStateStore(db)
  await store.ensureSchema()
  return {
    store,
    open: async (instanceId) =>
      closedAtEnd(new DbTransport({ db, instanceId, concurrency: 4, pollIntervalMs: 20 })),
  }
}

async function overBullmq(): Promise<OpenBroker> {
  const prefix = `t${randomUUID().slice(0, 8)}`
  atEnd(async () => {
    const redis = new Redis(redisUrl!)
    const keys = await redis.keys(`*${prefix}*`)
    if (keys.length > 0) await redis.del(...keys)
    redis.disconnect()
  })
  const connection = redisUrl!
  return {
    store: new InMemoryStateStore(),
    open: async (instanceId) =>
      closedAtEnd(await BullMQTransport.create({ connection, prefix, instanceId, concurrency: 4 })),
  }
}

async function overQueue(behind: Behind): Promise<OpenBroker> {
  atEnd(() => dropDatabases())
  const bench = await QueueBench.open((fn) => getActiveTestOrFail().cleanup(fn), behind)
  const open = (instanceId: string) =>
    bench.transport({ instanceId, concurrency: 4, pollIntervalMs: 20 })
  return { store: new InMemoryStateStore(), open }
}

const atEnd = (work: () => Promise<unknown>): void =>
  void getActiveTestOrFail().cleanup(async () => void (await work()))

function closedAtEnd<T extends Transport>(transport: T): T {
  atEnd(async () => transport.close?.())
  return transport
}
