/*
 * The way to the database. Statements go through the write client of the Lucid connection, never to a
 * replica (a caller must see what the one before it wrote) and not through query builders: half of what a
 * small statement costs is spent there. Owns retries, transactions and the wrapping of driver errors.
 */
import { createHash } from 'node:crypto'
import type { Database } from '@adonisjs/lucid/database'
import type { QueryClientContract, TransactionClientContract } from '@adonisjs/lucid/types/database'
import { TransactionSpoiledError } from '../errors.ts'
import { backoffDelay } from '../foundation/backoff.ts'
import { debug } from '../foundation/debug.ts'
import { bestEffort } from '../foundation/failure.ts'
import { sleepOn, systemTimers } from '../foundation/clock.ts'
import {
  type Answer,
  asStoreError,
  type Changed,
  clientOf,
  type Connection,
  isMariaDb,
  type KnexClient,
  onConnection,
  type OwnConnection,
  readAnswer,
  rollback,
  type Row,
  sendDirectly,
  withoutStatement,
} from './connections.ts'
import { type Binding, codeOf, type Dialect, dialectOf } from './dialect.ts'

export type { OwnConnection, Row } from './connections.ts'
export { asStoreError } from './connections.ts'

/** Runs statements, inside a transaction or not. Texts are written with `?` or, on Postgres, `$n`. */
export interface Sql {
  readonly dialect: Dialect
  /** One of the fixed statements: its plan is kept by the server or the driver. */
  run(text: string, bindings: readonly Binding[]): Promise<Row[]>
  /** A statement put together for one call: nothing is kept of it. */
  adhoc(text: string, bindings: readonly Binding[]): Promise<Row[]>
  /** As `run`, for a statement that writes and answers no rows. */
  change(text: string, bindings: readonly Binding[]): Promise<Changed>
}

/** A text as the driver takes it, and the name of its plan on the server. */
interface Statement {
  readonly text: string
  readonly name?: string
}

/** `keep`: one of the fixed statements. `changes`: it writes and answers no rows. */
interface Sending {
  keep?: boolean
  changes?: boolean
}

const ATTEMPTS = 4
const BUSY_PAUSE_MS = 20
const CROWDED = { backoff: 'exp', backoffMs: 10, jitter: true } as const
const SAVEPOINT = 'durable_store'
const log = debug('lucid')
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
    return this.#alone((sql) => sql.run(text, bindings))
  }

  adhoc(text: string, bindings: readonly Binding[]): Promise<Row[]> {
    return this.#alone((sql) => sql.adhoc(text, bindings))
  }

  change(text: string, bindings: readonly Binding[]): Promise<Changed> {
    return this.#alone((sql) => sql.change(text, bindings))
  }

  /**
   * Statements on one connection, without a transaction and sent once: for what commits by itself (DDL of
   * MySQL) or what belongs to a connection (its named locks).
   */
  async pinned<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.within(this.lucid(), work)
  }

  /**
   * MariaDB: one statement that is a whole transaction, written with `compound`. Undefined on MySQL, and
   * inside a transaction that somebody else opened, which it would commit.
   */
  async compound(text: string, bindings: readonly Binding[]): Promise<Row | undefined> {
    return this.#retried(async (client) => {
      if (client.transacting) return undefined
      return onConnection(client, async (connection) => {
        if (!isMariaDb(connection)) return undefined
        const { rows } = await this.#send(client, connection, text, bindings, {})
        return rows[0]
      })
    })
  }

  /**
   * Runs `work` in a transaction that takes SQLite's write lock at once; all of it again when the
   * database asks for that. So `work` may do nothing but statements.
   */
  atomically<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#retried((client) =>
      onConnection(client, async (connection) => {
        const plain = (text: string) => this.#send(client, connection, text, [], {})
        const nested = client.transacting === true
        const opening = nested ? [`SAVEPOINT ${SAVEPOINT}`] : this.#begin(connection)
        for (const text of opening) await plain(text)
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
   * Rejects with why the BEGIN of a transaction failed: knex keeps that to itself and hands it out, ended.
   * A server may have begun it all the same: its connection is not given to anybody else.
   */
  async assertBegun(trx: TransactionClientContract): Promise<void> {
    if (!trx.isCompleted) return
    const own = clientOf(this.lucid()).transacting !== true && this.dialect.name !== 'sqlite'
    const connection = await clientOf(trx).acquireConnection()
    if (own) connection.__knex__disposed = new Error('its BEGIN failed')
    await trx.knexClient.executionPromise
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

  /**
   * Rolls a transaction back. Answers why that was not possible, if so: its connection is gone, and with it
   * everything it did. knex keeps that to itself too.
   */
  async rollback(trx: TransactionClientContract): Promise<unknown> {
    const nested = clientOf(this.lucid()).transacting === true
    const connection = await clientOf(trx).acquireConnection()
    const undone = new Error('rolled back')
    // As for a commit.
    const outcome = trx.knexClient.executionPromise.then(
      () => undefined,
      (error: unknown) => {
        if (error === undone) return undefined
        if (!nested) this.#closeTransaction(connection, error)
        return error
      }
    )
    await bestEffort('the outcome tells', trx.knexClient.rollback(undone))
    return outcome
  }

  /**
   * That an end which failed has ended the transaction is certain only where data were refused. What is
   * thrown out of the pool is closed by whoever asks the pool next, and holds its locks until then.
   */
  #closeTransaction(connection: Connection, error: unknown): void {
    if (connection.inTransaction) connection.exec!('ROLLBACK')
    else if (this.dialect.name === 'sqlite') {
      if (connection.exec === undefined) connection.__knex__disposed = error
    } else if (!this.dialect.refusesData(error)) {
      connection.__knex__disposed = error
      const closed = clientOf(this.lucid()).destroyRawConnection(connection)
      void bestEffort('the pool closes it', Promise.resolve(closed))
    }
  }

  /** Whatever the default of the connection: what is read under a lock must be read after it was taken. */
  #begin(connection: Connection): string[] {
    if (this.dialect.name === 'sqlite') return ['BEGIN IMMEDIATE']
    if (this.dialect.name === 'postgres') return ['BEGIN ISOLATION LEVEL READ COMMITTED']
    const opening = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION']
    return isMariaDb(connection) ? [`BEGIN NOT ATOMIC ${opening.join('; ')}; END`] : opening
  }

  #alone<T>(send: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#retried((client) =>
      onConnection(client, (connection) => send(this.#on(client, connection)))
    )
  }

  #on(client: KnexClient, connection: Connection): Sql {
    const send = (text: string, bindings: readonly Binding[], how: Sending) =>
      this.#send(client, connection, text, bindings, how)
    return {
      dialect: this.dialect,
      async run(text, bindings) {
        const { rows } = await send(text, bindings, { keep: true })
        return rows
      },
      async adhoc(text, bindings) {
        const { rows } = await send(text, bindings, {})
        return rows
      },
      async change(text, bindings) {
        const { changed } = await send(text, bindings, { keep: true, changes: true })
        return changed
      },
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
        // Postgres is quick to find a deadlock; those of MySQL come in crowds.
        if (this.dialect.name !== 'postgres') await sleepOn(systemTimers, this.#pause(tries))
      }
    }
  }

  #pause(tries: number): number {
    return this.dialect.name === 'sqlite' ? BUSY_PAUSE_MS * tries : backoffDelay(tries, CROWDED)
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
    { keep, changes }: Sending
  ): Promise<Answer> {
    if (client.driverName === 'better-sqlite3')
      return sendDirectly(client, connection, text, bindings)
    const statement: Statement = keep ? this.#statement(text) : { text: this.dialect.place(text) }
    const planned = statement.name !== undefined && this.#plans !== false
    const options = planned ? { name: `${statement.name}_${this.#plans}` } : undefined
    // The method tells knex's other SQLite driver to count what changes.
    const query = { method: changes ? 'del' : 'raw', sql: statement.text, bindings, options }
    try {
      return readAnswer(client.driverName, await client.query(connection, query))
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
