/*
 * How a database carries a statement out: by which indexes, reading how many rows. What is read is counted by
 * the database while it runs the statement, not estimated.
 */
import { DURABLE_TABLES } from '../../src/store/lucid/schema/tables.ts'
import { TRANSPORT_TABLES } from '../../src/transport/db/tables.ts'
import type { Sent } from './capture.ts'

export interface Plan {
  /** Indexes in use, each once; keys as `primary`. */
  indexes: string[]
  /** Rows of durable tables that were looked at. */
  read: number
  /** Durable tables read from one end to the other without an index. */
  scans: string[]
  ms: number
}

export const newPlan = (): Plan => ({ indexes: [], read: 0, scans: [], ms: 0 })

const TABLES: readonly string[] = [DURABLE_TABLES, TRANSPORT_TABLES].flatMap(Object.values)

export const isDurable = (table: unknown): table is string =>
  typeof table === 'string' && TABLES.includes(table)

/** A name as it fits into a table. */
export const shortName = (index: string): string =>
  /pkey|PRIMARY|autoindex/.test(index) ? 'primary' : index.replace(/^durable_|_idx$/g, '')

/** Adds the plan of one statement to that of the ones before it. */
export function addTo(total: Plan, plan: Plan): void {
  total.indexes = [...new Set([...total.indexes, ...plan.indexes])]
  total.scans = [...new Set([...total.scans, ...plan.scans])]
  total.read += plan.read
  total.ms += plan.ms
}

/** A parsed answer of EXPLAIN. */
export type Json = { readonly [key: string]: unknown }

export const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** Every object inside an object, itself first. */
export function* objectsIn(value: unknown): Generator<Json> {
  if (!isJson(value)) return
  yield value
  for (const inner of Object.values(value)) yield* objectsIn(inner)
}

/** Which durable table each alias of a statement stands for. */
export function aliasesOf({ sql }: Sent): Map<string, string> {
  const names = new Map(TABLES.map((table) => [table, table]))
  for (const [, table, alias] of sql.matchAll(/\b(durable_\w+)`?(?:\s+AS)?\s+(\w+)/g)) {
    if (isDurable(table) && !/^(WHERE|SET|ORDER|ON|AS|FROM|GROUP)$/i.test(alias))
      names.set(alias, table)
  }
  return names
}
