/*
 * Databases made by every earlier revision of the schema, kept in tests/fixtures/schema as
 * `<dialect>.<revision>.sql`, come to the current one with their data. A revision that has no fixture yet is
 * written by `WRITE_SCHEMA=1`; one that is there is never written again.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createIndex, createTable, indexesOf } from '../../../src/sql/ddl.ts'
import { DURABLE_SCHEMA_REVISION } from '../../../src/store/lucid/schema/revision.ts'
import {
  DURABLE_SCHEMA_META_TABLE,
  DURABLE_TABLES as T,
  SCHEMA,
} from '../../../src/store/lucid/schema/tables.ts'
import { catalogue } from '../../helpers/catalogue.ts'
import { createDatabase, type Dialect, reachableDialects } from '../../helpers/databases.ts'

const FOLDER = join(import.meta.dirname, '../../fixtures/schema')
/** In the place of collations, which a MySQL and a MariaDB call by other names. */
const COLLATIONS = { exact: '{exact}', table: '{table}' }

function currentDdl(dialect: Dialect): string {
  const statements = SCHEMA.flatMap((table) => [
    createTable(dialect, table, COLLATIONS),
    ...indexesOf(dialect, table).map((index) => createIndex(dialect, table, index)),
  ])
  return statements.map((statement) => `${statement};\n`).join('')
}

/** What is never taken from a database: indexes that others replaced, a length that is of no account. */
const REPLACED =
  /_(runs_(status|namespace|workflow|lease)|checkpoints_name|run_attributes_(num|str))_idx/
const stays = (dialect: Dialect, line: string): boolean =>
  REPLACED.test(line) || (dialect !== 'mysql' && line.includes('_runs.status '))

const fileOf = (dialect: Dialect, revision: number) => join(FOLDER, `${dialect}.${revision}.sql`)

function revisionsOf(dialect: Dialect): number[] {
  const names = readdirSync(FOLDER).filter((name) => name.startsWith(`${dialect}.`))
  return names.map((name) => Number(name.split('.')[1])).sort((a, b) => a - b)
}

for (const dialect of ['sqlite', 'postgres', 'mysql'] as const) {
  test(`the DDL of the current revision is kept (${dialect})`, ({ assert }) => {
    const file = fileOf(dialect, DURABLE_SCHEMA_REVISION)
    if (process.env.WRITE_SCHEMA && !existsSync(file)) writeFileSync(file, currentDdl(dialect))
    assert.equal(
      readFileSync(file, 'utf8'),
      currentDdl(dialect),
      'a change of the DDL needs a new DURABLE_SCHEMA_REVISION'
    )
  })
}

for (const dialect of await reachableDialects()) {
  for (const revision of revisionsOf(dialect)) {
    test(`revision ${revision} comes to the current one with its data (${dialect})`, async ({
      assert,
      cleanup,
    }) => {
      const database = await createDatabase(dialect)
      const fresh = await createDatabase(dialect)
      cleanup(database.cleanup)
      cleanup(fresh.cleanup)
      const { db } = database
      const maria = dialect === 'mysql' && /maria/i.test(JSON.stringify(await db.rawQuery('SELECT version()'))) // prettier-ignore
      const exact = maria ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
      for (const line of readFileSync(fileOf(dialect, revision), 'utf8').trim().split('\n')) {
        const text = line.replace(/;$/, '').replace(/\{\w+\}/g, exact)
        await db.rawQuery(dialect === 'mysql' ? text.replaceAll('"', '`') : text)
      }
      await db.table(DURABLE_SCHEMA_META_TABLE).insert({
        id: 'durable',
        fingerprint: `of revision ${revision}`,
        applied_at: 1,
      })
      await db.table(T.runs).insert({
        id: 'r',
        workflow: 'w',
        workflow_version: '1',
        status: 'suspended',
        input: '{"n":1}',
        tags: '["t"]',
        created_at: 1,
        updated_at: 2,
      })
      await db.table(T.checkpoints).insert({
        run_id: 'r',
        seq: 0,
        name: 'first',
        kind: 'local',
        step_id: 'r:0',
        status: 'completed',
        output: '"done"',
        attempts: 1,
        started_at: 1,
        finished_at: 2,
      })
      await db.table(T.attributes).insert({ run_id: 'r', key: 'size', num_value: 3 })
      await db.table(T.signalWaiters).insert({ token: 'go', run_id: 'r', seq: 1 })
      await db.table(T.bufferedSignals).insert({ token: 'early', payload: '"kept"' })
      await db
        .table(T.bufferedEvents)
        .insert({ id: 'e', name: 'paid', payload: '2', published_at: 1 })
      await db.table(T.schedules).insert({
        id: 's',
        workflow: 'w',
        spec: '{"cron":"x"}',
        created_at: 1,
        updated_at: 1,
      })

      const warnings: string[] = []
      const logger = { warn: (message: string) => void warnings.push(message) }
      const store = new LucidStateStore(db, { logger })
      await store.ensureSchema()
      await new LucidStateStore(fresh.db).ensureSchema()
      const [upgraded, wanted] = [await catalogue(database), await catalogue(fresh)]
      const missing = wanted.filter((line) => !upgraded.includes(line) && !stays(dialect, line))
      const left = upgraded.filter((line) => !wanted.includes(line) && !stays(dialect, line))
      assert.deepEqual({ missing, left }, { missing: [], left: [] })
      const current = revision === DURABLE_SCHEMA_REVISION
      assert.lengthOf(warnings, current ? 0 : 1, warnings.join('\n'))

      const run = await store.getRun('r')
      assert.deepInclude(run, { input: { n: 1 }, tags: ['t'], status: 'suspended' })
      const [row] = await store.listCheckpoints('r')
      assert.equal(row.output, 'done')
      const found = await store.listRuns({
        attributes: [{ key: 'size', op: 'eq', value: 3 }],
        createdAfter: 0,
        size: 5,
      })
      assert.lengthOf(found, 1)
      const waiter = await store.takeSignalWaiter('go')
      assert.deepInclude(waiter, { runId: 'r', seq: 1 })
      assert.deepEqual(await store.takeBufferedSignal('early'), { payload: 'kept' })
      const events = await store.listBufferedEvents('paid', 5)
      assert.lengthOf(events, 1)
      const schedule = await store.getSchedule('s')
      assert.deepEqual(schedule?.spec, { cron: 'x' })
      await store.ensureSchema()
      assert.lengthOf(warnings, current ? 0 : 1)
    }).timeout(30_000)
  }
}
