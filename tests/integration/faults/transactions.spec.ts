/*
 * A transaction that could not begin: user code does not run, and what it would have written comes another
 * time. One whose end failed: nothing of it stays open on a connection that
 * goes on.
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

const ENDS = ['COMMIT', 'ROLLBACK'] as const

await onEachDialect(
  'a transaction whose end fails holds nothing afterwards, and what follows is no part of it',
  async ({ location, store: outside }, assert) => {
    const strikes = ENDS.flatMap((end) =>
      faultsOf(location.dialect)
        .slice(0, -2)
        .map((fault) => [end, fault] as const)
    )
    for (const [end, fault] of strikes) {
      const run = `${end} ${fault}`
      const driver = new FaultyDriver(location.dialect)
      const db = openDatabase(location)
      driver.install(db)
      try {
        const store = new LucidStateStore(db)
        const write = (name: string) =>
          store.transaction(async (tx) => {
            await tx.saveCheckpoint(makeRow(run, 1, { name }))
            if (end === 'ROLLBACK') throw new Error('rolled back')
          })
        await outside.saveCheckpoint(makeRow(run, 1))
        driver.arm()
        await write('before').catch(() => {})
        const statement = driver.texts.findIndex((text) => text.startsWith(end))
        driver.arm({ statement: driver.texts.length + statement, fault })
        await assert.rejects(() => write('lost'))
        assert.isTrue(driver.struck?.startsWith(end), run)
        // Would wait for a lock that is still held.
        await outside.saveCheckpoint(makeRow(run, 1, { name: 'outside' }))
        // Would commit what the same connection has left open.
        await store.saveCheckpoint(makeRow(run, 2))
        await store.transaction((tx) => tx.saveCheckpoint(makeRow(run, 3)))
        const rows = await outside.listCheckpoints(run)
        assert.deepEqual(
          rows.map(({ name }) => name),
          ['outside', 'step-2', 'step-3'],
          run
        )
      } finally {
        await db.manager.closeAll()
      }
    }
  }
)
