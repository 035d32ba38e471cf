/*
 * The state-store contract on the Lucid store over a real Postgres. The cases share one schema, emptied
 * before each and dropped when the process has nothing left to do: to make one takes longer than a case.
 */
import { runStateStoreContract, StateStoreUnavailableError } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { createDurableTables } from '../../src/store/lucid/schema/ensure.ts'
import { DURABLE_TABLES } from '../../src/store/lucid/schema/tables.ts'
import { backend, backendUrl } from '../helpers/backends.ts'
import { CONNECTION, createDatabase, openDatabase } from '../helpers/databases.ts'

const EMPTY = Object.values(DURABLE_TABLES)
  .map((table) => `delete from "${table}"`)
  .join('; ')

let schema: ReturnType<typeof makeSchema> | undefined

async function makeSchema() {
  const { db, location, cleanup } = await createDatabase('postgres')
  await createDurableTables(db)
  await db.manager.closeAll()
  process.once('beforeExit', cleanup)
  return location
}

runStateStoreContract('Lucid on Postgres', async () => {
  if (!(await backend('postgres'))) {
    throw new StateStoreUnavailableError(`no Postgres at ${backendUrl('postgres')}`)
  }
  const db = openDatabase(await (schema ??= makeSchema()))
  await db.rawQuery(EMPTY)
  const store = new LucidStateStore(db, { connectionName: CONNECTION })
  return { store, cleanup: () => db.manager.closeAll() }
})
