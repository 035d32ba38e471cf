/*
 * The state-store contract on the Lucid store over a real Postgres.
 */
import { runStateStoreContract, StateStoreUnavailableError } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { backend, backendUrl } from '../helpers/backends.ts'
import { CONNECTION } from '../helpers/databases.ts'
import { emptySharedDatabase } from '../helpers/shared_database.ts'

runStateStoreContract('Lucid on Postgres', async () => {
  if (!(await backend('postgres'))) {
    throw new StateStoreUnavailableError(`no Postgres at ${backendUrl('postgres')}`)
  }
  const db = await emptySharedDatabase('postgres')
  const store = new LucidStateStore(db, { connectionName: CONNECTION })
  return { store, cleanup: () => db.manager.closeAll() }
})
