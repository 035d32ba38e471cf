/*
 * What a database says of the durable tables, in lines that compare: one for each column, one for each
 * index. The order of columns and whether they may be empty are left out: a column that is added to rows
 * that exist comes last and may.
 */
import type { TestDatabase } from './databases.ts'

const COLUMNS = {
  sqlite: `
    SELECT m.name AS t, c.name AS c, c.type AS type FROM sqlite_master m
    JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name LIKE 'durable%'`,
  postgres: `
    SELECT table_name AS t, column_name AS c,
      concat_ws(' ', data_type, character_maximum_length, collation_name) AS type
    FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name LIKE 'durable%'`,
  mysql: `
    SELECT table_name AS t, column_name AS c, concat_ws(' ', column_type, collation_name) AS type
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name LIKE 'durable%'`,
}

const INDEXES = {
  sqlite: `
    SELECT coalesce(sql, name) AS line FROM sqlite_master
    WHERE type = 'index' AND tbl_name LIKE 'durable%'`,
  postgres: `
    SELECT replace(indexdef, current_schema() || '.', '') AS line FROM pg_indexes
    WHERE schemaname = current_schema() AND tablename LIKE 'durable%'`,
  mysql: `
    SELECT concat(table_name, ' ', index_name, ' ',
      group_concat(column_name ORDER BY seq_in_index)) AS line
    FROM information_schema.statistics
    WHERE table_schema = database() AND table_name LIKE 'durable%'
    GROUP BY table_name, index_name`,
}

export async function catalogue({ db, dialect }: TestDatabase): Promise<string[]> {
  const read = async (text: string) => rowsOf(await db.rawQuery(text))
  const columns = await read(COLUMNS[dialect])
  const indexes = await read(INDEXES[dialect])
  const lines = [
    ...columns.map(({ t, c, type }) => `column ${t}.${c} ${type}`),
    ...indexes.map(({ line }) => `index ${line}`),
  ]
  return lines.sort()
}

type Rows = Record<string, unknown>[]

/** Drivers answer rows, rows in an object, or rows and their fields. */
function rowsOf(answer: unknown): Rows {
  if (!Array.isArray(answer)) return (answer as { rows: Rows }).rows
  return Array.isArray(answer[0]) ? (answer[0] as Rows) : (answer as Rows)
}
