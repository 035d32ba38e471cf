/*
 * Waiters, buffered signals and buffered events, one row at a time. What is taken is deleted and answered
 * by one statement, so one of several takers gets it, and gets exactly the row that went.
 */
import type { BufferedEvent, SignalWaiter } from '../../types/checkpoint.ts'
import { prefixEnd, startsWith } from './dialect.ts'
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
import type { Session, Sql } from './session.ts'

const WAITER = listed(WAITER_COLUMNS)

/** What a later waiter of a token replaces. */
export const REPLACE_WAITER = `ON CONFLICT (token) DO UPDATE SET run_id = excluded.run_id,
  seq = excluded.seq, parallel_group = excluded.parallel_group, created_at = excluded.created_at`

export async function putSignalWaiter(sql: Sql, waiter: SignalWaiter): Promise<void> {
  const columns = waiterColumns(waiter)
  await sql.run(
    `INSERT INTO ${T.signalWaiters} (${WAITER}) VALUES (?, ?, ?, ?, ?) ${REPLACE_WAITER}`,
    WAITER_COLUMNS.map((column) => columns[column])
  )
}

export async function takeSignalWaiter(sql: Sql, token: string): Promise<SignalWaiter | null> {
  const [row] = await sql.run(
    `DELETE FROM ${T.signalWaiters} WHERE token = ? RETURNING ${WAITER}`,
    [token.toWellFormed()]
  )
  return row ? readWaiter(row) : null
}

export async function listSignalWaiters(sql: Sql, prefix: string): Promise<SignalWaiter[]> {
  const where = startsWith('token', prefix.toWellFormed())
  const rows = await sql.run(
    `SELECT ${WAITER} FROM ${T.signalWaiters} WHERE ${where.text}`,
    where.bindings
  )
  return rows.map(readWaiter)
}

export async function removeSignalWaiter(sql: Sql, waiter: SignalWaiter): Promise<void> {
  await sql.run(`DELETE FROM ${T.signalWaiters} WHERE token = ? AND run_id = ? AND seq = ?`, [
    waiter.token.toWellFormed(),
    waiter.runId.toWellFormed(),
    waiter.seq,
  ])
}

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
  await sql.run(`INSERT INTO ${T.bufferedSignals} (token, payload) VALUES (?, ?)`, [
    token.toWellFormed(),
    jsonText(payload, 'payload'),
  ])
}

/** The id of the oldest payload of a token; one that somebody is taking is passed over. */
export const oldestOf = (sql: Sql, token: string): string =>
  `SELECT b.id FROM ${T.bufferedSignals} b WHERE b.token = ${token} ORDER BY b.id LIMIT 1
   ${sql.dialect.name === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''}`

export async function takeBufferedSignal(
  sql: Sql,
  token: string
): Promise<{ payload: unknown } | null> {
  const [row] = await sql.run(
    `DELETE FROM ${T.bufferedSignals} WHERE id = (${oldestOf(sql, '?')}) RETURNING id, payload`,
    [token.toWellFormed()]
  )
  return row ? { payload: readPayload(row.payload, row.id) } : null
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
    await sql.run(`DELETE FROM ${T.bufferedSignals} WHERE ${sql.dialect.isIn('token', 'text')}`, [
      sql.dialect.list(wanted.slice(from, from + RUN_CHUNK)),
    ])
  }
}

export const readPayload = (payload: unknown, id: unknown): unknown =>
  readJson(payload, T.bufferedSignals, 'payload', () => String(id))

export async function bufferEvent(
  sql: Sql,
  event: BufferedEvent & { name: string }
): Promise<void> {
  const columns = eventColumns(event)
  await sql.run(
    `INSERT INTO ${T.bufferedEvents} (${listed(EVENT_COLUMNS)}, name) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET payload = excluded.payload,
       published_at = excluded.published_at, name = excluded.name`,
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
  const rows = await sql.run(`DELETE FROM ${T.bufferedEvents} WHERE id = ? RETURNING id`, [
    id.toWellFormed(),
  ])
  return rows.length > 0
}

/** Removes events published before a time, the oldest first when there is a limit; answers how many. */
export async function pruneBufferedEvents(
  session: Session,
  publishedBefore: number,
  limit?: number
): Promise<number> {
  if (limit !== undefined && limit <= 0) return 0
  const old = `SELECT id FROM ${T.bufferedEvents} WHERE published_at < ?
    ORDER BY published_at, id ${limit === undefined ? '' : 'LIMIT ?'}
    ${session.dialect.name === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''}`
  const rows = await session.run(
    `WITH old AS (${old}) DELETE FROM ${T.bufferedEvents} WHERE id IN (SELECT id FROM old)
     RETURNING id`,
    limit === undefined ? [publishedBefore] : [publishedBefore, limit]
  )
  return rows.length
}
