import { test } from '@japa/runner'
import { countStatements, createDatabase, openDatabase, reachableDialects } from './databases.ts'

for (const dialect of await reachableDialects()) {
  test.group(`databases | ${dialect}`, () => {
    test('two databases never see each other, and nothing is left after cleanup', async ({
      assert,
    }) => {
      const [one, two] = await Promise.all([createDatabase(dialect), createDatabase(dialect)])
      await one.db.rawQuery('create table notes (id integer primary key, text varchar(20))')
      await one.db.table('notes').insert({ id: 1, text: 'first' })

      assert.isTrue(await one.db.connection().schema.hasTable('notes'))
      assert.isFalse(await two.db.connection().schema.hasTable('notes'))

      await Promise.all([one.cleanup(), two.cleanup()])
      const gone = openDatabase(one.location)
      await assert.rejects(() => gone.from('notes').select('*'))
      await gone.manager.closeAll()
    })

    test('a further connection and another process reach the same data', async ({
      assert,
      cleanup,
    }) => {
      const database = await createDatabase(dialect)
      cleanup(() => database.cleanup())
      await database.db.rawQuery('create table notes (id integer primary key)')
      await database.db.table('notes').insert({ id: 7 })

      assert.lengthOf(await database.connect().from('notes'), 1)
      const elsewhere = openDatabase(JSON.parse(JSON.stringify(database.location)))
      assert.lengthOf(await elsewhere.from('notes'), 1)
      await elsewhere.manager.closeAll()
    })

    test('every statement is counted, transactions and savepoints included', async ({
      assert,
      cleanup,
    }) => {
      const { db, connectionName, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await db.rawQuery('create table notes (id integer primary key)')
      const statements = countStatements(db, connectionName)

      await db.table('notes').insert({ id: 1 })
      assert.equal(statements.count, 1, statements.texts.join('\n'))

      statements.reset()
      await db.transaction(async (trx) => {
        await trx.table('notes').insert({ id: 2 })
        await trx.from('notes').select('id')
      })
      assert.lengthOf(statements.texts, 4, statements.texts.join('\n'))
      assert.match(statements.texts[0], /^begin/i)
      assert.match(statements.texts[3], /^commit/i)

      statements.reset()
      await db.transaction(async (trx) => {
        const inner = await trx.transaction()
        await inner.table('notes').insert({ id: 3 })
        await inner.rollback()
      })
      assert.lengthOf(statements.texts, 5, statements.texts.join('\n'))

      statements.reset()
      statements.stop()
      await db.from('notes').select('id')
      assert.equal(statements.count, 0)
    })
  })
}

test.group('databases | sqlite files', () => {
  test('a database in memory needs no file', async ({ assert, cleanup }) => {
    const { db, location, cleanup: drop } = await createDatabase('sqlite', { memory: true })
    cleanup(drop)
    assert.equal(location.target, ':memory:')
    await db.rawQuery('create table notes (id integer primary key)')
    await db.table('notes').insert({ id: 1 })
    assert.lengthOf(await db.from('notes'), 1)
  })

  test('a file is opened in WAL mode', async ({ assert, cleanup }) => {
    const { db, cleanup: drop } = await createDatabase('sqlite')
    cleanup(drop)
    const [{ journal_mode: mode }] = await db.rawQuery('pragma journal_mode')
    assert.equal(mode, 'wal')
  })
})
