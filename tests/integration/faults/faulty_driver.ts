/*
 * A fault in one statement, where the driver takes it: below knex, Lucid and the store, for statements of
 * the store and of user code alike. What a fault leaves of a connection or a transaction is the database's
 * own doing: servers refuse by raising, connections lose their socket.
 */
import type { Database } from '@adonisjs/lucid/database'
import { CONNECTION, type Dialect } from '../../helpers/databases.ts'

export const FAULTS = {
  'refused': 'the statement fails, for a reason that is not tried again',
  'again': 'the statement fails as the loser of a deadlock, or on a busy file',
  'applied': 'the statement is executed, and its answer does not come in time',
  'dropped': 'the connection is gone before the statement arrives',
  'unanswered': 'the connection is gone after the statement was executed',
  'dies before': 'the process dies before the statement',
  'dies after': 'the process dies after the statement',
} as const
export type Fault = keyof typeof FAULTS

/** SQLite has no connection that could be lost without its process. */
export function faultsOf(dialect: Dialect): Fault[] {
  const all = Object.keys(FAULTS) as Fault[]
  return dialect === 'sqlite' ? all.filter((f) => f !== 'dropped' && f !== 'unanswered') : all
}

const raise = (code: string) => `DO $$ BEGIN RAISE 'injected' USING ERRCODE = '${code}'; END $$`
const signal = (state: string, errno: number) =>
  `SIGNAL SQLSTATE '${state}' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'injected'`

/** Statements that fail like this on the server: full disks, lost deadlocks. */
const REFUSALS = {
  postgres: { refused: raise('53100'), again: raise('40P01') },
  mysql: { refused: signal('HY000', 1021), again: signal('40001', 1213) },
} as const
const SQLITE_CODES = { refused: 'SQLITE_FULL', again: 'SQLITE_BUSY' } as const

function failure(code: string): Error {
  return Object.assign(new Error(`injected: ${code}`), { code })
}

type Callback = (error: unknown, answer?: unknown, fields?: unknown) => void
type Send = (...args: unknown[]) => unknown

interface Socket {
  destroy(): void
  once(event: 'close', listener: () => void): unknown
}

interface ServerConnection {
  query(...args: unknown[]): unknown
  /** Of pg. */
  connection?: { stream?: Socket }
  /** Of mysql2. */
  stream?: Socket
}

interface SqliteConnection {
  prepare(text: string): Record<string, Send>
  close(): void
}

export interface Strike {
  /** From 0, of the statements since `arm`. */
  statement: number
  fault: Fault
}

export class FaultyDriver {
  /** Statements since `arm`, in order. */
  readonly texts: string[] = []
  /** The text of the statement that was struck. */
  struck?: string
  readonly #dialect: Dialect
  #strike?: Strike
  #onDeath: () => void = () => {}
  #armed = false
  #dead = false

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /** Before the Database opens its first connection. */
  install(db: Database): void {
    const { config } = db.manager.get(CONNECTION)!
    const { afterCreate: before, ...pool } = config.pool ?? {}
    const wrap = (connection: object) =>
      this.#dialect === 'sqlite'
        ? this.#wrapSqlite(connection as SqliteConnection)
        : this.#wrapServer(connection as ServerConnection)
    config.pool = {
      ...pool,
      afterCreate: (connection: object, done: (error?: unknown, c?: unknown) => void) => {
        if (this.#dead) {
          socketOf(connection as ServerConnection)?.destroy()
          return done(failure('DEAD'))
        }
        const finish = (error?: unknown) => {
          if (!error) wrap(connection)
          done(error, connection)
        }
        if (before) before(connection, finish)
        else finish()
      },
    }
  }

  /** Counts from here on; `onDeath` stops whoever would hear of it. */
  arm(strike?: Strike, onDeath: () => void = () => {}): void {
    this.#strike = strike
    this.#onDeath = onDeath
    this.#armed = true
  }

  #faultOf(text: string): Fault | undefined {
    if (!this.#armed) return undefined
    const index = this.texts.push(text) - 1
    if (!this.#strike || index !== this.#strike.statement) return undefined
    this.struck = text
    return this.#strike.fault
  }

  #die(): void {
    this.#dead = true
    this.#onDeath()
  }

  #wrapSqlite(connection: SqliteConnection): void {
    const prepare = connection.prepare.bind(connection)
    connection.prepare = (text) => {
      const statement = prepare(text)
      for (const name of ['all', 'run', 'get']) {
        const send = statement[name].bind(statement)
        statement[name] = (...args) => this.#onSqlite(connection, text, () => send(...args))
      }
      return statement
    }
  }

  #onSqlite(connection: SqliteConnection, text: string, send: () => unknown): unknown {
    if (this.#dead) throw failure('DEAD')
    const fault = this.#faultOf(text)
    if (!fault) return send()
    if (fault === 'refused' || fault === 'again') throw failure(SQLITE_CODES[fault])
    if (fault === 'applied') {
      // SQLite answers within the call: only what reaches the disk can succeed and fail at once.
      if (!/^BEGIN/.test(text)) send()
      throw failure('SQLITE_IOERR')
    }
    if (fault === 'dies after') send()
    this.#die()
    connection.close()
    throw failure('DEAD')
  }

  #wrapServer(connection: ServerConnection): void {
    const query = connection.query.bind(connection)
    connection.query = (...args) => {
      const last = args.at(-1)
      if (typeof last !== 'function') return query(...args)
      return this.#onServer(connection, query, args.slice(0, -1), last as Callback)
    }
  }

  #onServer(connection: ServerConnection, query: Send, args: unknown[], answer: Callback): unknown {
    const socket = socketOf(connection)!
    if (this.#dead) return answer(failure('DEAD'))
    const fault = this.#faultOf(textOf(args[0]))
    if (!fault) return query(...args, answer)
    if (fault === 'refused' || fault === 'again') {
      const text = REFUSALS[this.#dialect as 'postgres' | 'mysql'][fault]
      return query(this.#dialect === 'mysql' ? { sql: text } : { text }, answer)
    }
    if (fault === 'dropped') {
      socket.destroy()
      return query(...args, answer)
    }
    if (fault === 'dies before') {
      this.#die()
      return hangUp(socket, answer)
    }
    return query(...args, (error: unknown) => {
      if (fault === 'applied') return answer(error ?? new Error('injected: Query read timeout'))
      if (fault === 'dies after') this.#die()
      hangUp(socket, answer)
    })
  }
}

const socketOf = ({ connection, stream }: ServerConnection): Socket | undefined =>
  connection?.stream ?? stream

/** The driver hears of it before whoever waits for an answer. */
function hangUp(socket: Socket, answer: Callback): void {
  socket.once('close', () => setImmediate(answer, failure('ECONNRESET')))
  socket.destroy()
}

function textOf(query: unknown): string {
  if (typeof query === 'string') return query
  const { text, sql } = query as { text?: string; sql?: string }
  return text ?? sql ?? ''
}
