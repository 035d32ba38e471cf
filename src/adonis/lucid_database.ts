/*
 * The application's Lucid database, for the drivers that keep their tables in it.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { Database } from '@adonisjs/lucid/database'
import type { FactoryContext } from './factory_context.ts'
import { loadPeer } from './peer.ts'

export interface LucidUse {
  /** As the application wrote it: `stores.lucid`. */
  neededBy: string
  /** Default: the primary one. */
  connection?: string
}

/**
 * The database of the container. Throws `RuntimeException` when Lucid is not installed or not provided, or
 * has no such connection, with what to do.
 */
export async function lucidDatabase(
  { app }: FactoryContext,
  { neededBy, connection }: LucidUse
): Promise<Database> {
  if (!app.container.hasBinding('lucid.db')) await explainMissingLucid(neededBy)
  // Not the service module: while providers boot, that one is still empty.
  const db = await app.container.make('lucid.db')
  if (connection !== undefined) checkConnection(db, connection, neededBy)
  return db
}

function checkConnection({ manager }: Database, name: string, neededBy: string): void {
  if (manager.has(name)) return
  const known = [...manager.connections.keys()].map((key) => `"${key}"`).join(', ')
  throw new RuntimeException(
    `durable: ${neededBy}({ connection: "${name}" }) in config/durable.ts names no connection of ` +
      `config/database.ts (it has ${known})`
  )
}

async function explainMissingLucid(neededBy: string): Promise<never> {
  const use = { peer: '@adonisjs/lucid', neededBy: `${neededBy}()` }
  await loadPeer(() => import('@adonisjs/lucid/database'), use)
  throw new RuntimeException(
    `durable: ${neededBy}() found no database in the container. List ` +
      '"@adonisjs/lucid/database_provider" before the durable provider in adonisrc.ts ' +
      '(node ace configure @adonisjs/lucid does)'
  )
}
