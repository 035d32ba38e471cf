/*
 * The state-store contract on the Lucid store over a real MySQL or MariaDB.
 */
import { runStateStoreContract, StateStoreUnavailableError } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { backend, backendUrl } from '../helpers/backends.ts'
import { CONNECTION } from '../helpers/databases.ts'
import { emptySharedDatabase } from '../helpers/shared_database.ts'

runStateStoreContract('Lucid on MySQL', async () => {
  if (!(await backend('mysql'))) {
    throw new StateStoreUnavailableError(`no MySQL at ${backendUrl('mysql')}`)
  }
  const db = await emptySharedDatabase('mysql')
  const store = new LucidStateStore(db, { connectionName: CONNECTION })
  return { store, cleanup: () => db.manager.closeAll() }
})
