/*
 * Provisioning: additive, safe to run in every process at every boot, and two reads when nothing is to do.
 * The full check runs under a lock, in one transaction with the DDL where the database has that, and the
 * marker is written last: an interrupted run repeats, a concurrent one waits and finds the work done.
 */
import type { Database } from '@adonisjs/lucid/database'
import { InvalidArgumentError } from '../../../errors.ts'
import { systemClock } from '../../../foundation/clock.ts'
import { collationsOf, dropTable, type Inventory, takeInventory } from '../../../sql/ddl.ts'
import {
  completeTables,
  consoleLogger,
  repairMessage,
  underSchemaLock,
} from '../../../sql/provision.ts'
import { Session } from '../../../sql/session.ts'
import { fingerprint, readMarker, writeMarker } from './revision.ts'
import { DURABLE_SCHEMA_META_TABLE, DURABLE_TABLES, SCHEMA } from './tables.ts'

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
  const repaired = await underSchemaLock(session, { name: 'schema', warn }, async (sql) => {
    const inventory = await takeInventory(sql, SCHEMA)
    if (!force && hasMarker(inventory) && (await readMarker(sql)) === wanted) return []
    const collations = sql.dialect.name === 'mysql' ? await collationsOf(sql, collation) : undefined
    const added = await completeTables({
      sql,
      tables: SCHEMA,
      inventory,
      collations,
      completing: COMPLETING,
      warn,
    })
    await writeMarker(sql, wanted, systemClock())
    return added
  })
  if (repaired.length > 0) warn(repairMessage(repaired))
}

/** Removes every durable table, and with them every run. */
export async function dropDurableTables(db: Database, connectionName?: string): Promise<void> {
  const session = new Session(db, connectionName)
  await underSchemaLock(session, { name: 'schema', ...consoleLogger }, async (sql) => {
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

const hasMarker = (inventory: Inventory): boolean =>
  inventory.tables.get(DURABLE_SCHEMA_META_TABLE)?.has('fingerprint') ?? false

/** What rows of an earlier release, or of a table made by hand, do not say. */
const COMPLETING: Record<string, string> = {
  // A column made by hand may allow NULL; every predicate takes the namespace as given.
  [DURABLE_TABLES.runs]: `UPDATE ${DURABLE_TABLES.runs} SET namespace = 'default' WHERE namespace IS NULL`,
  [DURABLE_TABLES.attributes]: `UPDATE ${DURABLE_TABLES.attributes} SET created_at = coalesce(
    (SELECT r.created_at FROM ${DURABLE_TABLES.runs} r WHERE r.id = run_id), 0) WHERE created_at = 0`,
}
