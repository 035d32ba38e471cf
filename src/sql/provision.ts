/*
 * Bringing tables to their described form: additive, in any number of processes at once. On SQLite and
 * Postgres it happens in one transaction; DDL of MySQL commits, so there it happens under a named lock.
 */
import { messageOf } from '../foundation/failure.ts'
import {
  addColumn,
  alterColumns,
  type Collations,
  createIndex,
  createTable,
  indexesOf,
  type Inventory,
} from './ddl.ts'
import { underName } from './named_lock.ts'
import type { Session, Sql } from './session.ts'
import type { Table } from './table.ts'

/** How long one process waits for another, in seconds. */
const PATIENCE = 60

export interface SchemaLock {
  /** Of the set of tables; at most 16 characters. */
  name: string
  warn(message: string): void
}

/** Runs `work` while no other process provisions the same set of tables of this schema. */
export function underSchemaLock<T>(
  session: Session,
  { name, warn }: SchemaLock,
  work: (sql: Sql) => Promise<T>
): Promise<T> {
  if (session.dialect.name === 'mysql') {
    return session.pinned((sql) =>
      underName(sql, `durable:${name}:`, PATIENCE, (locked) => {
        // What it would keep apart is additive.
        if (!locked)
          warn('The lock on the durable tables could not be had; they are checked without.')
        return work(sql)
      })
    )
  }
  return session.atomically(async (sql) => {
    if (sql.dialect.name === 'postgres') await sql.adhoc(ADVISORY_LOCK, [`durable_${name}`])
    return work(sql)
  })
}

const ADVISORY_LOCK = `SELECT pg_advisory_xact_lock(hashtext(?), hashtext(current_schema()))`

export interface Provisioning {
  sql: Sql
  tables: readonly Table[]
  inventory: Inventory
  /** MySQL only. */
  collations?: Collations
  /** By table: a statement that completes rows which were there before its columns. */
  completing?: Readonly<Record<string, string>>
  warn(message: string): void
}

/** Creates what is missing; answers the columns added to tables that existed. */
export async function completeTables(provisioning: Provisioning): Promise<string[]> {
  const { sql, tables, inventory, collations } = provisioning
  const { name } = sql.dialect
  const added: string[] = []
  for (const table of tables) {
    if (inventory.tables.has(table.name)) added.push(...(await repairTable(provisioning, table)))
    else await sql.adhoc(createTable(name, table, collations), [])
    for (const index of indexesOf(name, table)) {
      if (!inventory.indexes.has(index.name)) await sql.adhoc(createIndex(name, table, index), [])
    }
  }
  return added
}

async function repairTable(provisioning: Provisioning, table: Table): Promise<string[]> {
  const { sql, inventory, collations, completing = {} } = provisioning
  const columns = inventory.tables.get(table.name)!
  const added: string[] = []
  for (const column of table.columns) {
    if (columns.has(column.name)) continue
    await sql.adhoc(addColumn(sql.dialect.name, table, column, collations), [])
    added.push(`${table.name}.${column.name}`)
  }
  if (completing[table.name]) await sql.adhoc(completing[table.name], [])
  await alter(provisioning, table)
  return added
}

/** On MySQL columns may hold what a stricter one cannot: that is told, and the rest goes on. */
async function alter(provisioning: Provisioning, table: Table): Promise<void> {
  const { sql, inventory, collations, warn } = provisioning
  const ddl = alterColumns(sql.dialect.name, table, inventory, collations)
  if (ddl === undefined) return
  try {
    await sql.adhoc(ddl, [])
  } catch (error) {
    if (sql.dialect.name !== 'mysql') throw error
    warn(`The columns of ${table.name} could not be altered: ${messageOf(error)}`)
  }
}

export const repairMessage = (columns: string[]): string =>
  `The durable tables were made by another version: added ${columns.join(', ')}. ` +
  'To keep schema changes in migrations, run `node ace migration:run` when deploying.'

// eslint-disable-next-line no-console -- the documented default; an application passes its logger
export const consoleLogger = { warn: (message: string) => console.warn(message) }
