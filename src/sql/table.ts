/*
 * A table as data. DDL and repair are derived from it (`ddl.ts`). Times are epoch milliseconds, payloads
 * are JSON text, keys compare by code point.
 */
/** `str<n>`: text of at most n characters; `id`: a number the database counts up. */
export type ColumnType = 'str' | 'str32' | 'str64' | 'str512' | 'json' | 'ms' | 'int' | 'dbl' | 'id'

export interface Column {
  name: string
  type: ColumnType
  required?: boolean
  default?: string | number
}

export interface Index {
  name: string
  /** Column names, followed by ` DESC` for those in falling order, or one expression in parentheses. */
  columns: string[]
  /** Rows it covers, where the dialect has partial indexes. */
  where?: string
  /** Columns where it has not, or no index over an expression. */
  columnsWithoutWhere?: string[]
  /** Only where the dialect has neither. */
  onlyWithoutWhere?: boolean
}

export interface Table {
  name: string
  columns: Column[]
  primaryKey: string[]
  indexes: Index[]
}

type ColumnTypes = Partial<Record<ColumnType, string>>

/** Columns by type, `!` after those that must have a value. */
export function columns(...groups: ColumnTypes[]): Column[] {
  return groups.flatMap((group) =>
    Object.entries(group).flatMap(([type, names]) =>
      names.split(' ').map((name) => ({
        name: name.replace('!', ''),
        type: type as ColumnType,
        ...(name.endsWith('!') ? { required: true } : {}),
      }))
    )
  )
}
