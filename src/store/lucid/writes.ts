/*
 * Writes whose answer the databases give in different ways: whether a row was new, which rows went.
 */
import type { Binding } from '../../sql/dialect.ts'
import { listed } from './rows.ts'
import type { Row, Sql } from '../../sql/session.ts'

/** Sends `INSERT … VALUES …` into a table whose only key is `id`; false when the id is taken. */
export async function insertNew(
  sql: Sql,
  insert: string,
  bindings: readonly Binding[]
): Promise<boolean> {
  if (sql.dialect.returns) {
    const { rows } = await sql.change(`${insert} ON CONFLICT (id) DO NOTHING`, bindings)
    return rows > 0
  }
  try {
    await sql.change(insert, bindings)
    return true
  } catch (error) {
    // INSERT IGNORE would also cut values that are too long.
    if (isDuplicate(sql, error)) return false
    throw error
  }
}

/** Whether a key was taken, inside a transaction or not. */
export const isDuplicate = ({ dialect }: Sql, error: unknown): boolean =>
  dialect.isDuplicate(error) || dialect.isDuplicate((error as Error).cause)

/** Deletes rows and answers them as they were; inside a transaction, or one row by its key. */
export async function takeRows(
  sql: Sql,
  table: string,
  key: string,
  columns: readonly string[],
  where: string,
  bindings: readonly Binding[]
): Promise<Row[]> {
  if (sql.dialect.returns) {
    return sql.run(`DELETE FROM ${table} WHERE ${where} RETURNING ${listed(columns)}`, bindings)
  }
  const rows = await sql.run(
    `SELECT ${listed(columns)} FROM ${table} WHERE ${where} ORDER BY ${key} FOR UPDATE`,
    bindings
  )
  if (rows.length === 0) return []
  const keys = rows.map((row) => String(row[key]))
  const { rows: gone } = await sql.change(
    `DELETE FROM ${table} WHERE ${sql.dialect.isIn(key, 'text')}`,
    [sql.dialect.list(keys)]
  )
  return gone === rows.length ? rows : []
}
