/*
 * What only SQLite has: a busy file, two drivers, one connection.
 */
import { setImmediate } from 'node:timers/promises'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../../helpers/databases.ts'
import { asTurn, at, heldRun, makeRow, makeRun, makeWait, ms } from '../../store/lucid/support.ts'

async function setUp(cleanup: (fn: () => Promise<void>) => void) {
  const database = await createDatabase('sqlite')
  cleanup(database.cleanup)
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  return { ...database, store }
}

test.group('Lucid driver | SQLite', (group) => {
  group.each.timeout(30_000)

  test('a busy file is tried again, for single statements and for transactions', async ({
    assert,
    cleanup,
  }) => {
    const { db, store, connect } = await setUp(cleanup)
    await db.rawQuery('PRAGMA busy_timeout = 0')
    const other = connect()
    const calls = [
      () => store.createRun(makeRun('a')),
      () => store.createRun(makeRun('b', { searchAttributes: { n: 1 } })),
    ]
    for (const call of calls) {
      const trx = await other.transaction()
      await trx.rawQuery('CREATE TABLE IF NOT EXISTS busy (id integer)')
      const running = call()
      await setImmediate()
      await trx.commit()
      await running
    }
    assert.lengthOf(await store.listRuns({}), 2)
  })

  test('a file that stays busy is an unavailable store', async ({ assert, cleanup }) => {
    const { db, store, connect } = await setUp(cleanup)
    await db.rawQuery('PRAGMA busy_timeout = 0')
    const trx = await connect().transaction()
    await trx.rawQuery('CREATE TABLE busy (id integer)')
    await assert.rejects(() => store.createRun(makeRun('a')), /failed: database is locked/)
    await trx.rollback()
    await store.createRun(makeRun('a'))
  })

  test('calls side by side on the one connection do not wait for themselves', async ({
    assert,
    cleanup,
  }) => {
    const { store } = await setUp(cleanup)
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        await store.createRun(heldRun(`r${i}`, { searchAttributes: { i } }))
        await store.commitTurn({
          ...asTurn(`r${i}`),
          rows: [{ row: makeRow(`r${i}`, 0) }, { row: makeRow(`r${i}`, 1) }],
          waits: [makeWait(`r${i}`, 2, `t${i}`)],
        })
        await store.transaction((tx) => tx.saveCheckpoint(makeRow(`r${i}`, 3)))
        await store.deliverSignal({ token: `t${i}`, payload: i, nowMs: ms(1), buffer: true })
      })
    )
    const rows = await store.getCheckpoints(
      Array.from({ length: 20 }, (_, i) => ({ runId: `r${i}`, seq: 2 }))
    )
    assert.lengthOf(rows, 20)
  })

  test('a transaction has the write lock before user code reads', async ({ assert, cleanup }) => {
    const { store, connect } = await setUp(cleanup)
    await store.createRun(heldRun('r'))
    const other = connect()
    await other.rawQuery('PRAGMA busy_timeout = 0')
    await store.transaction(async (tx) => {
      const raw = tx.raw as typeof other
      await raw.rawQuery('SELECT count(*) FROM durable_workflow_runs')
      await assert.rejects(() => other.rawQuery('CREATE TABLE late (id integer)'), /is locked/)
      await tx.saveCheckpoint(makeRow('r', 1), { owner: 'me', turn: 1 })
    })
    assert.lengthOf(await store.listCheckpoints('r'), 1)
  })

  test('the other SQLite driver is used through knex', async ({ assert, cleanup }) => {
    const { db, store } = await setUp(cleanup)
    // What the store sees of the `sqlite3` package; knex itself goes on with the installed one.
    const knex = db.connection().getWriteClient().client as { driverName: string }
    Object.defineProperty(knex, 'driverName', { value: 'sqlite3' })
    await store.createRun(heldRun('r', { searchAttributes: { n: 1 } }))
    await store.saveCheckpoint(makeRow('r', 0, { status: 'pending' }))
    const [settled] = await store.settleCheckpointsIfPending([
      { runId: 'r', seq: 0, status: 'completed', finishedAt: at(5), output: 1 },
    ])
    const verdict = await store.commitTurn({
      ...asTurn('r'),
      rows: [{ row: makeRow('r', 1) }, { row: makeRow('r', 2) }],
      waits: [makeWait('r', 3, 't')],
    })
    const outcome = await store.deliverSignal({
      token: 't',
      payload: 1,
      nowMs: ms(9),
      buffer: true,
    })
    assert.deepEqual([settled, verdict.applied, outcome.delivered], [true, true, true])
    assert.isTrue(await store.tryLockRun('r', 'you', ms(99_999), ms(90_000)))
    assert.lengthOf(await store.listCheckpoints('r'), 4)
    assert.equal(await store.deleteRuns(['r']), 1)
  })
})
