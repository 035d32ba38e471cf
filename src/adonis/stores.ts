/*
 * Store factories for config/durable.ts. Calling one imports nothing and opens nothing; the driver is
 * loaded when the engine is built.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { Database } from '@adonisjs/lucid/database'
import type { StateStore } from '../store/state_store.ts'
import type { FactoryContext } from './factory_context.ts'
import { loadPeer } from './peer.ts'

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
    return async ({ app }) => {
      if (!app.container.hasBinding('lucid.db')) await explainMissingLucid()
      const { LucidStateStore } = await import('../store/lucid/lucid_store.ts')
      // Not the service module: while providers boot, that one is still empty.
      const db = await app.container.make('lucid.db')
      if (config.connection !== undefined) checkConnection(db, config.connection)
      const logger = await app.container.make('logger')
      return new LucidStateStore(db, {
        connectionName: config.connection,
        collation: config.collation,
        logger,
      })
    }
  },
}

function checkConnection({ manager }: Database, name: string): void {
  if (manager.has(name)) return
  const known = [...manager.connections.keys()].map((key) => `"${key}"`).join(', ')
  throw new RuntimeException(
    `durable: stores.lucid({ connection: "${name}" }) in config/durable.ts names no connection of ` +
      `config/database.ts (it has ${known})`
  )
}

async function explainMissingLucid(): Promise<never> {
  const use = { peer: '@adonisjs/lucid', neededBy: 'stores.lucid()' }
  await loadPeer(() => import('@adonisjs/lucid/database'), use)
  throw new RuntimeException(
    'durable: stores.lucid() found no database in the container. List ' +
      '"@adonisjs/lucid/database_provider" before the durable provider in adonisrc.ts ' +
      '(node ace configure @adonisjs/lucid does)'
  )
}

/** The store when the config names none: nothing survives the process. */
export const defaultStore: StoreFactory = async () => {
  const { InMemoryStateStore } = await import('../store/memory/memory_store.ts')
  return new InMemoryStateStore()
}
