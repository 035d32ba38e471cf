/*
 * What the store uses of knex and of the drivers below it, which their types leave open, and how their
 * answers and errors are read.
 */
import type { QueryClientContract } from '@adonisjs/lucid/types/database'
import { StoreUnavailableError } from '../errors.ts'
import { DurableError, messageOf } from '../foundation/failure.ts'
import type { Binding } from './dialect.ts'

export type Row = Record<string, unknown>

/** What a statement that writes came to. */
export interface Changed {
  /** Rows inserted, deleted or matched; of an upsert at least one when something was written. */
  rows: number
  /** MySQL: what `LAST_INSERT_ID(…)` was given. */
  id?: number
  /** MySQL: whether a transaction was open afterwards. */
  inTransaction?: boolean
}

interface KnexAnswer {
  response?: unknown
  /** Of the `sqlite3` driver. */
  context?: { changes?: number }
}

export interface KnexClient {
  readonly transacting?: boolean
  readonly driverName?: string
  /** Gone once it is closed. */
  readonly pool?: { readonly destroyed?: boolean }
  acquireConnection(): Promise<Connection>
  releaseConnection(connection: Connection): unknown
  acquireRawConnection(): Promise<OwnConnection>
  destroyRawConnection(connection: Connection): unknown
  query(connection: Connection, query: object): Promise<KnexAnswer>
  emit(event: 'query', query: object): void
}

export interface Connection {
  __knexUid?: string
  /** Set: the pool throws the connection away. */
  __knex__disposed?: unknown
  prepare?(text: string): PreparedStatement
  /** Of better-sqlite3. */
  readonly inTransaction?: boolean
  exec?(text: string): unknown
  /** Of mysql2. */
  readonly _handshakePacket?: { serverVersion?: string }
}

/** What we use of a connection of the `pg` driver. */
export interface OwnConnection {
  readonly connection?: { stream?: { setKeepAlive?(on: boolean, ms: number): unknown } }
  on(event: 'notification', listener: (message: { payload?: string }) => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'end', listener: () => void): unknown
  query(text: string): Promise<{ rows: Row[] }>
  unref(): void
  end(): Promise<void>
}

interface PreparedStatement {
  readonly reader: boolean
  safeIntegers(on: boolean): unknown
  all(bindings: readonly Binding[]): Row[]
  run(bindings: readonly Binding[]): { changes: number }
}

/** Statements of a better-sqlite3 connection: to compile one costs more than to run it. */
const compiled = new WeakMap<Connection, Map<string, PreparedStatement>>()
const MAX_KEPT = 500

export const clientOf = (lucid: QueryClientContract): KnexClient =>
  lucid.getWriteClient().client as KnexClient

export async function onConnection<T>(
  client: KnexClient,
  work: (connection: Connection) => Promise<T>
): Promise<T> {
  // A pool that is being closed answers nobody: who asks it waits until its patience is over.
  if (client.pool?.destroyed) throw new Error('the connection is being closed')
  const connection = await client.acquireConnection()
  try {
    return await work(connection)
  } finally {
    await client.releaseConnection(connection)
  }
}

/** A connection that cannot be rolled back is not handed to anybody else. */
export async function rollback(
  connection: Connection,
  send: () => Promise<unknown>
): Promise<void> {
  try {
    await send()
  } catch (error) {
    // SQLite rolls back by itself on some errors and then has nothing left to roll back.
    if (!/no transaction is active/.test(messageOf(error))) connection.__knex__disposed = error
  }
}

/** Past knex: on a driver that answers at once most of a statement's time would be its. */
export function sendDirectly(
  client: KnexClient,
  connection: Connection,
  text: string,
  bindings: readonly Binding[]
): Answer {
  client.emit('query', { __knexUid: connection.__knexUid, method: 'raw', sql: text, bindings })
  const statement = compile(connection, text)
  if (statement.reader) {
    const rows = statement.all(bindings)
    return { rows, changed: { rows: rows.length } }
  }
  return { rows: [], changed: { rows: statement.run(bindings).changes } }
}

function compile(connection: Connection, text: string): PreparedStatement {
  let statements = compiled.get(connection)
  if (!statements) compiled.set(connection, (statements = new Map()))
  const known = statements.get(text)
  if (known) return known
  if (statements.size >= MAX_KEPT) statements.clear()
  const statement = connection.prepare!(text)
  // Whatever the application chose for its own: nothing here is beyond a double.
  statement.safeIntegers(false)
  statements.set(text, statement)
  return statement
}

/** Rows, of a statement that answers some, and what it changed. */
export interface Answer {
  rows: Row[]
  changed: Changed
}

interface PostgresAnswer {
  rows?: Row[]
  rowCount?: number | null
}

interface MysqlHeader {
  affectedRows: number
  insertId: number
  serverStatus?: number
}

const IN_TRANSACTION = 1

/** An answer as the drivers behind knex give it. */
export function readAnswer(
  driverName: string | undefined,
  { response, context }: KnexAnswer
): Answer {
  if (driverName === 'mysql2') return readMysql((response as unknown[])[0])
  if (Array.isArray(response))
    return { rows: response as Row[], changed: { rows: response.length } }
  if (context?.changes !== undefined) return { rows: [], changed: { rows: context.changes } }
  const { rows = [], rowCount } = (response ?? {}) as PostgresAnswer
  return { rows, changed: { rows: rowCount ?? rows.length } }
}

/** Of a compound statement mysql2 answers what each part of it answered, and a header. */
function readMysql(answer: unknown): Answer {
  if (!Array.isArray(answer)) {
    const { affectedRows, insertId, serverStatus } = answer as MysqlHeader
    const inTransaction = serverStatus === undefined || (serverStatus & IN_TRANSACTION) !== 0
    return { rows: [], changed: { rows: affectedRows, id: insertId, inTransaction } }
  }
  const rows = (Array.isArray(answer[0]) ? answer[0] : answer) as Row[]
  return { rows, changed: { rows: rows.length } }
}

export const isMariaDb = ({ _handshakePacket: hello }: Connection): boolean =>
  hello?.serverVersion?.includes('MariaDB') ?? false

/** knex puts the statement before the message, payloads included on SQLite: that is nobody's business. */
export function withoutStatement(error: unknown, text: string): unknown {
  if (!(error instanceof Error)) return error
  const prefix = `${text} - `
  if (error.message.startsWith(prefix)) error.message = error.message.slice(prefix.length)
  else if (error.message.includes(' - ')) {
    error.message = error.message.slice(error.message.lastIndexOf(' - ') + 3)
  }
  return error
}

/** Errors of this package as they are, everything else as an unavailable store. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof DurableError) return error
  return new StoreUnavailableError(
    `the store could not be reached or failed: ${messageOf(error)}`,
    {
      cause: error,
    }
  )
}
