/*
 * Real Lucid databases for tests. Every one is private to its creator: a file of its own on SQLite, a
 * schema of its own on Postgres, a database of its own on MySQL; all are gone after `cleanup()`.
 *
 *   for (const dialect of await reachableDialects()) {
 *     test(`… on ${dialect}`, async ({ cleanup }) => {
 *       const { db, connectionName, cleanup: drop } = await createDatabase(dialect)
 *       cleanup(drop)
 *     })
 *   }
 *
 * `location` is plain JSON: another process reaches the same data with `openDatabase(location)`.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppFactory } from '@adonisjs/core/factories/app'
import { EmitterFactory } from '@adonisjs/core/factories/events'
import { LoggerFactory } from '@adonisjs/core/factories/logger'
import { Database } from '@adonisjs/lucid/database'
import type { ConnectionConfig } from '@adonisjs/lucid/types/database'
import { backend, backendUrl } from './backends.ts'

export type Dialect = 'sqlite' | 'postgres' | 'mysql'

/** The one connection that every test database has. */
export const CONNECTION = 'test'

/** `target` is a file name or `:memory:` on SQLite and a URL elsewhere; `schema` is set on Postgres. */
export interface DatabaseLocation {
  dialect: Dialect
  target: string
  schema?: string
  /** MariaDB is taken for a MySQL, which has no compound statements. */
  plain?: boolean
}

export interface TestDatabase {
  db: Database
  connectionName: string
  dialect: Dialect
  location: DatabaseLocation
  /** One more Database, with a pool of its own, over the same data; `cleanup` closes it too. */
  connect(): Database
  /** Closes every Database of this handle and removes the data. */
  cleanup(): Promise<void>
}

export interface DatabaseOptions {
  /** SQLite only: keep the data in memory. Such a database cannot be shared. */
  memory?: boolean
  /** MySQL only; see `DatabaseLocation`. */
  plain?: boolean
}

/** SQLite always; Postgres and MySQL when they are there (see `backend`). */
export async function reachableDialects(): Promise<Dialect[]> {
  const dialects: Dialect[] = ['sqlite']
  if (await backend('postgres')) dialects.push('postgres')
  if (await backend('mysql')) dialects.push('mysql')
  return dialects
}

export async function createDatabase(
  dialect: Dialect,
  options: DatabaseOptions = {}
): Promise<TestDatabase> {
  const { location, remove } = await allocate[dialect](options)
  const opened: Database[] = []
  const connect = () => {
    const db = openDatabase(location)
    opened.push(db)
    return db
  }
  return {
    db: connect(),
    connectionName: CONNECTION,
    dialect,
    location,
    connect,
    async cleanup() {
      await Promise.all(opened.splice(0).map((db) => db.manager.closeAll()))
      await remove()
    },
  }
}

/** A Database over data that already exists; the caller closes it with `db.manager.closeAll()`. */
export function openDatabase(location: DatabaseLocation): Database {
  const app = new AppFactory().create(new URL('./', import.meta.url))
  const logger = new LoggerFactory().merge({ enabled: false }).create()
  return new Database(
    { connection: CONNECTION, connections: { [CONNECTION]: connectionConfig(location) } },
    logger,
    new EmitterFactory().create(app)
  )
}

function connectionConfig({ dialect, target, schema, plain }: DatabaseLocation): ConnectionConfig {
  if (dialect === 'postgres') {
    return { client: 'pg', connection: target, searchPath: schema ? [schema] : undefined }
  }
  if (dialect === 'mysql') {
    const pool = plain ? { afterCreate: hideMariaDb } : undefined
    return { client: 'mysql2', connection: mysqlConnection(new URL(target)), pool }
  }
  return {
    client: 'better-sqlite3',
    connection: { filename: target },
    useNullAsDefault: true,
    pool: { afterCreate: tuneSqlite },
  }
}

function mysqlConnection(url: URL) {
  return {
    host: url.hostname,
    port: Number(url.port) || 3306,
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
  }
}

interface MysqlConnection {
  _handshakePacket: { serverVersion: string }
}

function hideMariaDb(connection: MysqlConnection, done: (error: unknown, c: unknown) => void) {
  connection._handshakePacket.serverVersion = '8.4.0'
  done(null, connection)
}

interface SqliteConnection {
  pragma(text: string): unknown
}

function tuneSqlite(connection: SqliteConnection, done: (error: unknown, c: unknown) => void) {
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = NORMAL')
  connection.pragma('busy_timeout = 5000')
  done(null, connection)
}

interface Allocation {
  location: DatabaseLocation
  remove(): Promise<unknown>
}

const allocate: Record<Dialect, (options: DatabaseOptions) => Promise<Allocation>> = {
  async sqlite({ memory }) {
    if (memory) {
      return { location: { dialect: 'sqlite', target: ':memory:' }, remove: async () => {} }
    }
    const folder = await mkdtemp(join(tmpdir(), 'durable-test-'))
    return {
      location: { dialect: 'sqlite', target: join(folder, 'db.sqlite') },
      remove: () => rm(folder, { recursive: true, force: true }),
    }
  },

  async postgres() {
    const target = backendUrl('postgres')
    const schema = uniqueName()
    await administer({ dialect: 'postgres', target }, `create schema "${schema}"`)
    return {
      location: { dialect: 'postgres', target, schema },
      remove: () =>
        administer({ dialect: 'postgres', target }, `drop schema if exists "${schema}" cascade`),
    }
  },

  async mysql({ plain }) {
    const server = backendUrl('mysql')
    const name = uniqueName()
    const target = new URL(server)
    target.pathname = `/${name}`
    await administer({ dialect: 'mysql', target: server }, `create database \`${name}\``)
    return {
      location: { dialect: 'mysql', target: target.href, plain },
      remove: () =>
        administer({ dialect: 'mysql', target: server }, `drop database if exists \`${name}\``),
    }
  },
}

function uniqueName(): string {
  return `durable_test_${process.pid}_${randomBytes(6).toString('hex')}`
}

async function administer(location: DatabaseLocation, sql: string): Promise<void> {
  const db = openDatabase(location)
  try {
    await db.rawQuery(sql)
  } finally {
    await db.manager.closeAll()
  }
}

export interface StatementCounter {
  /** Statements sent since the start or the last `reset`, BEGIN, COMMIT and savepoints included. */
  readonly count: number
  /** Their SQL, in order, for the message of a failed assertion. */
  readonly texts: readonly string[]
  reset(): void
  stop(): void
}

/** Counts what a Database sends to its server, inside and outside transactions. */
export function countStatements(db: Database, connectionName = CONNECTION): StatementCounter {
  db.manager.connect(connectionName)
  const connection = db.getRawConnection(connectionName)?.connection
  const clients = new Set(
    [connection?.client, connection?.readClient].filter((c) => c !== undefined)
  )
  const texts: string[] = []
  const record = ({ sql }: { sql: string }) => void texts.push(sql)
  for (const client of clients) client.on('query', record)
  return {
    get count() {
      return texts.length
    },
    texts,
    reset() {
      texts.length = 0
    },
    stop() {
      for (const client of clients) client.removeListener('query', record)
    },
  }
}
