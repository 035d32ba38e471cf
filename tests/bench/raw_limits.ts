/*
 * What the machine can do at most: single rows inserted and committed through the bare driver, in the same
 * run as everything it is compared with.
 */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import type { DatabaseLocation } from '../helpers/databases.ts'

/** What is used of the drivers, which come without types. */
interface PgClient {
  connect(): Promise<void>
  query(query: string | { name: string; text: string; values: unknown[] }): Promise<unknown>
  end(): Promise<void>
}

interface SqliteConnection {
  pragma(text: string): unknown
  exec(text: string): unknown
  prepare(text: string): { run(...values: unknown[]): unknown }
  close(): void
}

const require = createRequire(import.meta.url)
const { Client } = require('pg') as {
  Client: new (options: { connectionString: string; options: string }) => PgClient
}
const BetterSqlite = require('better-sqlite3') as new (file: string) => SqliteConnection

/** Commits a second. */
export interface RawLimits {
  one: number
  eight: number
}

const TEXT = JSON.stringify({ some: 'output', of: 'a step', padding: 'x'.repeat(100) })
const CREATE = `create table raw_limit (run_id varchar(255), seq int, name varchar(512), output text,
  at bigint, primary key (run_id, seq))`

export async function rawLimits(location: DatabaseLocation, rows: number): Promise<RawLimits> {
  if (location.dialect === 'sqlite') return onSqlite(rows)
  const one = await onPostgres(location, rows, 1)
  return { one, eight: await onPostgres(location, rows * 2, 8) }
}

async function onPostgres(
  { target, schema }: DatabaseLocation,
  rows: number,
  connections: number
): Promise<number> {
  const clients = Array.from({ length: connections }, () => {
    return new Client({ connectionString: target, options: `-c search_path=${schema}` })
  })
  await Promise.all(clients.map((client) => client.connect()))
  await clients[0].query(CREATE)
  const text = 'insert into raw_limit values ($1, $2, $3, $4, $5)'
  let next = 0
  const lane = async (client: PgClient, nth: number) => {
    for (; next < rows; next++) {
      const values = [`run-${nth}`, next, 'step', TEXT, 1_700_000_000_000]
      await client.query({ name: 'raw', text, values })
    }
  }
  const startedAt = performance.now()
  await Promise.all(clients.map(lane))
  const seconds = (performance.now() - startedAt) / 1000
  await clients[0].query('drop table raw_limit')
  await Promise.all(clients.map((client) => client.end()))
  return rows / seconds
}

/** One thread: eight connections only add the switching between them. */
async function onSqlite(rows: number): Promise<RawLimits> {
  const file = join(tmpdir(), `durable-bench-${process.pid}.sqlite`)
  const connections = Array.from({ length: 8 }, () => {
    const connection = new BetterSqlite(file)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = NORMAL')
    return connection
  })
  connections[0].exec(CREATE)
  const inserts = connections.map((one) =>
    one.prepare('insert into raw_limit values (?, ?, ?, ?, ?)')
  )
  const measure = (lanes: number, run: string) => {
    const startedAt = performance.now()
    for (let i = 0; i < rows; i++) inserts[i % lanes].run(run, i, 'step', TEXT, 1_700_000_000_000)
    return rows / ((performance.now() - startedAt) / 1000)
  }
  try {
    return { one: measure(1, 'one'), eight: measure(8, 'eight') }
  } finally {
    for (const connection of connections) connection.close()
    await Promise.all(['', '-wal', '-shm'].map((end) => rm(`${file}${end}`, { force: true })))
  }
}
