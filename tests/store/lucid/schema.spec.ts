/*
 * Provisioning: what a fresh database, a current one, an older one and many processes at once come to.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDurableTables, dropDurableTables } from '../../../src/store/lucid/schema/ensure.ts'
import {
  DURABLE_JSON_COLUMNS,
  DURABLE_SCHEMA_META_TABLE,
  DURABLE_TABLES,
  SCHEMA,
} from '../../../src/store/lucid/schema/tables.ts'
import { collationsOf, indexesOf, takeInventory } from '../../../src/sql/ddl.ts'
import { Session } from '../../../src/sql/session.ts'
import {
  countStatements,
  createDatabase,
  type DatabaseLocation,
  reachableDialects,
} from '../../helpers/databases.ts'
import { makeRun } from './support.ts'

function recorder() {
  const warnings: string[] = []
  return { warnings, logger: { warn: (message: string) => void warnings.push(message) } }
}

/** Provisions from as many processes at once; answers the warnings of each. */
function forkBoots(count: number, location: DatabaseLocation): Promise<number[]> {
  const boot = async () => {
    const child = fork(new URL('./boot_child.ts', import.meta.url))
    child.send(location)
    const [warnings] = await once(child, 'message')
    await once(child, 'exit')
    return warnings as number
  }
  return Promise.all(Array.from({ length: count }, boot))
}

for (const dialect of await reachableDialects()) {
  test.group(`Lucid schema | ${dialect}`, (group) => {
    group.each.timeout(30_000)

    test('a fresh database gets every table, column and index, and no warning', async ({
      assert,
      cleanup,
    }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      const { warnings, logger } = recorder()
      await createDurableTables(db, undefined, { logger })
      const { tables, indexes } = await takeInventory(new Session(db), SCHEMA)
      for (const table of SCHEMA) {
        const columns = [...(tables.get(table.name)?.keys() ?? [])]
        assert.sameMembers(
          columns,
          table.columns.map((column) => column.name),
          table.name
        )
        for (const { name } of indexesOf(dialect, table)) assert.isTrue(indexes.has(name), name)
      }
      assert.deepEqual(warnings, [])
    })

    test('a boot over a current schema sends two statements', async ({ assert, cleanup }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      const store = new LucidStateStore(db)
      await store.ensureSchema()
      const counter = countStatements(db)
      await store.ensureSchema()
      assert.equal(counter.count, 2, counter.texts.join('\n'))
      counter.stop()
    })

    test('missing columns and indexes are added, with one warning; the rows stay', async ({
      assert,
      cleanup,
    }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await createDurableTables(db)
      const store = new LucidStateStore(db)
      await store.createRun(makeRun('kept'))
      await db.rawQuery(
        `DROP INDEX durable_runs_deadline_idx${dialect === 'mysql' ? ` ON ${DURABLE_TABLES.runs}` : ''}`
      )
      await db.rawQuery(`ALTER TABLE ${DURABLE_TABLES.runs} DROP COLUMN deadline_at`)
      await db.rawQuery(`ALTER TABLE ${DURABLE_TABLES.checkpoints} DROP COLUMN max_attempts`)
      await db.rawQuery(`DELETE FROM ${DURABLE_SCHEMA_META_TABLE}`)

      const { warnings, logger } = recorder()
      await createDurableTables(db, undefined, { logger })
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0], 'durable_workflow_runs.deadline_at')
      assert.include(warnings[0], 'durable_step_checkpoints.max_attempts')
      assert.include(warnings[0], 'node ace migration:run')
      const { tables, indexes } = await takeInventory(new Session(db), SCHEMA)
      assert.isTrue(tables.get(DURABLE_TABLES.runs)!.has('deadline_at'))
      assert.isTrue(indexes.has('durable_runs_deadline_idx'))
      const kept = await store.getRun('kept')
      assert.equal(kept?.workflow, 'orders')

      await createDurableTables(db, undefined, { logger })
      assert.lengthOf(warnings, 1)
    })

    test('a change behind the marker is found with `force` only', async ({ assert, cleanup }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await createDurableTables(db)
      await db.rawQuery(`ALTER TABLE ${DURABLE_TABLES.runs} DROP COLUMN priority`)
      const { warnings, logger } = recorder()
      await createDurableTables(db, undefined, { logger })
      assert.deepEqual(warnings, [])
      await createDurableTables(db, undefined, { logger, force: true })
      assert.lengthOf(warnings, 1)
    })

    test('a marker that cannot be read counts as stale', async ({ assert, cleanup }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await db.rawQuery(`CREATE TABLE ${DURABLE_SCHEMA_META_TABLE} (id varchar(32) PRIMARY KEY)`)
      const { warnings, logger } = recorder()
      await createDurableTables(db, undefined, { logger })
      await new LucidStateStore(db).createRun(makeRun('r'))
      assert.include(warnings[0], 'durable_schema_meta.fingerprint')
      const counter = countStatements(db)
      await createDurableTables(db)
      assert.equal(counter.count, 2)
      counter.stop()
    })

    test('a row without a namespace in a table made by hand becomes a default one', async ({
      assert,
      cleanup,
    }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await db.rawQuery(
        `CREATE TABLE ${DURABLE_TABLES.runs} (id varchar(255) PRIMARY KEY,
           workflow varchar(255) NOT NULL, workflow_version varchar(255) NOT NULL,
           status varchar(255) NOT NULL, namespace varchar(255),
           created_at bigint NOT NULL, updated_at bigint NOT NULL)`
      )
      await db.rawQuery(
        `INSERT INTO ${DURABLE_TABLES.runs} VALUES ('old', 'w', '1', 'pending', NULL, 1, 1)`
      )
      const { warnings, logger } = recorder()
      await createDurableTables(db, undefined, { logger })
      assert.lengthOf(warnings, 1)
      const runs = await new LucidStateStore(db).listPendingRuns(5, 'default')
      assert.deepEqual(
        runs.map(({ id, namespace }) => [id, namespace]),
        [['old', 'default']]
      )
    })

    test('processes that boot at once: one creates, nobody fails, nobody warns', async ({
      assert,
      cleanup,
    }) => {
      const { connect, location, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      const warnings = await forkBoots(dialect === 'sqlite' ? 4 : 10, location)
      assert.deepEqual(warnings, warnings.fill(0))
      await new LucidStateStore(connect()).createRun(makeRun('r'))
      const run = await new LucidStateStore(connect()).getRun('r')
      assert.equal(run?.id, 'r')
    })

    if (dialect === 'mysql') {
      test('a table with another collation and shorter columns is brought into line', async ({
        assert,
        cleanup,
      }) => {
        const { db, cleanup: drop } = await createDatabase(dialect)
        cleanup(drop)
        await createDurableTables(db)
        const exact = await collationsOf(new Session(db), undefined)
        await db.rawQuery(
          `ALTER TABLE ${DURABLE_TABLES.runs} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`
        )
        await db.rawQuery(`ALTER TABLE ${DURABLE_TABLES.runs} MODIFY COLUMN output text`)
        const collation = 'utf8mb4_unicode_ci'
        const { warnings, logger } = recorder()
        await createDurableTables(db, undefined, { logger, collation })
        const { tables, collations } = await takeInventory(new Session(db), SCHEMA)
        const columns = tables.get(DURABLE_TABLES.runs)!
        assert.equal(collations.get(DURABLE_TABLES.runs), collation)
        assert.equal(columns.get('id')?.collation, exact.exact)
        assert.deepEqual(columns.get('output'), { length: 2 ** 32 - 1, collation })
        assert.deepEqual(warnings, [])
        const store = new LucidStateStore(db)
        for (const id of ['run', 'Run', 'run ', 'rün']) await store.createRun(makeRun(id))
        const run = await store.getRun('Run')
        assert.equal(run?.id, 'Run')
      })
    }

    test('dropping removes everything, and creating begins anew', async ({ assert, cleanup }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      await db.rawQuery('CREATE TABLE of_the_application (id integer)')
      await createDurableTables(db)
      await new LucidStateStore(db).createRun(makeRun('r'))
      await dropDurableTables(db)
      await dropDurableTables(db)
      const { tables } = await takeInventory(new Session(db), SCHEMA)
      assert.equal(tables.size, 0)
      await db.rawQuery('SELECT * FROM of_the_application')
      await createDurableTables(db)
      assert.isNull(await new LucidStateStore(db).getRun('r'))
    })

    test('the listed JSON columns are those of the schema, as text', async ({ assert }) => {
      const listed = Object.entries(DURABLE_JSON_COLUMNS).flatMap(([table, columns]) =>
        columns.map((column) => `${table}.${column}`)
      )
      const described = SCHEMA.flatMap((table) =>
        table.columns
          .filter((column) => column.type === 'json')
          .map((column) => `${table.name}.${column.name}`)
      )
      assert.sameMembers(listed, described)
    })

    test('a collation must be a plain word', async ({ assert, cleanup }) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      cleanup(drop)
      const create = () => createDurableTables(db, undefined, { collation: 'a; DROP TABLE b' })
      await assert.rejects(create, /letters, digits and underscores/)
    })
  })
}
