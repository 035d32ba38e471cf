/*
 * JSON text that no longer parses, usually because an old MySQL `text` column cut it: it reads as absent,
 * its row and the columns beside it still load, and it is reported once.
 */
import { isolate } from '../../foundation/failure.ts'

export interface CorruptJsonColumn {
  table: string
  column: string
  /** Primary key of the row. */
  key: string
  error: unknown
}

export type CorruptJsonReporter = (found: CorruptJsonColumn) => void

const MAX_REMEMBERED = 1000
const reported = new Set<string>()

const toConsole: CorruptJsonReporter = ({ table, column, key }) =>
  // eslint-disable-next-line no-console -- the documented default
  console.warn(
    `durable: the JSON in ${table}.${column} of row ${key} is damaged and reads as undefined`
  )

let reporter: CorruptJsonReporter = toConsole

/** Replaces the reporter (default: one line on the console); undefined restores it. Once a place. */
export function onCorruptJsonColumn(next?: CorruptJsonReporter): void {
  reporter = next ?? toConsole
  reported.clear()
}

/** The value of a JSON column; `key` is asked only when the text is damaged. */
export function readJson(
  value: unknown,
  table: string,
  column: string,
  key: () => string
): unknown {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch (error) {
    report({ table, column, key: key(), error })
    return undefined
  }
}

function report(found: CorruptJsonColumn): void {
  const place = `${found.table}\n${found.column}\n${found.key}`
  if (reported.has(place)) return
  if (reported.size >= MAX_REMEMBERED) reported.clear()
  reported.add(place)
  isolate(() => reporter(found))
}
