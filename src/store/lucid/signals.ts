/*
 * Waiters, buffered signals and buffered events, one row at a time. What is taken is deleted and answered
 * by one statement, so one of several takers gets it, and gets exactly the row that went. On MySQL the
 * delete names the row that was read, and whoever deleted nothing looks again.
 */
import type { BufferedEvent, SignalWaiter } from '../../types/checkpoint.ts'
import { type Binding, type Dialect, prefixEnd, startsWith } from '../../sql/dialect.ts'
import {
  EVENT_COLUMNS,
  eventColumns,
  jsonText,
  listed,
  readEvent,
  readWaiter,
  WAITER_COLUMNS,
  waiterColumns,
} from './rows.ts'
import { readJson } from './json_columns.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from '../../sql/session.ts'

const WAITER = listed(WAITER_COLUMNS)

/** What a later waiter of a token replaces. */
export const replacingWaiter = (dialect: Dialect): string =>
  dialect.replacing(
    'token',
    WAITER_COLUMNS.filter((column) => column !== 'token')
  )

export async function putSignalWaiter(sql: Sql, waiter: SignalWaiter): Promise<void> {
  const columns = waiterColumns(waiter)
  await sql.change(
    `INSERT INTO ${T.signalWaiters} (${WAITER}) VALUES (?, ?, ?, ?, ?) ${replacingWaiter(sql.dialect)}`,
    WAITER_COLUMNS.map((column) => columns[column])
  )
}

export async function takeSignalWaiter(sql: Sql, token: string): Promise<SignalWaiter | null> {
  const place = [token.toWellFormed()]
  if (sql.dialect.returns) {
    const [row] = await sql.run(
      `DELETE FROM ${T.signalWaiters} WHERE token = ? RETURNING ${WAITER}`,
      place
    )
    return row ? readWaiter(row) : null
  }
  for (;;) {
    const [row] = await sql.run(
      `SELECT ${WAITER} FROM ${T.signalWaiters} WHERE token = ? FOR UPDATE`,
      place
    )
    if (!row) return null
    const waiter = readWaiter(row)
    if (await removeSignalWaiter(sql, waiter)) return waiter
  }
}

export async function listSignalWaiters(sql: Sql, prefix: string): Promise<SignalWaiter[]> {
  const where = startsWith('token', prefix.toWellFormed())
  const rows = await sql.run(
    `SELECT ${WAITER} FROM ${T.signalWaiters} WHERE ${where.text}`,
    where.bindings
  )
  return rows.map(readWaiter)
}

/** Whether exactly this waiter stood there. */
export async function removeSignalWaiter(sql: Sql, waiter: SignalWaiter): Promise<boolean> {
  const { rows } = await sql.change(REMOVE_WAITER, exactWaiter(waiter))
  return rows > 0
}

export const REMOVE_WAITER = `DELETE FROM ${T.signalWaiters} WHERE token = ? AND run_id = ? AND seq = ?`

export const exactWaiter = ({ token, runId, seq }: SignalWaiter): Binding[] => [
  token.toWellFormed(),
  runId.toWellFormed(),
  seq,
]

export async function hasSignalWaiter(sql: Sql, token: string): Promise<boolean> {
  const rows = await sql.run(`SELECT seq FROM ${T.signalWaiters} WHERE token = ?`, [
    token.toWellFormed(),
  ])
  return rows.length > 0
}

const RUN_CHUNK = 500

export async function listSignalWaitersByRunIds(
  sql: Sql,
  runIds: string[]
): Promise<SignalWaiter[]> {
  const ids = [...new Set(runIds.map((id) => id.toWellFormed()))].sort()
  const waiters: SignalWaiter[] = []
  for (let from = 0; from < ids.length; from += RUN_CHUNK) {
    const rows = await sql.run(
      `SELECT ${WAITER} FROM ${T.signalWaiters} WHERE ${sql.dialect.isIn('run_id', 'text')}`,
      [sql.dialect.list(ids.slice(from, from + RUN_CHUNK))]
    )
    waiters.push(...rows.map(readWaiter))
  }
  return waiters
}

export async function bufferSignal(sql: Sql, token: string, payload: unknown): Promise<void> {
  await sql.change(`INSERT INTO ${T.bufferedSignals} (token, payload) VALUES (?, ?)`, [
    token.toWellFormed(),
    jsonText(payload, 'payload'),
  ])
}

/** The id of the oldest payload of a token; one that somebody is taking is passed over. */
export const oldestOf = (sql: Sql, token: string): string =>
  `SELECT b.id FROM ${T.bufferedSignals} b WHERE b.token = ${token} ORDER BY b.id LIMIT 1
   ${sql.dialect.returns ? sql.dialect.skipLocked : ''}`

export async function takeBufferedSignal(
  sql: Sql,
  token: string
): Promise<{ payload: unknown } | null> {
  const place = [token.toWellFormed()]
  if (sql.dialect.returns) {
    const [row] = await sql.run(
      `DELETE FROM ${T.bufferedSignals} WHERE id = (${oldestOf(sql, '?')}) RETURNING id, payload`,
      place
    )
    return row ? { payload: readPayload(row.payload, row.id) } : null
  }
  for (;;) {
    const [row] = await sql.run(
      `SELECT id, payload FROM ${T.bufferedSignals} WHERE token = ? ORDER BY id LIMIT 1
       ${sql.dialect.skipLocked}`,
      place
    )
    if (!row) return null
    const { rows } = await sql.change(`DELETE FROM ${T.bufferedSignals} WHERE id = ?`, [
      String(row.id),
    ])
    if (rows > 0) return { payload: readPayload(row.payload, row.id) }
  }
}

/** Ranges of tokens, as rows of a JSON parameter. */
const RANGES = { lo: 'text', hi: 'text' } as const
/** Greater than every token: these have 255 bytes at most. */
const BEYOND = '\u{10ffff}'.repeat(64)

export async function listBufferedTokens(sql: Sql, prefixes: string[]): Promise<string[]> {
  const tokens = new Set<string>()
  for (let from = 0; from < prefixes.length; from += RUN_CHUNK) {
    const ranges = prefixes.slice(from, from + RUN_CHUNK).map((prefix) => {
      const lo = prefix.toWellFormed()
      return { lo, hi: prefixEnd(lo) ?? BEYOND }
    })
    const rows = await sql.run(
      `SELECT DISTINCT b.token FROM ${sql.dialect.jsonRows('p', RANGES)}
       JOIN ${T.bufferedSignals} b ON b.token >= p.lo AND b.token < p.hi`,
      [JSON.stringify(ranges)]
    )
    for (const row of rows) tokens.add(String(row.token))
  }
  return [...tokens]
}

export async function dropBufferedSignals(sql: Sql, tokens: string[]): Promise<void> {
  const wanted = [...new Set(tokens.map((token) => token.toWellFormed()))].sort()
  for (let from = 0; from < wanted.length; from += RUN_CHUNK) {
    await sql.change(
      `DELETE FROM ${T.bufferedSignals} WHERE ${sql.dialect.isIn('token', 'text')}`,
      [sql.dialect.list(wanted.slice(from, from + RUN_CHUNK))]
    )
  }
}

export const readPayload = (payload: unknown, id: unknown): unknown =>
  readJson(payload, T.bufferedSignals, 'payload', () => String(id))

export async function bufferEvent(
  sql: Sql,
  event: BufferedEvent & { name: string }
): Promise<void> {
  const columns = eventColumns(event)
  await sql.change(
    `INSERT INTO ${T.bufferedEvents} (${listed(EVENT_COLUMNS)}, name) VALUES (?, ?, ?, ?)
     ${sql.dialect.replacing('id', ['payload', 'published_at', 'name'])}`,
    [...EVENT_COLUMNS.map((column) => columns[column]), event.name.toWellFormed()]
  )
}

export async function listBufferedEvents(
  sql: Sql,
  name: string,
  limit: number
): Promise<BufferedEvent[]> {
  if (limit <= 0) return []
  const rows = await sql.run(
    `SELECT ${listed(EVENT_COLUMNS)} FROM ${T.bufferedEvents} WHERE name = ?
     ORDER BY published_at, id LIMIT ?`,
    [name.toWellFormed(), limit]
  )
  return rows.map(readEvent)
}

export async function removeBufferedEvent(sql: Sql, id: string): Promise<boolean> {
  const { rows } = await sql.change(`DELETE FROM ${T.bufferedEvents} WHERE id = ?`, [
    id.toWellFormed(),
  ])
  return rows > 0
}

/** Removes events published before a time, the oldest first when there is a limit; answers how many. */
export async function pruneBufferedEvents(
  session: Session,
  publishedBefore: number,
  limit?: number
): Promise<number> {
  if (limit !== undefined && limit <= 0) return 0
  const page = limit === undefined ? '' : 'LIMIT ?'
  const oldest = `WHERE published_at < ? ORDER BY published_at, id ${page}`
  const { dialect } = session
  const { rows } = await session.change(
    dialect.name === 'mysql'
      ? `DELETE FROM ${T.bufferedEvents} ${oldest}`
      : `WITH old AS (SELECT id FROM ${T.bufferedEvents} ${oldest} ${dialect.skipLocked})
         DELETE FROM ${T.bufferedEvents} WHERE id IN (SELECT id FROM old)`,
    limit === undefined ? [publishedBefore] : [publishedBefore, limit]
  )
  return rows
}
