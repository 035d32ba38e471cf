/*
 * A transaction that could not begin: user code does not run, and what it would have written comes another
 * time. One whose COMMIT failed: nothing of it stays open on a connection that goes on.
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

await onEachDialect(
  'a transaction whose COMMIT fails holds nothing afterwards, and what follows is no part of it',
  async ({ location, store: outside }, assert) => {
    for (const fault of faultsOf(location.dialect).slice(0, -2)) {
      const driver = new FaultyDriver(location.dialect)
      const db = openDatabase(location)
      driver.install(db)
      try {
        const store = new LucidStateStore(db)
        const write = (name: string) =>
          store.transaction((tx) => tx.saveCheckpoint(makeRow(fault, 1, { name })))
        driver.arm()
        await write('before')
        const statement = driver.texts.findIndex((text) => text.startsWith('COMMIT'))
        driver.arm({ statement: driver.texts.length + statement, fault })
        await assert.rejects(() => write('lost'))
        assert.match(driver.struck ?? '', /^COMMIT/, fault)
        // Would wait for a lock that is still held.
        await outside.saveCheckpoint(makeRow(fault, 1, { name: 'outside' }))
        // Would commit what the same connection has left open.
        await store.saveCheckpoint(makeRow(fault, 2))
        await store.transaction((tx) => tx.saveCheckpoint(makeRow(fault, 3)))
        const rows = await outside.listCheckpoints(fault)
        assert.deepEqual(
          rows.map(({ name }) => name),
          ['outside', 'step-2', 'step-3'],
          fault
        )
      } finally {
        await db.manager.closeAll()
      }
    }
  }
)
