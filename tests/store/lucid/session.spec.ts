/*
 * How the store uses a Lucid connection: which one, inside whose transaction, and what becomes of errors.
 */
import { test } from '@japa/runner'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { StoreUnavailableError, TransactionSpoiledError } from '../../../src/errors.ts'
import { deferred } from '../../../src/foundation/deferred.ts'
import {
  type CorruptJsonColumn,
  LucidStateStore,
  onCorruptJsonColumn,
} from '../../../src/store/lucid/lucid_store.ts'
import { DURABLE_TABLES as T } from '../../../src/store/lucid/schema/tables.ts'
import { createDatabase, openDatabase } from '../../helpers/databases.ts'
import { asTurn, heldRun, makeRow, makeRun, makeWait, ms, onEachDialect } from './support.ts'

async function failureOf(call: Promise<unknown>): Promise<Error & { cause?: unknown }> {
  try {
    await call
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not fail')
}

await onEachDialect(
  'a driver error is wrapped, without the statement or what it carried',
  async ({ db, store }, assert) => {
    await db.rawQuery(`DROP TABLE ${T.checkpoints}`)
    const calls = [
      store.saveCheckpoint(makeRow('r', 1, { output: 'secret' })),
      store.saveCheckpointsIfPending([makeRow('r', 1, { output: 'secret' })]),
      store.transaction((tx) => tx.saveCheckpoint(makeRow('r', 1, { output: 'secret' }))),
    ]
    for (const error of await Promise.all(calls.map(failureOf))) {
      assert.instanceOf(error, StoreUnavailableError)
      assert.instanceOf(error.cause, Error)
      assert.include(error.message, T.checkpoints)
      for (const text of [error.message, (error.cause as Error).message]) {
        assert.notInclude(text, 'INSERT')
        assert.notInclude(text, 'secret')
      }
    }
  }
)

await onEachDialect(
  'a transaction that the database refuses to commit rejects, and leaves its connection clean',
  async ({ db, store, dialect }, assert) => {
    if (dialect === 'sqlite') await db.rawQuery('PRAGMA foreign_keys = ON')
    await db.rawQuery('CREATE TABLE parents (id integer PRIMARY KEY)')
    await db.rawQuery(
      'CREATE TABLE kids (id integer REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)'
    )
    const told: string[] = []
    const error = await failureOf(
      store.transaction(async (tx) => {
        const trx = tx.raw as TransactionClientContract
        trx.after('commit', () => void told.push('commit'))
        trx.after('rollback', () => void told.push('rollback'))
        await trx.rawQuery('INSERT INTO kids VALUES (1)')
        await tx.saveCheckpoint(makeRow('r', 1))
      })
    )
    assert.instanceOf(error, TransactionSpoiledError)
    assert.instanceOf(error.cause, Error)
    assert.deepEqual(told, ['rollback'])
    assert.isNull(await store.getCheckpoint('r', 1))
    await store.transaction((tx) => tx.saveCheckpoint(makeRow('r', 2)))
    assert.lengthOf(await store.listCheckpoints('r'), 1)
    assert.lengthOf(await db.from('kids').select('id'), 0)
  },
  // Nothing of MySQL waits for the COMMIT to be refused.
  ['sqlite', 'postgres']
)

await onEachDialect(
  'a checkpoint is not written beside a transaction that user code ended',
  async ({ store }, assert) => {
    for (const end of ['commit', 'rollback'] as const) {
      const error = await failureOf(
        store.transaction(async (tx) => {
          await (tx.raw as TransactionClientContract)[end]()
          await tx.saveCheckpoint(makeRow('r', 1))
        })
      )
      assert.instanceOf(error, TransactionSpoiledError)
      assert.match(error.message, /by user code/)
      assert.isNull(await store.getCheckpoint('r', 1))
    }
  }
)

await onEachDialect(
  'a transaction that a deadlock has undone is not taken for one that goes on',
  async ({ db, store }, assert) => {
    await store.createRun(heldRun('r'))
    const fences = [undefined, { owner: 'me', turn: 1 }]
    for (const fence of fences) {
      const error = await failureOf(
        store.transaction(async (tx) => {
          // DDL ends a transaction as a deadlock does, and is told nobody.
          await (tx.raw as TransactionClientContract).rawQuery(
            'CREATE TABLE IF NOT EXISTS x (id int)'
          )
          await tx.saveCheckpoint(makeRow('r', 1), fence)
        })
      )
      assert.instanceOf(error, TransactionSpoiledError)
      assert.isNull(await store.getCheckpoint('r', 1))
    }
    await db.rawQuery('DROP TABLE x')
  },
  ['mysql']
)

await onEachDialect(
  'what user code throws in a transaction comes out as it is, and nothing stays',
  async ({ db, store }, assert) => {
    await db.rawQuery('CREATE TABLE orders (id integer)')
    const mistake = new TypeError('a mistake')
    const error = await failureOf(
      store.transaction(async (tx) => {
        await (tx.raw as typeof db).rawQuery('INSERT INTO orders VALUES (1)')
        await tx.saveCheckpoint(makeRow('r', 1))
        throw mistake
      })
    )
    assert.strictEqual(error, mistake)
    assert.isNull(await store.getCheckpoint('r', 1))
    assert.lengthOf(await db.from('orders').select('id'), 0)
    const answer = await store.transaction(async (tx) => {
      await (tx.raw as typeof db).rawQuery('INSERT INTO orders VALUES (2)')
      await tx.saveCheckpoint(makeRow('r', 1))
      return 'done'
    })
    assert.equal(answer, 'done')
    assert.lengthOf(await db.from('orders').select('id'), 1)
    assert.isNotNull(await store.getCheckpoint('r', 1))
  }
)

await onEachDialect(
  'inside a global transaction the store writes in it, nested transactions included',
  async ({ db, store }, assert) => {
    await db.beginGlobalTransaction()
    await store.createRun(heldRun('r', { searchAttributes: { a: 1 } }))
    const verdict = await store.commitTurn({
      ...asTurn('r'),
      rows: [{ row: makeRow('r', 0) }, { row: makeRow('r', 1) }],
      waits: [makeWait('r', 2, 't')],
    })
    assert.isTrue(verdict.applied)
    await store.deliverSignal({ token: 't', payload: 1, nowMs: ms(1), buffer: true })
    await store.transaction((tx) => tx.saveCheckpoint(makeRow('r', 3)))
    await failureOf(
      store.transaction(async (tx) => {
        await tx.saveCheckpoint(makeRow('r', 4))
        throw new Error('no')
      })
    )
    assert.lengthOf(await store.listCheckpoints('r'), 4)
    await db.rollbackGlobalTransaction()
    assert.isNull(await store.getRun('r'))
    assert.lengthOf(await store.listCheckpoints('r'), 0)
  }
)

await onEachDialect('a named connection is used for everything', async (context, assert) => {
  const { db, connectionName, location, connect } = context
  const other = await createDatabase(location.dialect)
  try {
    db.manager.add('other', other.db.manager.get(other.connectionName)!.config)
    const store = new LucidStateStore(db, { connectionName: 'other' })
    await store.ensureSchema()
    await store.createRun(makeRun('there', { searchAttributes: { a: 1 } }))
    await store.transaction((tx) => tx.saveCheckpoint(makeRow('there', 1)))
    const here = new LucidStateStore(connect(), { connectionName })
    assert.isNull(await here.getRun('there'))
    assert.isNotNull(await new LucidStateStore(other.db).getRun('there'))
    assert.isNotNull(await new LucidStateStore(other.db).getCheckpoint('there', 1))
    await db.manager.close('other')
  } finally {
    await other.cleanup()
  }
})

await onEachDialect(
  'damaged JSON reads as absent, is reported once, and stays',
  async ({ db, store }, assert) => {
    const found: CorruptJsonColumn[] = []
    onCorruptJsonColumn((report) => {
      found.push(report)
      throw new Error('a reporter may not break a read')
    })
    try {
      await store.createRun(makeRun('r', { output: 'fine', input: { cut: 'x'.repeat(50) } }))
      await store.saveCheckpoint(makeRow('r', 1, { output: 1 }))
      await db.rawQuery(`UPDATE ${T.runs} SET input = substr(input, 1, 20)`)
      await db.rawQuery(`UPDATE ${T.checkpoints} SET output = '{"a":'`)
      for (let read = 0; read < 3; read++) {
        const run = await store.getRun('r')
        assert.isFalse('input' in run!)
        assert.equal(run?.output, 'fine')
        const [row] = await store.listCheckpoints('r')
        assert.deepEqual([row.output, row.name], [undefined, 'step-1'])
      }
      assert.deepEqual(
        found.map(({ table, column, key }) => [table, column, key]),
        [
          [T.runs, 'input', 'r'],
          [T.checkpoints, 'output', 'r:1'],
        ]
      )
      await store.updateRun('r', { priority: 2 })
      const [{ input }] = await db.from(T.runs).select('input')
      assert.equal(input, '{"cut":"xxxxxxxxxxxx')
    } finally {
      onCorruptJsonColumn()
    }
  }
)

await onEachDialect('NUL and half surrogates survive in payloads', async ({ store }, assert) => {
  const nasty = { 'text': '\u0000 \ud800 x \udfff', '\u0000': ['\u0000'] }
  await store.createRun(heldRun('r', { input: nasty }))
  await store.commitTurn({
    ...asTurn('r'),
    rows: [{ row: makeRow('r', 0, { output: nasty }) }, { row: makeRow('r', 1, { input: nasty }) }],
    waits: [makeWait('r', 2, 't')],
    runs: [makeRun('child', { input: nasty })],
  })
  await store.deliverSignal({ token: 't', payload: nasty, nowMs: ms(1), buffer: true })
  const run = await store.getRun('child')
  assert.deepEqual(run?.input, nasty)
  const rows = await store.listCheckpoints('r')
  assert.deepEqual(rows[0].output, nasty)
  assert.deepEqual(rows[2].output, nasty)
})

await onEachDialect(
  'a connection that is being closed answers at once that it is',
  async ({ db, store }, assert) => {
    await store.createRun(makeRun('r'))
    const [inside, gate] = [deferred(), deferred()]
    const open = store.transaction(async () => {
      inside.resolve(undefined)
      await gate.promise
    })
    await inside.promise
    // The pool waits for the transaction.
    const closing = db.manager.closeAll()
    const error = await failureOf(store.getRun('r'))
    assert.instanceOf(error, StoreUnavailableError)
    assert.match(error.message, /is being closed$/)
    gate.resolve(undefined)
    await open
    await closing
  }
)

for (const dialect of ['postgres', 'mysql'] as const) {
  test(`an unreachable database is an unavailable store (${dialect})`, async ({
    assert,
    cleanup,
  }) => {
    const db = openDatabase({ dialect, target: `${dialect}://nobody@127.0.0.1:1/none` })
    cleanup(() => db.manager.closeAll())
    const error = await failureOf(new LucidStateStore(db).getRun('r'))
    assert.instanceOf(error, StoreUnavailableError)
    assert.instanceOf(error.cause, Error)
  })
}
