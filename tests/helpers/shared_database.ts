/*
 * A database that the cases of one process share, emptied before each and dropped when the process has
 * nothing left to do: to make one takes longer than a case.
 */
import type { Database } from '@adonisjs/lucid/database'
import { createDurableTables } from '../../src/store/lucid/schema/ensure.ts'
import { DURABLE_TABLES } from '../../src/store/lucid/schema/tables.ts'
import { createDatabase, type DatabaseLocation, type Dialect, openDatabase } from './databases.ts'

const made = new Map<Dialect, Promise<DatabaseLocation>>()

async function make(dialect: Dialect): Promise<DatabaseLocation> {
  const { db, location, cleanup } = await createDatabase(dialect)
  await createDurableTables(db)
  await db.manager.closeAll()
  process.once('beforeExit', cleanup)
  return location
}

/** The shared database of a dialect without a row, behind a pool that the caller closes. */
export async function emptySharedDatabase(
  dialect: Dialect,
  as: Pick<DatabaseLocation, 'plain'> = {}
): Promise<Database> {
  if (!made.has(dialect)) made.set(dialect, make(dialect))
  const location = await made.get(dialect)!
  const db = openDatabase({ ...location, ...as })
  await emptyTables(db)
  return db
}

/** Removes every row of the durable tables: much faster than TRUNCATE when there are few. */
export async function emptyTables(db: Database): Promise<void> {
  for (const table of Object.values(DURABLE_TABLES)) await db.from(table).delete()
}
