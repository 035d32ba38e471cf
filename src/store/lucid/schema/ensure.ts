/*
 * Provisioning: additive, safe to run in every process at every boot, and two reads when nothing is to do.
 * The full check runs under a lock, in one transaction with the DDL where the database has that, and the
 * marker is written last: an interrupted run repeats, a concurrent one waits and finds the work done.
 */
import type { Database } from '@adonisjs/lucid/database'
import { InvalidArgumentError } from '../../../errors.ts'
import { systemClock } from '../../../foundation/clock.ts'
import { messageOf } from '../../../foundation/failure.ts'
import { underName } from '../named_lock.ts'
import { Session, type Sql } from '../session.ts'
import {
  addColumn,
  alterColumns,
  type Collations,
  collationsOf,
  createIndex,
  createTable,
  dropTable,
  type Inventory,
  takeInventory,
  indexesOf,
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
  const logger = options.logger ?? consoleLogger
  const warn = (message: string) => logger.warn(message)
  const repaired = await underLock(session, warn, async (sql) => {
    const inventory = await takeInventory(sql)
    if (!force && hasMarker(inventory) && (await readMarker(sql)) === wanted) return []
    const collations = sql.dialect.name === 'mysql' ? await collationsOf(sql, collation) : undefined
    const added = await complete({ sql, inventory, collations, warn })
    await writeMarker(sql, wanted, systemClock())
    return added
  })
  if (repaired.length > 0) warn(repairMessage(repaired))
}

/** Removes every durable table, and with them every run. */
export async function dropDurableTables(db: Database, connectionName?: string): Promise<void> {
  const session = new Session(db, connectionName)
  await underLock(session, consoleLogger.warn, async (sql) => {
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

/** How long a boot waits for another one, in seconds. */
const PATIENCE = 60

/** SQLite has its write lock, Postgres an advisory one; DDL of MySQL commits, so its lock has a name. */
function underLock<T>(
  session: Session,
  warn: (message: string) => void,
  work: (sql: Sql) => Promise<T>
): Promise<T> {
  if (session.dialect.name === 'mysql') {
    return session.pinned((sql) =>
      underName(sql, 'durable:schema:', PATIENCE, (locked) => {
        // What it would keep apart is additive.
        if (!locked)
          warn('The lock on the durable tables could not be had; they are checked without.')
        return work(sql)
      })
    )
  }
  return session.atomically(async (sql) => {
    if (sql.dialect.name === 'postgres') await sql.adhoc(ADVISORY_LOCK, [])
    return work(sql)
  })
}

const ADVISORY_LOCK = `SELECT pg_advisory_xact_lock(hashtext('durable_schema'), hashtext(current_schema()))`

const hasMarker = (inventory: Inventory): boolean =>
  inventory.tables.get(DURABLE_SCHEMA_META_TABLE)?.has('fingerprint') ?? false

interface Repair {
  sql: Sql
  inventory: Inventory
  /** MySQL only. */
  collations?: Collations
  warn(message: string): void
}

/** Brings every table to its described form; answers the columns added to tables that existed. */
async function complete(repair: Repair): Promise<string[]> {
  const { sql, inventory, collations } = repair
  const { name } = sql.dialect
  const added: string[] = []
  for (const table of SCHEMA) {
    if (inventory.tables.has(table.name)) added.push(...(await repairTable(repair, table)))
    else await sql.adhoc(createTable(name, table, collations), [])
    for (const index of indexesOf(name, table)) {
      if (!inventory.indexes.has(index.name)) await sql.adhoc(createIndex(name, table, index), [])
    }
  }
  return added
}

/** What rows of an earlier release, or of a table made by hand, do not say. */
const COMPLETING: Record<string, string> = {
  // A column made by hand may allow NULL; every predicate takes the namespace as given.
  [DURABLE_TABLES.runs]: `UPDATE ${DURABLE_TABLES.runs} SET namespace = 'default' WHERE namespace IS NULL`,
  [DURABLE_TABLES.attributes]: `UPDATE ${DURABLE_TABLES.attributes} SET created_at = coalesce(
    (SELECT r.created_at FROM ${DURABLE_TABLES.runs} r WHERE r.id = run_id), 0) WHERE created_at = 0`,
}

async function repairTable(repair: Repair, table: Table): Promise<string[]> {
  const { sql, inventory, collations } = repair
  const columns = inventory.tables.get(table.name)!
  const added: string[] = []
  for (const column of table.columns) {
    if (columns.has(column.name)) continue
    await sql.adhoc(addColumn(sql.dialect.name, table, column, collations), [])
    added.push(`${table.name}.${column.name}`)
  }
  const completing = COMPLETING[table.name]
  if (completing) await sql.adhoc(completing, [])
  await alter(repair, table)
  return added
}

/** On MySQL columns may hold what a stricter one cannot: that is told, and the rest goes on. */
async function alter({ sql, inventory, collations, warn }: Repair, table: Table): Promise<void> {
  const ddl = alterColumns(sql.dialect.name, table, inventory, collations)
  if (ddl === undefined) return
  try {
    await sql.adhoc(ddl, [])
  } catch (error) {
    if (sql.dialect.name !== 'mysql') throw error
    warn(`The columns of ${table.name} could not be altered: ${messageOf(error)}`)
  }
}

const repairMessage = (columns: string[]): string =>
  `The durable tables were made by another version: added ${columns.join(', ')}. ` +
  'To keep schema changes in migrations, run `node ace migration:run` when deploying.'

// eslint-disable-next-line no-console -- the documented default; an application passes its logger
const consoleLogger = { warn: (message: string) => console.warn(message) }
