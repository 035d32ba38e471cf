/*
 * The way to the database. Statements go through the write client of the Lucid connection, never to a
 * replica (a caller must see what the one before it wrote) and not through query builders: half of what a
 * small statement costs is spent there. Owns retries, transactions and the wrapping of driver errors.
 */
import { createHash } from 'node:crypto'
import type { Database } from '@adonisjs/lucid/database'
import type { QueryClientContract, TransactionClientContract } from '@adonisjs/lucid/types/database'
import { StoreUnavailableError, TransactionSpoiledError } from '../../errors.ts'
import { debug } from '../../foundation/debug.ts'
import { sleepOn, systemTimers } from '../../foundation/clock.ts'
import { DurableError, messageOf } from '../../foundation/failure.ts'
import { type Binding, codeOf, type Dialect, dialectOf } from './dialect.ts'

export type Row = Record<string, unknown>

/** Runs statements, inside a transaction or not. Texts are written with `?` or, on Postgres, `$n`. */
export interface Sql {
  readonly dialect: Dialect
  /** One of the fixed statements: its plan is kept by the server or the driver. */
  run(text: string, bindings: readonly Binding[]): Promise<Row[]>
  /** A statement put together for one call: nothing is kept of it. */
  adhoc(text: string, bindings: readonly Binding[]): Promise<Row[]>
}

/** What we use of a knex client, which its types leave open. */
interface KnexClient {
  readonly transacting?: boolean
  readonly driverName?: string
  acquireConnection(): Promise<Connection>
  releaseConnection(connection: Connection): unknown
  acquireRawConnection(): Promise<OwnConnection>
  query(connection: Connection, query: object): Promise<{ response?: unknown }>
  emit(event: 'query', query: object): void
}

interface Connection {
  __knexUid?: string
  /** Set: the pool throws the connection away. */
  __knex__disposed?: unknown
  prepare?(text: string): PreparedStatement
  /** Of better-sqlite3. */
  readonly inTransaction?: boolean
  exec?(text: string): unknown
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

/** A text as the driver takes it, and the name of its plan on the server. */
interface Statement {
  readonly text: string
  readonly name?: string
}

interface PreparedStatement {
  readonly reader: boolean
  safeIntegers(on: boolean): unknown
  all(bindings: readonly Binding[]): Row[]
  run(bindings: readonly Binding[]): unknown
}

const ATTEMPTS = 4
const BUSY_PAUSE_MS = 20
const SAVEPOINT = 'durable_store'
const log = debug('lucid')

/** Statements of a better-sqlite3 connection: to compile one costs more than to run it. */
const compiled = new WeakMap<Connection, Map<string, PreparedStatement>>()
const MAX_KEPT = 500

export class Session implements Sql {
  readonly #db: Database
  readonly #connectionName: string
  readonly #statements = new Map<string, Statement>()
  #dialect?: Dialect
  /** Part of the plan names; a new number means new plans. False: no plans on the server. */
  #plans: number | false = 0

  constructor(db: Database, connectionName?: string) {
    this.#db = db
    this.#connectionName = connectionName ?? db.primaryConnectionName
  }

  /** The Lucid client of the store's connection, a global transaction included. */
  lucid(): QueryClientContract {
    return this.#db.connection(this.#connectionName)
  }

  /** Whether this is Postgres, without opening anything. */
  get isPostgres(): boolean {
    const client = this.#db.manager.get(this.#connectionName)?.config.client
    return client !== undefined && ['pg', 'postgres', 'postgresql'].includes(client)
  }

  /** Postgres: a new connection with the settings of the pool's, which the caller ends. */
  openConnection(): Promise<OwnConnection> {
    this.#db.manager.connect(this.#connectionName)
    const { connection } = this.#db.getRawConnection(this.#connectionName)!
    const client = connection!.client!.client as KnexClient
    return client.acquireRawConnection()
  }

  get dialect(): Dialect {
    return (this.#dialect ??= dialectOf(this.lucid().dialect.name))
  }

  run(text: string, bindings: readonly Binding[]): Promise<Row[]> {
    return this.#retried((client) =>
      onConnection(client, (connection) => this.#send(client, connection, text, bindings, true))
    )
  }

  adhoc(text: string, bindings: readonly Binding[]): Promise<Row[]> {
    return this.#retried((client) =>
      onConnection(client, (connection) => this.#send(client, connection, text, bindings, false))
    )
  }

  /**
   * Runs `work` in a transaction that takes SQLite's write lock at once; all of it again when the
   * database asks for that. So `work` may do nothing but statements.
   */
  atomically<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#retried((client) =>
      onConnection(client, async (connection) => {
        const plain = (text: string) => this.#send(client, connection, text, [], false)
        const nested = client.transacting === true
        await plain(nested ? `SAVEPOINT ${SAVEPOINT}` : this.#begin())
        try {
          const result = await work(this.#on(client, connection))
          await plain(nested ? `RELEASE SAVEPOINT ${SAVEPOINT}` : 'COMMIT')
          return result
        } catch (error) {
          await rollback(connection, () =>
            plain(nested ? `ROLLBACK TO SAVEPOINT ${SAVEPOINT}` : 'ROLLBACK')
          )
          throw error
        }
      })
    )
  }

  /** Statements through a Lucid client somebody else opened: a transaction's. */
  async within<T>(lucid: QueryClientContract, work: (sql: Sql) => Promise<T>): Promise<T> {
    const client = clientOf(lucid)
    try {
      return await onConnection(client, (connection) => work(this.#on(client, connection)))
    } catch (error) {
      throw asStoreError(error)
    }
  }

  /**
   * Commits a transaction, or rejects with what the database said. knex keeps the failure of a COMMIT to
   * itself, and on SQLite it hands on the connection with the transaction still open.
   */
  async commit(trx: TransactionClientContract): Promise<void> {
    const nested = clientOf(this.lucid()).transacting === true
    const connection = await clientOf(trx).acquireConnection()
    // Settled before the connection goes back to the pool.
    const outcome = trx.knexClient.executionPromise.then(
      () => undefined,
      (error: unknown) => {
        if (!nested) this.#closeTransaction(connection, error)
        return { error }
      }
    )
    const sent = (await trx.knexClient.commit()) as { response?: { command?: string } } | undefined
    const failed = await outcome
    if (failed) throw withoutStatement(failed.error, 'COMMIT;')
    // How Postgres answers the COMMIT of a transaction that it has given up.
    if (sent?.response?.command === 'ROLLBACK') throw new TransactionSpoiledError()
  }

  #closeTransaction(connection: Connection, error: unknown): void {
    if (connection.inTransaction) connection.exec!('ROLLBACK')
    else if (connection.exec === undefined && this.dialect.name === 'sqlite')
      connection.__knex__disposed = error
    else if (this.dialect.breaksConnection(error)) connection.__knex__disposed = error
  }

  #begin(): string {
    // Whatever the default of the connection: what is read under a lock must be read after it was taken.
    return this.dialect.name === 'sqlite'
      ? 'BEGIN IMMEDIATE'
      : 'BEGIN ISOLATION LEVEL READ COMMITTED'
  }

  #on(client: KnexClient, connection: Connection): Sql {
    return {
      dialect: this.dialect,
      run: (text, bindings) => this.#send(client, connection, text, bindings, true),
      adhoc: (text, bindings) => this.#send(client, connection, text, bindings, false),
    }
  }

  async #retried<T>(attempt: (client: KnexClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const client = clientOf(this.lucid())
      try {
        return await attempt(client)
      } catch (error) {
        // A failed statement ends the transaction around it: only who opened that can send it again.
        const again = tries < ATTEMPTS && !client.transacting && this.#remedy(error)
        if (!again) throw asStoreError(error)
        log('attempt %d failed with %s, once more', tries, codeOf(error))
        if (this.dialect.name === 'sqlite') await sleepOn(systemTimers, BUSY_PAUSE_MS * tries)
      }
    }
  }

  #remedy(error: unknown): boolean {
    const remedy = this.dialect.remedy(error)
    if (remedy === 'unprepared') this.#plans = false
    if (remedy === 'replan' && this.#plans !== false) this.#plans += 1
    return remedy !== undefined
  }

  async #send(
    client: KnexClient,
    connection: Connection,
    text: string,
    bindings: readonly Binding[],
    keep: boolean
  ): Promise<Row[]> {
    if (client.driverName === 'better-sqlite3')
      return sendDirectly(client, connection, text, bindings)
    const statement: Statement = keep ? this.#statement(text) : { text: this.dialect.place(text) }
    const planned = statement.name !== undefined && this.#plans !== false
    const options = planned ? { name: `${statement.name}_${this.#plans}` } : undefined
    const query = { method: 'raw', sql: statement.text, bindings, options }
    try {
      const { response } = await client.query(connection, query)
      return rowsOf(response)
    } catch (error) {
      if (this.dialect.breaksConnection(error)) connection.__knex__disposed = error
      throw withoutStatement(error, statement.text)
    }
  }

  #statement(text: string): Statement {
    let statement = this.#statements.get(text)
    if (!statement) {
      const placed = this.dialect.place(text)
      const digest = createHash('sha1').update(placed).digest('hex').slice(0, 20)
      statement = { text: placed, name: this.dialect.plans ? `durable_${digest}` : undefined }
      // The texts are few; should a caller's patches make them many, the server does not keep them all.
      if (this.#statements.size >= MAX_KEPT) return { text: placed }
      this.#statements.set(text, statement)
    }
    return statement
  }
}

const clientOf = (lucid: QueryClientContract): KnexClient =>
  lucid.getWriteClient().client as KnexClient

async function onConnection<T>(
  client: KnexClient,
  work: (connection: Connection) => Promise<T>
): Promise<T> {
  const connection = await client.acquireConnection()
  try {
    return await work(connection)
  } finally {
    await client.releaseConnection(connection)
  }
}

/** A connection that cannot be rolled back is not handed to anybody else. */
async function rollback(connection: Connection, send: () => Promise<unknown>): Promise<void> {
  try {
    await send()
  } catch (error) {
    // SQLite rolls back by itself on some errors and then has nothing left to roll back.
    if (!/no transaction is active/.test(messageOf(error))) connection.__knex__disposed = error
  }
}

async function sendDirectly(
  client: KnexClient,
  connection: Connection,
  text: string,
  bindings: readonly Binding[]
): Promise<Row[]> {
  client.emit('query', { __knexUid: connection.__knexUid, method: 'raw', sql: text, bindings })
  const statement = compile(connection, text)
  if (statement.reader) return statement.all(bindings)
  statement.run(bindings)
  return []
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

function rowsOf(response: unknown): Row[] {
  if (Array.isArray(response)) return response as Row[]
  return (response as { rows?: Row[] } | undefined)?.rows ?? []
}

/** knex puts the statement before the message, payloads included on SQLite: that is nobody's business. */
function withoutStatement(error: unknown, text: string): unknown {
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
