/*
 * Store factories for config/durable.ts. Calling one imports nothing and opens nothing; the driver is
 * loaded when the engine is built.
 */
import type { StateStore } from '../store/state_store.ts'
import type { FactoryContext } from './factory_context.ts'
import { lucidDatabase } from './lucid_database.ts'

/** Builds a store; called once per boot. */
export type StoreFactory = (context: FactoryContext) => StateStore | Promise<StateStore>

export interface LucidStoreConfig {
  /** Lucid connection; default the primary one. */
  connection?: string
  /** Collation of the tables, MySQL and MariaDB only. */
  collation?: string
}

export const stores = {
  /** Keeps runs in SQL, through the application's `@adonisjs/lucid` database. */
  lucid(config: LucidStoreConfig = {}): StoreFactory {
    return async (context) => {
      const { connection } = config
      const db = await lucidDatabase(context, { neededBy: 'stores.lucid', connection })
      const { LucidStateStore } = await import('../store/lucid/lucid_store.ts')
      const logger = await context.app.container.make('logger')
      return new LucidStateStore(db, {
        connectionName: config.connection,
        collation: config.collation,
        logger,
      })
    }
  },
}

/** The store when the config names none: nothing survives the process. */
export const defaultStore: StoreFactory = async () => {
  const { InMemoryStateStore } = await import('../store/memory/memory_store.ts')
  return new InMemoryStateStore()
}
