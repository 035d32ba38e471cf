/*
 * What only Postgres has: plans kept on the server, replicas, prepared connections that go away.
 */
import { test } from '@japa/runner'
import { StoreUnavailableError, TransactionSpoiledError } from '../../../src/errors.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import { backend } from '../../helpers/backends.ts'
import { countStatements, createDatabase } from '../../helpers/databases.ts'
import { asTurn, heldRun, makeRow, makeRun } from '../../store/lucid/support.ts'

const present = (await backend('postgres')) !== null

async function setUp(cleanup: (fn: () => Promise<void>) => void) {
  const database = await createDatabase('postgres')
  cleanup(database.cleanup)
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  return { ...database, store }
}

test.group('Lucid driver | Postgres', (group) => {
  group.each.timeout(30_000)
  group.each.skip(!present, 'no Postgres')

  test('plans that are gone, as behind a pooler, are done without from then on', async ({
    assert,
    cleanup,
  }) => {
    const { db, store } = await setUp(cleanup)
    await store.createRun(heldRun('r', { searchAttributes: { n: 1 } }))
    await store.getRun('r')
    await db.rawQuery('DEALLOCATE ALL')
    const counter = countStatements(db)
    const run = await store.getRun('r')
    assert.equal(run?.id, 'r')
    assert.equal(counter.count, 2)
    const verdict = await store.commitTurn({ ...asTurn('r'), rows: [{ row: makeRow('r', 0) }] })
    assert.isTrue(verdict.applied)
    await db.rawQuery('DEALLOCATE ALL')
    counter.reset()
    await store.getRun('r')
    assert.equal(counter.count, 1)
    counter.stop()
  })

  test('a plan kept by one store does not disturb another on the same connection', async ({
    assert,
    cleanup,
  }) => {
    const { db, store } = await setUp(cleanup)
    await store.createRun(makeRun('r'))
    const other = new LucidStateStore(db)
    const run = await other.getRun('r')
    assert.equal(run?.id, 'r')
    await assert.rejects(() => other.createRun(makeRun('r')), /exists already/)
  })

  test('reads and writes go to the primary, never to a replica', async ({ assert, cleanup }) => {
    const { db, location, store } = await setUp(cleanup)
    const url = new URL(location.target)
    const address = (port: string) => ({ host: url.hostname, port: Number(port || 5432) })
    db.manager.add('replicated', {
      client: 'pg',
      connection: {
        user: decodeURIComponent(url.username),
        password: decodeURIComponent(url.password),
        database: url.pathname.slice(1),
      },
      searchPath: [location.schema!],
      replicas: {
        write: { connection: address(url.port) },
        // Nobody answers there.
        read: { connection: [address('1')] },
      },
    })
    const replicated = new LucidStateStore(db, { connectionName: 'replicated' })
    await replicated.createRun(makeRun('r', { searchAttributes: { n: 1 } }))
    const [run] = await replicated.listRuns({ attributes: [{ key: 'n', op: 'eq', value: 1 }] })
    assert.equal(run.id, 'r')
    await replicated.transaction((tx) => tx.saveCheckpoint(makeRow('r', 1)))
    assert.lengthOf(await store.listCheckpoints('r'), 1)
  })

  test('a connection that the server ends is replaced', async ({ assert, cleanup }) => {
    const { store, db, connect } = await setUp(cleanup)
    await store.createRun(makeRun('r'))
    const { rows } = await db.rawQuery('SELECT pg_backend_pid() AS pid')
    await connect().rawQuery('SELECT pg_terminate_backend(?)', [rows[0].pid])
    const answers = []
    // The call that meets the dead connection fails; after it there is another.
    for (let call = 0; call < 3; call++) {
      answers.push(await store.getRun('r').catch((error: Error) => error))
    }
    const failures = answers.filter((answer) => answer instanceof Error)
    assert.isAtMost(failures.length, 1)
    for (const failure of failures) assert.instanceOf(failure, StoreUnavailableError)
    assert.equal((answers[2] as WorkflowRun).id, 'r')
  })

  test('a connection that dies before its COMMIT took the transaction along', async ({
    assert,
    cleanup,
  }) => {
    const { store, db, connect } = await setUp(cleanup)
    await store.createRun(makeRun('r'))
    const committing = store.transaction(async (tx) => {
      await tx.saveCheckpoint(makeRow('r', 1))
      const trx = tx.raw as typeof db
      const { rows } = await trx.rawQuery('SELECT pg_backend_pid() AS pid')
      await connect().rawQuery('SELECT pg_terminate_backend(?)', [rows[0].pid])
    })
    await assert.rejects(() => committing, StoreUnavailableError as never)
    assert.deepEqual(await store.listCheckpoints('r'), [])
  })

  test('a transaction that Postgres gave up is not taken for committed', async ({
    assert,
    cleanup,
  }) => {
    const { store, db } = await setUp(cleanup)
    const committing = store.transaction(async (tx) => {
      await tx.saveCheckpoint(makeRow('r', 1))
      await (tx.raw as typeof db).rawQuery('SELECT 1 / 0').catch(() => {})
    })
    await assert.rejects(() => committing, TransactionSpoiledError as never)
    assert.deepEqual(await store.listCheckpoints('r'), [])
  })
})
