/*
 * Where the databases differ: parameters, JSON arrays as row sources, lists, prefixes, locks, and which
 * driver errors mean "send it again". A family of statements is written once over these and once for each
 * dialect only where the statements themselves differ. `mysql` is MySQL and MariaDB.
 */
import { StoreCapabilityError } from '../errors.ts'

export type DialectName = 'sqlite' | 'postgres' | 'mysql'

type Scalar = string | number | null

/** A value that goes to the driver. Arrays on Postgres and MySQL only, arrays of rows on MySQL only. */
export type Binding = Scalar | readonly Scalar[] | readonly (readonly Scalar[])[]

/** Types of columns inside a JSON row source; `long` is text of any length, `text` that of keys. */
export type FieldType = 'text' | 'long' | 'int' | 'bigint' | 'float8'
export type Fields = Readonly<Record<string, FieldType>>

/** `again`: nothing happened, send it again. `unprepared`: again, without server-side plans. */
export type Remedy = 'again' | 'replan' | 'unprepared' | undefined

export interface Dialect {
  readonly name: DialectName
  /** A text written with `?`, as the driver takes it. */
  place(text: string): string
  /** Whether the server keeps plans by name. */
  readonly plans: boolean
  /** Rows of one parameter that holds a JSON array of objects, under `alias`. */
  jsonRows(alias: string, fields: Fields): string
  /**
   * Joins, for each row so far, the one row of a table that `on` names, by the index that `on` fits.
   * Postgres would otherwise read a whole table for a source whose length it cannot know, and so would
   * SQLite for rows that come in the wanted order.
   */
  joinOne(table: string, alias: string, columns: readonly string[], on: string): string
  /** A join whose right side is not to be read first; left to the planner where that knows better. */
  readonly joinAfter: string
  /** A column is one of a list, which is one parameter; see `list`. */
  isIn(column: string, type: FieldType): string
  isNotIn(column: string, type: FieldType): string
  list(values: readonly (string | number)[]): Binding
  /** Ends an insert that replaces `columns` where a row with this key stands. */
  replacing(key: string, columns: readonly string[]): string
  /**
   * A column in a condition that must not choose the index: SQLite, which seldom has statistics, takes a
   * second equality for better than any range.
   */
  unindexed(column: string): string
  /** First position of one text in another, from 1; 0 when it is not there. */
  position(haystack: string, needle: string): string
  /** Follows the select that picks rows somebody else may be about to change. */
  readonly forUpdate: string
  /** The same for rows that somebody else may be taking: those are passed over. */
  readonly skipLocked: string
  /** Whether a statement that writes can answer the rows it wrote. */
  readonly returns: boolean
  remedy(error: unknown): Remedy
  /** The connection on which this happened is of no more use. */
  breaksConnection(error: unknown): boolean
  /** What was written breaks a constraint: nothing of it stays, and it would break it again. */
  refusesData(error: unknown): boolean
  /** A row with this key stands already. */
  isDuplicate(error: unknown): boolean
}

const onConflict = (key: string, columns: readonly string[]): string =>
  `ON CONFLICT (${key}) DO UPDATE SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}`

const PG_REMEDIES: Record<string, Remedy> = {
  '40P01': 'again', // deadlock_detected
  '40001': 'again', // serialization_failure
  '22012': 'again', // division_by_zero: how a statement of ours rolls itself back (see `mustBeFresh`)
  '0A000': 'replan', // a plan that outlived a change of its table
  '26000': 'unprepared', // a pooler in transaction mode: the plan is on another server connection
  '42P05': 'unprepared',
}

export const postgres: Dialect = {
  name: 'postgres',
  place(text) {
    let n = 0
    return text.replace(/\?/g, () => `$${++n}`)
  },
  plans: true,
  jsonRows(alias, fields) {
    const columns = Object.entries(fields).map(
      ([name, type]) => `"${name}" ${type === 'long' ? 'text' : type}`
    )
    return `json_to_recordset(?::json) AS ${alias}(${columns.join(', ')})`
  },
  joinOne: (table, alias, columns, on) =>
    `CROSS JOIN LATERAL (SELECT ${columns.join(', ')} FROM ${table} ${alias} WHERE ${on} LIMIT 1) ${alias}`,
  joinAfter: 'JOIN',
  isIn: (column, type) => `${column} = ANY(?::${type}[])`,
  isNotIn: (column, type) => `${column} <> ALL(?::${type}[])`,
  list: (values) => values,
  replacing: onConflict,
  unindexed: (column) => column,
  position: (haystack, needle) => `strpos(${haystack}, ${needle})`,
  forUpdate: 'FOR NO KEY UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  returns: true,
  remedy: (error) => PG_REMEDIES[codeOf(error) ?? ''],
  // A server that goes on says so with an SQLSTATE; 08 and 57P are about the connection itself.
  breaksConnection: (error) => !/^(?=.*\d)(?!08|57P)[0-9A-Z]{5}$/.test(codeOf(error) ?? ''),
  // An integrity constraint, or a constraint trigger that raised an exception.
  refusesData: (error) => /^(23|P0001)/.test(codeOf(error) ?? ''),
  isDuplicate: (error) => codeOf(error) === '23505',
}

export const sqlite: Dialect = {
  name: 'sqlite',
  place: (text) => text,
  plans: false,
  jsonRows(alias, fields) {
    const columns = Object.keys(fields).map((name) => `value ->> '$.${name}' AS "${name}"`)
    return `(SELECT ${columns.join(', ')} FROM json_each(?)) AS ${alias}`
  },
  joinOne: (table, alias, _columns, on) => `CROSS JOIN ${table} ${alias} ON ${on}`,
  joinAfter: 'CROSS JOIN',
  isIn: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  isNotIn: (column) => `${column} NOT IN (SELECT value FROM json_each(?))`,
  list: (values) => JSON.stringify(values),
  replacing: onConflict,
  unindexed: (column) => `+${column}`,
  position: (haystack, needle) => `instr(${haystack}, ${needle})`,
  forUpdate: '',
  skipLocked: '',
  returns: true,
  remedy: (error) => (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error) ?? '') ? 'again' : undefined),
  breaksConnection: () => false,
  refusesData: (error) => /^SQLITE_CONSTRAINT/.test(codeOf(error) ?? ''),
  isDuplicate: (error) => /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)/.test(codeOf(error) ?? ''),
}

const MYSQL_TYPES: Record<FieldType, string> = {
  text: 'varchar(1024) CHARACTER SET utf8mb4',
  long: 'longtext CHARACTER SET utf8mb4',
  int: 'int',
  bigint: 'bigint',
  float8: 'double',
}

/** Deadlock, lock wait timeout, a row that changed since a snapshot. */
const MYSQL_AGAIN = new Set([1213, 1205, 1020])
/** The server goes down, or it ended the connection. */
const MYSQL_GOODBYE = new Set([1053, 1927, 3169])
/** Duplicate keys, missing values, foreign keys, checks, values too long, a trigger's signal. */
const MYSQL_REFUSALS = new Set([1062, 1048, 1364, 1451, 1452, 3819, 4025, 1406, 1644])

export const mysql: Dialect = {
  name: 'mysql',
  // Whatever the sql_mode: a name in double quotes is a text without ANSI_QUOTES.
  place: (text) =>
    text.replace(/'[^']*'|"(\w+)"/g, (found, name) => (name ? `\`${name}\`` : found)),
  plans: false,
  jsonRows(alias, fields) {
    const columns = Object.entries(fields).map(
      ([name, type]) => `"${name}" ${MYSQL_TYPES[type]} PATH '$.${name}'`
    )
    return `JSON_TABLE(?, '$[*]' COLUMNS (${columns.join(', ')})) AS ${alias}`
  },
  joinOne: (table, alias, _columns, on) => `STRAIGHT_JOIN ${table} ${alias} ON ${on}`,
  joinAfter: 'JOIN',
  isIn: (column) => `${column} IN (?)`,
  isNotIn: (column) => `${column} NOT IN (?)`,
  list: (values) => (values.length > 0 ? values : [null]),
  replacing: (_key, columns) =>
    `ON DUPLICATE KEY UPDATE ${columns.map((name) => `${name} = VALUES(${name})`).join(', ')}`,
  unindexed: (column) => column,
  position: (haystack, needle) => `locate(CAST(${needle} AS BINARY), ${haystack})`,
  forUpdate: 'FOR UPDATE',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  returns: false,
  remedy: (error) => (MYSQL_AGAIN.has(errnoOf(error)) ? 'again' : undefined),
  // An error of the server has an SQLSTATE; everything else is about the connection.
  breaksConnection: (error) =>
    MYSQL_GOODBYE.has(errnoOf(error)) || !(error as { sqlState?: unknown } | null)?.sqlState,
  refusesData: (error) => MYSQL_REFUSALS.has(errnoOf(error)),
  isDuplicate: (error) => errnoOf(error) === 1062,
}

/** Postgres: makes the statement fail, and with it everything it wrote, unless `condition` holds. */
export const mustBeFresh = (condition: string): string =>
  `1 / CASE WHEN ${condition} THEN 1 ELSE 0 END`

const BY_LUCID_NAME: Record<string, Dialect> = {
  'sqlite3': sqlite,
  'better-sqlite3': sqlite,
  'postgres': postgres,
  'mysql': mysql,
}

/** The dialect of a Lucid connection. Throws `StoreCapabilityError` for one that is not supported. */
export function dialectOf(lucidDialect: string): Dialect {
  const dialect = BY_LUCID_NAME[lucidDialect]
  if (dialect) return dialect
  throw new StoreCapabilityError(
    `the Lucid store does not support the dialect "${lucidDialect}": use Postgres, MySQL, MariaDB or SQLite`
  )
}

/** The least text greater than every text with this prefix, by code point; undefined when there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const points = [...prefix].map((character) => character.codePointAt(0)!)
  while (points.length > 0) {
    const last = points.pop()!
    if (last === 0x10ffff) continue
    // The surrogate range holds no characters.
    points.push(last === 0xd7ff ? 0xe000 : last + 1)
    return String.fromCodePoint(...points)
  }
  return undefined
}

/** Predicate and bindings for a literal, case-sensitive prefix, served by an index on the column. */
export function startsWith(column: string, prefix: string): { text: string; bindings: Binding[] } {
  if (prefix === '') return { text: '1 = 1', bindings: [] }
  const end = prefixEnd(prefix)
  return end === undefined
    ? { text: `${column} >= ?`, bindings: [prefix] }
    : { text: `(${column} >= ? AND ${column} < ?)`, bindings: [prefix, end] }
}

export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

function errnoOf(error: unknown): number {
  return Number((error as { errno?: unknown } | null | undefined)?.errno ?? 0)
}
