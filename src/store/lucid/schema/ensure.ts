/*
 * Provisioning: additive, safe to run in every process at every boot, and two reads when nothing is to do.
 * The full check runs under a lock in one transaction with the DDL, and the marker is written last: an
 * interrupted run repeats, a concurrent one waits and finds the work done.
 */
import type { Database } from '@adonisjs/lucid/database'
import { InvalidArgumentError } from '../../../errors.ts'
import { systemClock } from '../../../foundation/clock.ts'
import { Session, type Sql } from '../session.ts'
import {
  addColumn,
  createIndex,
  createTable,
  dropTable,
  type Inventory,
  takeInventory,
  widenColumn,
} from './ddl.ts'
import { fingerprint, readMarker, writeMarker } from './revision.ts'
import { DURABLE_SCHEMA_META_TABLE, DURABLE_TABLES, SCHEMA, type Table } from './tables.ts'

export interface ProvisionOptions {
  /** Told once, in one message, about columns that an existing table lacked. Default: the console. */
  logger?: { warn(message: string): void }
  /** MySQL and MariaDB only. */
  collation?: string
  /** Check everything, whatever the marker says. */
  force?: boolean
}

/**
 * Creates what is missing of the durable tables, columns and indexes. Idempotent and additive; never
 * touches a table of the application.
 */
export async function createDurableTables(
  db: Database,
  connectionName?: string,
  options: ProvisionOptions = {}
): Promise<void> {
  const { collation, force = false } = options
  if (collation !== undefined && !/^[A-Za-z0-9_]+$/.test(collation)) {
    throw new InvalidArgumentError('collation', 'may hold letters, digits and underscores only')
  }
  const session = new Session(db, connectionName)
  const wanted = fingerprint(session.dialect.name, collation)
  if (!force && (await knownMarker(session)) === wanted) return
  const repaired = await session.atomically(async (sql) => {
    await lockSchema(sql)
    const inventory = await takeInventory(sql)
    if (!force && hasMarker(inventory) && (await readMarker(sql)) === wanted) return []
    const added = await complete(sql, inventory)
    await writeMarker(sql, wanted, systemClock())
    return added
  })
  if (repaired.length > 0) (options.logger ?? consoleLogger).warn(repairMessage(repaired))
}

/** Removes every durable table, and with them every run. */
export async function dropDurableTables(db: Database, connectionName?: string): Promise<void> {
  const session = new Session(db, connectionName)
  await session.atomically(async (sql) => {
    await lockSchema(sql)
    for (const table of SCHEMA) await sql.adhoc(dropTable(table.name), [])
  })
}

/** A marker that cannot be read counts as none: the check under the lock will tell. */
async function knownMarker(session: Session): Promise<string | undefined> {
  try {
    return await readMarker(session)
  } catch {
    return undefined
  }
}

/** SQLite has its write lock already. */
async function lockSchema(sql: Sql): Promise<void> {
  if (sql.dialect.name !== 'postgres') return
  await sql.adhoc(
    `SELECT pg_advisory_xact_lock(hashtext('durable_schema'), hashtext(current_schema()))`,
    []
  )
}

const hasMarker = (inventory: Inventory): boolean =>
  inventory.tables.get(DURABLE_SCHEMA_META_TABLE)?.has('fingerprint') ?? false

/** Brings every table to its described form; answers the columns added to tables that existed. */
async function complete(sql: Sql, inventory: Inventory): Promise<string[]> {
  const added: string[] = []
  for (const table of SCHEMA) {
    const columns = inventory.tables.get(table.name)
    if (columns) added.push(...(await repair(sql, table, columns)))
    else await sql.adhoc(createTable(sql.dialect.name, table), [])
    for (const index of table.indexes) {
      if (!inventory.indexes.has(index.name)) await sql.adhoc(createIndex(table, index), [])
    }
  }
  return added
}

async function repair(
  sql: Sql,
  table: Table,
  columns: Map<string, number | undefined>
): Promise<string[]> {
  const added: string[] = []
  for (const column of table.columns) {
    if (!columns.has(column.name)) {
      await sql.adhoc(addColumn(sql.dialect.name, table, column), [])
      added.push(`${table.name}.${column.name}`)
      continue
    }
    const widen = widenColumn(sql.dialect.name, table, column, columns.get(column.name))
    if (widen) await sql.adhoc(widen, [])
  }
  if (table.name === DURABLE_TABLES.runs) {
    // A column made by hand may allow NULL; every predicate takes the namespace as given.
    await sql.adhoc(
      `UPDATE "${table.name}" SET "namespace" = 'default' WHERE "namespace" IS NULL`,
      []
    )
  }
  return added
}

const repairMessage = (columns: string[]): string =>
  `The durable tables were made by another version: added ${columns.join(', ')}. ` +
  'To keep schema changes in migrations, run `node ace migration:run` when deploying.'

// eslint-disable-next-line no-console -- the documented default; an application passes its logger
const consoleLogger = { warn: (message: string) => console.warn(message) }
