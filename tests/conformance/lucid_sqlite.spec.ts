/*
 * The state-store contract on the Lucid store over a SQLite file in WAL mode.
 */
import { runStateStoreContract } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../helpers/databases.ts'

runStateStoreContract('Lucid on SQLite', async () => {
  const { db, connectionName, cleanup } = await createDatabase('sqlite')
  const store = new LucidStateStore(db, { connectionName })
  await store.ensureSchema()
  return { store, cleanup }
})
