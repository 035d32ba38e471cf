/*
 * A transaction that could not begin: user code does not run, and what it would have written comes another
 * time.
 */
import { StoreUnavailableError } from '../../../src/errors.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { openDatabase } from '../../helpers/databases.ts'
import { makeRow, onEachDialect } from '../../store/lucid/support.ts'
import { faultsOf, FaultyDriver } from './faulty_driver.ts'

await onEachDialect(
  'a transaction whose BEGIN fails is an unavailable store, before user code runs',
  async ({ location, store: outside }, assert) => {
    for (const fault of faultsOf(location.dialect).slice(0, -2)) {
      const driver = new FaultyDriver(location.dialect)
      const db = openDatabase(location)
      driver.install(db)
      try {
        const store = new LucidStateStore(db)
        await store.getRun('r')
        driver.arm({ statement: 0, fault })
        let bodies = 0
        const error = await store
          .transaction(async () => void (bodies += 1))
          .catch((thrown: unknown) => thrown)
        assert.match(driver.struck ?? '', /BEGIN|TRANSACTION/, fault)
        assert.instanceOf(error, StoreUnavailableError, fault)
        assert.equal(bodies, 0, fault)
        await store.saveCheckpoint(makeRow(fault, 1))
        assert.lengthOf(await outside.listCheckpoints(fault), 1, fault)
        await store.transaction((tx) => tx.saveCheckpoint(makeRow(fault, 2)))
        assert.lengthOf(await outside.listCheckpoints(fault), 2, fault)
      } finally {
        await db.manager.closeAll()
      }
    }
  }
)
