/*
 * The marker that lets a boot skip the full check: a fingerprint of everything provisioning would create.
 */
import { createHash } from 'node:crypto'
import type { DialectName } from '../../../sql/dialect.ts'
import type { Sql } from '../../../sql/session.ts'
import { createIndex, createTable, indexesOf, tableExists } from '../../../sql/ddl.ts'
import { DURABLE_SCHEMA_META_TABLE, SCHEMA } from './tables.ts'

/** Counted up with every change of the DDL. */
export const DURABLE_SCHEMA_REVISION = 3

export function fingerprint(dialect: DialectName, collation?: string): string {
  const ddl = SCHEMA.flatMap((table) => [
    createTable(dialect, table),
    ...indexesOf(dialect, table).map((index) => createIndex(dialect, table, index)),
  ])
  const parts = [String(DURABLE_SCHEMA_REVISION), dialect, ...ddl.sort(), collation ?? '']
  return createHash('sha256').update(parts.join('\n')).digest('hex')
}

/** The fingerprint the database carries; undefined when it has none that can be read. Two reads. */
export async function readMarker(sql: Sql): Promise<string | undefined> {
  if (!(await tableExists(sql, DURABLE_SCHEMA_META_TABLE))) return undefined
  const [row] = await sql.adhoc(
    `SELECT "fingerprint" FROM "${DURABLE_SCHEMA_META_TABLE}" WHERE "id" = ?`,
    ['durable']
  )
  return typeof row?.fingerprint === 'string' ? row.fingerprint : undefined
}

export async function writeMarker(sql: Sql, value: string, nowMs: number): Promise<void> {
  await sql.adhoc(
    `INSERT INTO "${DURABLE_SCHEMA_META_TABLE}" ("id", "fingerprint", "applied_at") VALUES (?, ?, ?)
     ${sql.dialect.replacing('id', ['fingerprint', 'applied_at'])}`,
    ['durable', value, nowMs]
  )
}
