/*
 * Transport factories for config/durable.ts. Calling one imports nothing and opens nothing; the driver is
 * loaded when the engine is built. Every option of a driver passes through.
 */
import type { DbTransportConfig } from '../transport/db/db_transport.ts'
import type { BullMQTransportConfig } from '../transport/bullmq/bullmq_transport.ts'
import type { EventEmitterTransportConfig } from '../transport/event_emitter/event_emitter_transport.ts'
import type { InMemoryTransportOptions } from '../transport/memory/memory_transport.ts'
import type { Transport } from '../transport/ports.ts'
import type { QueueTransportConfig, WorkerKeyStore } from '../transport/queue/queue_transport.ts'
import { errorReporter, type FactoryContext } from './factory_context.ts'
import { lucidDatabase } from './lucid_database.ts'
import { loadPeer } from './peer.ts'
import { queueAdapter } from './queue_adapter.ts'

export type { FactoryContext }

/** Builds a transport; called once per boot. */
export type TransportFactory = (context: FactoryContext) => Transport | Promise<Transport>

/** Everything is optional, and for tests. */
export type MemoryTransportConfig = InMemoryTransportOptions

export const transports = {
  /** Carries steps inside this process; meant for tests. The default when no transport is named. */
  memory(config: MemoryTransportConfig = {}): TransportFactory {
    return async (context) => {
      const { InMemoryTransport } = await import('../transport/memory/memory_transport.ts')
      const onError = config.onError ?? (await errorReporter(context, 'the memory transport'))
      return new InMemoryTransport({ ...config, onError })
    }
  },

  /** Carries steps inside this process over a Node EventEmitter; for production on one process. */
  eventEmitter(config: EventEmitterTransportConfig = {}): TransportFactory {
    return async (context) => {
      const driver = await import('../transport/event_emitter/event_emitter_transport.ts')
      const onError =
        config.onError ?? (await errorReporter(context, 'the event emitter transport'))
      return new driver.EventEmitterTransport({ ...config, onError })
    }
  },

  /**
   * Carries steps between processes through tables of the application's `@adonisjs/lucid` database; no
   * broker. Tables are created at the first use unless `autoCreate` is false.
   */
  db(config: DbTransportConfig = {}): TransportFactory {
    return async (context) => {
      const { connection } = config
      const db = await lucidDatabase(context, { neededBy: 'transports.db', connection })
      const { DbTransport } = await import('../transport/db/db_transport.ts')
      const onError = config.onError ?? (await errorReporter(context, 'the db transport'))
      const logger = config.logger ?? (await context.app.container.make('logger'))
      return new DbTransport({ ...config, db, onError, logger })
    }
  },

  /**
   * Carries steps between processes over an adapter of the optional peer `@adonisjs/queue`: the one of
   * config/queue.ts that `connection` names. Workers are seen alive in a table of the application's
   * database, which is created at the first use; without a database, or with `workerKeys: false`, nothing
   * is known of the fleet.
   */
  queue(config: QueueTransportConfig = {}): TransportFactory {
    return async (context) => {
      const adapter = config.adapter ?? (await queueAdapter(context, config.connection))
      const { QueueTransport } = await import('../transport/queue/queue_transport.ts')
      const onError = config.onError ?? (await errorReporter(context, 'the queue transport'))
      const workerKeys = config.workerKeys ?? (await keysInDatabase(context))
      return new QueueTransport({ ...config, adapter, onError, workerKeys })
    }
  },

  /**
   * Carries steps between processes over BullMQ on Redis. Needs the optional peers `bullmq` and `ioredis`.
   * Throws `InvalidArgumentError` at boot for an option that cannot be used, such as a missing
   * `connection`.
   */
  bullmq(config: BullMQTransportConfig): TransportFactory {
    return async (context) => {
      const driver = await import('../transport/bullmq/bullmq_transport.ts')
      const neededBy = 'transports.bullmq()'
      await loadPeer(() => import('ioredis'), { peer: 'ioredis', neededBy })
      const deps = await loadPeer(() => driver.loadBullMQDeps(), { peer: 'bullmq', neededBy })
      const onError = config?.onError ?? (await errorReporter(context, 'the bullmq transport'))
      return new driver.BullMQTransport({ ...config, onError }, deps)
    }
  },
}

async function keysInDatabase(context: FactoryContext): Promise<WorkerKeyStore | false> {
  const { container } = context.app
  if (!container.hasBinding('lucid.db')) return false
  const { databaseKeys } = await import('../transport/db/keys.ts')
  return databaseKeys(await container.make('lucid.db'), { logger: await container.make('logger') })
}
