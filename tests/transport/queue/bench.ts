/*
 * `queue` transports over the adapters of `@adonisjs/queue`, as the processes of a fleet would have them:
 * each with an adapter of its own. Each test has names or tables of its own and leaves nothing behind.
 */
import { randomUUID } from 'node:crypto'
import type { TestContext } from '@japa/runner/core'
import type { Database } from '@adonisjs/lucid/database'
import { QueueSchemaService, drivers } from '@adonisjs/queue'
import { Redis } from 'ioredis'
import { systemClock } from '../../../src/foundation/clock.ts'
import type {
  RunQueueUnderContract,
  TransportSettings,
  TransportUnderContract,
} from '../../../src/testing/conformance.ts'
import {
  Sessions,
  type TransportSession,
} from '../../../src/testing/contracts/transport_session.ts'
import { databaseKeys } from '../../../src/transport/db/keys.ts'
import { LocalKeys } from '../../../src/transport/queue/local_keys.ts'
import {
  type QueueAdapter,
  QueueTransport,
  type QueueTransportConfig,
  type WorkerKeyStore,
} from '../../../src/transport/queue/queue_transport.ts'
import { KEY_LIVES_MS } from '../../../src/transport/worker_keys.ts'
import { keyNames } from '../../../src/wire/names.ts'
import { backend } from '../../helpers/backends.ts'
import {
  createDatabase,
  type DatabaseLocation,
  type Dialect,
  type TestDatabase,
  openDatabase,
  reachableDialects,
} from '../../helpers/databases.ts'
import { STANDING_STILL } from '../standing_still.ts'

/** Null when there is no Redis, which was announced. */
const redisUrl = await backend('redis')

export type Behind = Dialect | 'redis'

/** Every adapter that can be tried here. */
export const ADAPTERS: Behind[] = [
  ...(redisUrl ? (['redis'] as const) : []),
  ...(await reachableDialects()),
]

/** Where an adapter keeps its jobs; plain JSON, for another process. */
export type Backing = { redis: string } | { database: DatabaseLocation }

/** An adapter as the drivers of a config file make it, and what closes what is below it. */
export async function openAdapter(
  backing: Backing,
  shared?: Database
): Promise<{ adapter: QueueAdapter; close(): Promise<void> }> {
  if ('redis' in backing) {
    const ioConnection = new Redis(backing.redis)
    const app = { container: { make: async () => ({ connection: () => ({ ioConnection }) }) } }
    const make = await drivers.redis({ connectionName: 'main' } as never).resolver(app as never)
    return { adapter: make(), close: async () => ioConnection.disconnect() }
  }
  const db = shared ?? openDatabase(backing.database)
  const app = { container: { make: async () => db } }
  const make = await drivers.database({}).resolver(app as never)
  const close = async () => (shared ? undefined : db.manager.closeAll())
  return { adapter: make(), close }
}

const databases = new Map<Dialect, Promise<TestDatabase>>()

/** One for all tests of a file, which differ in their prefix: tables take longer to make than a test. */
function databaseOf(dialect: Dialect): Promise<TestDatabase> {
  const known = databases.get(dialect)
  if (known) return known
  const creating = createDatabase(dialect).then(async (database) => {
    const knex = database.db.connection().getWriteClient()
    await new QueueSchemaService(knex).createJobsTable()
    // As docs/transports/queue.md says: the package's own column takes 64 KB there.
    if (dialect === 'mysql') await knex.raw('ALTER TABLE queue_jobs MODIFY data LONGTEXT NOT NULL')
    return database
  })
  databases.set(dialect, creating)
  return creating
}

/** For the teardown of each group. */
export async function dropDatabases(): Promise<void> {
  const created = await Promise.all(databases.values())
  databases.clear()
  await Promise.all(created.map(({ cleanup }) => cleanup()))
}

/** Short enough for a test, long enough for a busy machine. */
const QUICK = { pollIntervalMs: 10, closeTimeoutMs: 300 }

export class QueueBench {
  readonly prefix = `t${randomUUID().slice(0, 8)}`
  readonly #cleanup: TestContext['cleanup']
  readonly #sessions = new Sessions(this.prefix)

  private constructor(
    cleanup: TestContext['cleanup'],
    readonly backing: Backing,
    readonly workerKeys: WorkerKeyStore,
    /** Two connections of one process to a SQLite file could only wait for each other. */
    readonly shared?: Database
  ) {
    this.#cleanup = cleanup
  }

  static async open(cleanup: TestContext['cleanup'], behind: Behind): Promise<QueueBench> {
    if (behind === 'redis') {
      const bench = new QueueBench(cleanup, { redis: redisUrl! }, new LocalKeys(systemClock))
      cleanup(async () => {
        const redis = new Redis(redisUrl!)
        const keys = await redis.keys(`jobs::${bench.prefix}*`)
        if (keys.length > 0) await redis.del(...keys)
        redis.disconnect()
      })
      return bench
    }
    const { db, location } = await databaseOf(behind)
    const shared = behind === 'sqlite' ? db : undefined
    return new QueueBench(cleanup, { database: location }, databaseKeys(db), shared)
  }

  async adapter(): Promise<QueueAdapter> {
    const { adapter, close } = await openAdapter(this.backing, this.shared)
    this.#cleanup(close)
    return adapter
  }

  async transport(config: QueueTransportConfig = {}): Promise<QueueTransport> {
    const adapter = config.adapter ?? (await this.adapter())
    const { prefix, workerKeys } = this
    const transport = new QueueTransport({ prefix, workerKeys, ...QUICK, ...config, adapter })
    this.#cleanup(() => transport.close())
    return transport
  }

  underContract(): TransportUnderContract {
    return {
      // Ten levels of priority: those of the contract are too far apart.
      abilities: ['shared', 'leases', 'concurrency', 'descriptors', 'timers'],
      open: (settings) => this.#underContract(settings),
      advertise: (token, instanceId, text) => {
        const key = keyNames(this.prefix).workerDescriptor(token, instanceId)
        return this.workerKeys.set(key, text, KEY_LIVES_MS)
      },
    }
  }

  runQueues(): Omit<RunQueueUnderContract, 'cleanup'> {
    return {
      supportsLeases: true,
      open: (settings) =>
        this.#underContract({ onError: () => {}, ...settings, runConcurrency: 1 }),
    }
  }

  #underContract({
    standsStill = false,
    leaseMs,
    timers,
    ...settings
  }: TransportSettings & QueueTransportConfig): Promise<QueueTransport> {
    return this.transport({
      ...settings,
      tenantSubscribersCacheMs: 0,
      ...(leaseMs && { stalledThresholdMs: leaseMs, stalledCheckIntervalMs: leaseMs / 2 }),
      timers: standsStill ? STANDING_STILL : timers,
    })
  }

  async session({
    deferred,
    ...config
  }: QueueTransportConfig & { deferred?: boolean } = {}): Promise<TransportSession> {
    const errors: unknown[] = []
    const transport = await this.transport({ onError: (error) => errors.push(error), ...config })
    return this.#sessions.over(transport, errors, { namespace: config.namespace, deferred })
  }
}
