/*
 * The tables of the db transport: who makes them, what is said when they are missing, and how they go.
 */
import { test } from '@japa/runner'
import type { Database } from '@adonisjs/lucid/database'
import { takeInventory } from '../../../src/sql/ddl.ts'
import { Session } from '../../../src/sql/session.ts'
import { DbTransport } from '../../../src/transport/db/db_transport.ts'
import {
  createDurableTransportTables,
  dropDurableTransportTables,
} from '../../../src/transport/db/schema.ts'
import { TRANSPORT_SCHEMA, TRANSPORT_TABLES as T } from '../../../src/transport/db/tables.ts'
import type { RemoteTask } from '../../../src/wire/messages.ts'
import { createDatabase, reachableDialects } from '../../helpers/databases.ts'

const TASK: RemoteTask = {
  runId: 'r',
  seq: 0,
  name: 'work',
  stepId: 'r:0',
  group: 'work',
  input: 1,
  attempt: 1,
}
const NAMES = Object.values(T)

async function tablesOf(db: Database): Promise<string[]> {
  const { tables } = await takeInventory(new Session(db), TRANSPORT_SCHEMA)
  return NAMES.filter((name) => tables.has(name))
}

for (const dialect of await reachableDialects()) {
  test.group(`Tables of the db transport | ${dialect}`, (group) => {
    group.each.timeout(30_000)

    const setUp = async (cleanup: (fn: () => Promise<void>) => void) => {
      const { db, cleanup: drop } = await createDatabase(dialect)
      const opened: DbTransport[] = []
      cleanup(async () => {
        for (const transport of opened) await transport.close()
        await drop()
      })
      const open = (autoCreate?: boolean) => {
        const transport = new DbTransport({ db, autoCreate, closeTimeoutMs: 300 })
        opened.push(transport)
        return transport
      }
      const tasks = async () => {
        const rows = await db.query().from(T.tasks).select('step_id')
        return rows.length
      }
      return { db, open, tasks }
    }

    test('the first dispatch makes them', async ({ assert, cleanup }) => {
      const { db, open, tasks } = await setUp(cleanup)
      const transport = open()
      assert.deepEqual(await tablesOf(db), [])
      await transport.dispatch(TASK)
      assert.deepEqual(await tablesOf(db), NAMES)
      assert.equal(await tasks(), 1)
    })

    test('with autoCreate: false a dispatch names what is missing, makes nothing, and works once it is there', async ({
      assert,
      cleanup,
    }) => {
      const { db, open, tasks } = await setUp(cleanup)
      const transport = open(false)
      const refused = async () => {
        const error = await transport.dispatch(TASK).catch((reason: unknown) => reason)
        assert.propertyVal(error, 'code', 'transport_tables_missing')
        return (error as Error).message
      }
      const bare = await refused()
      for (const name of NAMES) assert.include(bare, `the table ${name}`)
      assert.include(bare, 'run a migration that calls createDurableTransportTables')
      assert.deepEqual(await tablesOf(db), [])
      await createDurableTransportTables(db)
      await db.rawQuery(`ALTER TABLE ${T.tasks} DROP COLUMN priority`).catch(async () => {
        // SQLite keeps a column that an index names.
        await db.rawQuery('DROP INDEX durable_transport_tasks_free_idx')
        await db.rawQuery(`ALTER TABLE ${T.tasks} DROP COLUMN priority`)
      })
      await db.rawQuery(
        `DROP INDEX durable_transport_heartbeats_idx${dialect === 'mysql' ? ` ON ${T.heartbeats}` : ''}`
      )
      const damaged = await refused()
      assert.include(damaged, `the column ${T.tasks}.priority`)
      assert.include(damaged, 'the index durable_transport_heartbeats_idx')
      assert.notInclude(damaged, 'the table')
      await createDurableTransportTables(db, undefined, { logger: { warn: () => {} } })
      await transport.dispatch(TASK)
      assert.equal(await tasks(), 1)
    })

    test('dropDurableTransportTables removes them and nothing else, as often as it is called', async ({
      assert,
      cleanup,
    }) => {
      const { db, open, tasks } = await setUp(cleanup)
      await db.rawQuery('CREATE TABLE durable_transport_of_the_application (id integer)')
      await open().dispatch(TASK)
      for (let i = 0; i < 2; i++) {
        await dropDurableTransportTables(db)
        assert.deepEqual(await tablesOf(db), [])
      }
      assert.deepEqual(
        await db.query().from('durable_transport_of_the_application').select('*'),
        []
      )
      await createDurableTransportTables(db)
      assert.deepEqual(await tablesOf(db), NAMES)
      assert.equal(await tasks(), 0)
    })
  })
}
