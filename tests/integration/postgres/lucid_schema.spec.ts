/*
 * What only Postgres has of the schema: collations, lengths, search paths.
 */
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDurableTables } from '../../../src/store/lucid/schema/ensure.ts'
import { DURABLE_TABLES } from '../../../src/store/lucid/schema/tables.ts'
import { backend } from '../../helpers/backends.ts'
import { createDatabase } from '../../helpers/databases.ts'
import { makeRow } from '../../store/lucid/support.ts'

const present = (await backend('postgres')) !== null

test.group('Lucid schema | Postgres', (group) => {
  group.each.timeout(30_000)
  group.each.skip(!present, 'no Postgres')

  test('text columns compare by code point, whatever the collation of the database', async ({
    assert,
    cleanup,
  }) => {
    const { db, location, cleanup: drop } = await createDatabase('postgres')
    cleanup(drop)
    await createDurableTables(db)
    const { rows } = await db.rawQuery(
      `SELECT table_name, column_name, collation_name FROM information_schema.columns
       WHERE table_schema = ? AND data_type = 'character varying'`,
      [location.schema!]
    )
    assert.isAbove(rows.length, 20)
    for (const row of rows) assert.equal(row.collation_name, 'C', JSON.stringify(row))
  })

  test('names and step ids hold 512 characters, also where an older table held 255', async ({
    assert,
    cleanup,
  }) => {
    const { db, cleanup: drop } = await createDatabase('postgres')
    cleanup(drop)
    await createDurableTables(db)
    for (const column of ['name', 'step_id']) {
      await db.rawQuery(
        `ALTER TABLE ${DURABLE_TABLES.checkpoints} ALTER COLUMN ${column} TYPE varchar(255)`
      )
    }
    const store = new LucidStateStore(db)
    // Its plan is kept; the widened column must not invalidate it for good.
    await store.saveCheckpoint(makeRow('r', 1))
    await store.getCheckpoint('r', 1)
    await createDurableTables(db, undefined, { force: true })
    const [name, stepId] = ['n'.repeat(512), 's'.repeat(512)]
    await store.saveCheckpoint(makeRow('r', 2, { name, stepId }))
    const row = await store.getCheckpoint('r', 2)
    assert.deepEqual([row?.name, row?.stepId], [name, stepId])
    const kept = await store.getCheckpoint('r', 1)
    assert.equal(kept?.seq, 1)
  })

  test('tables are found through the search path', async ({ assert, cleanup }) => {
    const { db, location, cleanup: drop } = await createDatabase('postgres')
    cleanup(drop)
    await createDurableTables(db)
    const { rows } = await db.rawQuery(
      `SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = ? AND tablename LIKE 'durable%'`,
      [location.schema!]
    )
    assert.equal(rows[0].tables, Object.keys(DURABLE_TABLES).length + 1)
  })
})
