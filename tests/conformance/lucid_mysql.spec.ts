/*
 * The state-store contract on the Lucid store over a real MySQL or MariaDB. On a MariaDB a second time as on
 * a MySQL, which has no compound statements and is sent their parts.
 */
import { runStateStoreContract, StateStoreUnavailableError } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { backend, backendUrl } from '../helpers/backends.ts'
import { CONNECTION } from '../helpers/databases.ts'
import { emptySharedDatabase } from '../helpers/shared_database.ts'

for (const plain of [false, true]) {
  const name = plain ? 'Lucid on MySQL, statement by statement' : 'Lucid on MySQL'
  runStateStoreContract(name, async () => {
    if (!(await backend('mysql'))) {
      throw new StateStoreUnavailableError(`no MySQL at ${backendUrl('mysql')}`)
    }
    const db = await emptySharedDatabase('mysql', { plain })
    const store = new LucidStateStore(db, { connectionName: CONNECTION })
    return { store, cleanup: () => db.manager.closeAll() }
  })
}
