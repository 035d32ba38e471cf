/*
 * The Lucid store on SQL behind the simulated network: the same worlds on SQLite and Postgres. One database
 * (on Postgres, one schema) for all worlds of a thread, emptied in between.
 */
import { DURABLE_TABLES } from '../../src/store/lucid/schema/tables.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { createDatabase, type Dialect } from '../helpers/databases.ts'
import type { Backend } from './backend.ts'
import { portReader, Shadow } from './shadow.ts'

export interface LucidBackends {
  create(): Backend
  dispose(): Promise<void>
}

export async function lucidBackends(dialect: Dialect): Promise<LucidBackends> {
  const { db, connectionName, cleanup } = await createDatabase(dialect, { memory: true })
  const store = new LucidStateStore(db, { connectionName })
  await store.ensureSchema()
  const create = (): Backend => ({
    store,
    shadow: new Shadow(portReader(store)),
    synchronous: false,
    call: (name, args) => (store[name as never] as (...a: unknown[]) => Promise<unknown>)(...args),
    waiters: () => store.listSignalWaiters(''),
    async close() {
      for (const table of Object.values(DURABLE_TABLES))
        await db.connection(connectionName).from(table).delete()
    },
  })
  return { create, dispose: cleanup }
}
