/*
 * The state-store contract on the Lucid store over a real Postgres, a schema of its own for each case.
 */
import { runStateStoreContract } from '../../src/testing/conformance.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../helpers/databases.ts'
import { CASES_OF_LATER_SLICES } from './lucid_exceptions.ts'

runStateStoreContract(
  'Lucid on Postgres',
  async () => {
    const { db, connectionName, cleanup } = await createDatabase('postgres')
    const store = new LucidStateStore(db, { connectionName })
    await store.ensureSchema()
    return { store, cleanup }
  },
  { except: CASES_OF_LATER_SLICES }
)
