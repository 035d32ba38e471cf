/*
 * Provisioning of the `db` transport: additive, safe in every process at every boot, two reads when
 * nothing is missing. Always on the connection that the transport uses.
 */
import type { Database } from '@adonisjs/lucid/database'
import { DurableError } from '../../foundation/failure.ts'
import { collationsOf, dropTable, indexesOf, type Inventory, takeInventory } from '../../sql/ddl.ts'
import {
  completeTables,
  consoleLogger,
  repairMessage,
  underSchemaLock,
} from '../../sql/provision.ts'
import { Session } from '../../sql/session.ts'
import type { Table } from '../../sql/table.ts'
import { TRANSPORT_SCHEMA, TRANSPORT_TABLES } from './tables.ts'

export interface TransportTablesOptions {
  /** Told once, in one message, about columns that an existing table lacked. Default: the console. */
  logger?: { warn(message: string): void }
}

/**
 * Creates what is missing of the tables, columns and indexes of the `db` transport. Idempotent and
 * additive; never touches another table. Throws `StoreUnavailableError` when the database cannot be
 * reached. See docs/transports/db.md.
 */
export async function createDurableTransportTables(
  db: Database,
  connectionName?: string,
  options: TransportTablesOptions = {}
): Promise<void> {
  await complete(new Session(db, connectionName), TRANSPORT_SCHEMA, options)
}

/** The same for the one table that other transports share: the keys of workers. */
export async function createWorkerKeysTable(
  session: Session,
  options: TransportTablesOptions = {}
): Promise<void> {
  const only = TRANSPORT_SCHEMA.filter(({ name }) => name === TRANSPORT_TABLES.workerKeys)
  await complete(session, only, options)
}

async function complete(
  session: Session,
  tables: readonly Table[],
  { logger = consoleLogger }: TransportTablesOptions
): Promise<void> {
  if (missingOf(session, tables, await takeInventory(session, tables)).length === 0) return
  const warn = (message: string) => logger.warn(message)
  const repaired = await underSchemaLock(session, { name: 'transport', warn }, async (sql) => {
    const inventory = await takeInventory(sql, tables)
    const collations = sql.dialect.name === 'mysql' ? await collationsOf(sql, undefined) : undefined
    return completeTables({ sql, tables, inventory, collations, warn })
  })
  if (repaired.length > 0) warn(repairMessage(repaired))
}

/** Removes every table of the `db` transport, and with them tasks and results on their way. */
export async function dropDurableTransportTables(
  db: Database,
  connectionName?: string
): Promise<void> {
  const session = new Session(db, connectionName)
  await underSchemaLock(session, { name: 'transport', ...consoleLogger }, async (sql) => {
    for (const table of TRANSPORT_SCHEMA) await sql.adhoc(dropTable(table.name), [])
  })
}

/** For `autoCreate: false`: throws with what is missing, and what to run. */
export async function assertTransportTables(session: Session): Promise<void> {
  const inventory = await takeInventory(session, TRANSPORT_SCHEMA)
  const missing = missingOf(session, TRANSPORT_SCHEMA, inventory)
  if (missing.length === 0) return
  throw new DurableError(
    `the db transport misses ${missing.join(', ')}: run a migration that calls ` +
      'createDurableTransportTables, or leave out autoCreate: false',
    { code: 'transport_tables_missing' }
  )
}

function missingOf(
  { dialect }: Session,
  schema: readonly Table[],
  { tables, indexes }: Inventory
): string[] {
  return schema.flatMap((table) => {
    const columns = tables.get(table.name)
    if (!columns) return [`the table ${table.name}`]
    return [
      ...table.columns
        .filter(({ name }) => !columns.has(name))
        .map(({ name }) => `the column ${table.name}.${name}`),
      ...indexesOf(dialect.name, table)
        .filter(({ name }) => !indexes.has(name))
        .map(({ name }) => `the index ${name}`),
    ]
  })
}
