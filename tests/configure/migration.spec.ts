import { MigrationRunner } from '@adonisjs/lucid/migration'
import type { ApplicationService } from '@adonisjs/core/types'
import { test } from '@japa/runner'
import { writeFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createDurableTables, createDurableTransportTables } from '../../index.ts'
import { bootApp, PACKAGE } from '../adonis/app.ts'

const STUBS = join(import.meta.dirname, '../../stubs')

function sqlite() {
  return {
    client: 'better-sqlite3' as const,
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
    // One connection: whoever holds it while asking for another waits for itself.
    pool: { min: 1, max: 1, acquireTimeoutMillis: 3000 },
  }
}

const MIGRATIONS = [
  'create_durable_tables',
  'create_durable_transport_tables',
  'create_durable_transport_messages',
]

/** An application that published the migrations. */
async function published(): Promise<ApplicationService> {
  const app = await bootApp({
    environment: 'console',
    provider: false,
    lucid: {
      connection: 'main',
      connections: { main: sqlite(), other: sqlite(), booted: sqlite() },
    },
  })
  const stubs = await app.stubs.create()
  await mkdir(app.migrationsPath(), { recursive: true })
  for (const [index, name] of MIGRATIONS.entries()) {
    const stub = await stubs.build(`database/migrations/${name}.stub`, { source: STUBS })
    const fileName = `${index + 1}_${name}.ts`
    const { contents } = await stub.prepare({ migration: { fileName } })
    const local = contents.replace('@adonis-agora/durable', PACKAGE)
    await writeFile(app.migrationsPath(fileName), local)
  }
  return app
}

async function migrate(app: ApplicationService, direction: 'up' | 'down', connectionName: string) {
  const db = await app.container.make('lucid.db')
  const migrator = new MigrationRunner(db, app, { direction, connectionName })
  await migrator.run()
  return migrator
}

async function tablesOf(app: ApplicationService, connection: string): Promise<string[]> {
  const db = await app.container.make('lucid.db')
  const rows = await db
    .connection(connection)
    .from('sqlite_master')
    .where('type', 'table')
    .where('name', 'like', 'durable_%')
    .select('name')
  return rows.map(({ name }) => name).sort()
}

test.group('Migration', (group) => {
  group.tap((t) => t.timeout(30_000))

  // One application for all of it: the service module that the migration imports belongs to the first.
  test('makes and drops the tables of its connection, with a pool of one', async ({ assert }) => {
    const app = await published()
    for (const connection of ['main', 'other']) {
      const up = await migrate(app, 'up', connection)
      assert.isNull(up.error)
      assert.equal(up.status, 'completed')
      const made = [
        'durable_workflow_runs',
        'durable_transport_tasks',
        'durable_transport_messages',
      ]
      assert.includeMembers(await tablesOf(app, connection), made)
    }
    await migrate(app, 'down', 'main')
    assert.deepEqual(await tablesOf(app, 'main'), [])
    assert.include(await tablesOf(app, 'other'), 'durable_workflow_runs')

    // An application that provisioned at boot before its first migration.
    const db = await app.container.make('lucid.db')
    await createDurableTables(db, 'booted')
    await createDurableTransportTables(db, 'booted')
    const before = await tablesOf(app, 'booted')
    const up = await migrate(app, 'up', 'booted')
    assert.isNull(up.error)
    assert.deepEqual(await tablesOf(app, 'booted'), before)
  })
})
