/*
 * A connection that listens to one channel of Postgres, and its successors. It is a connection of its own:
 * one of the pool would be missing there, and a pooler in between may hand it to somebody else. It is
 * opened again when it is lost; what was said meanwhile is lost too, so polls must find it (invariant 9).
 */
import { backoffDelay } from '../foundation/backoff.ts'
import { type Cancel, sleepOn, systemTimers } from '../foundation/clock.ts'
import { debug } from '../foundation/debug.ts'
import { bestEffort, messageOf } from '../foundation/failure.ts'
import type { OwnConnection, Session } from './session.ts'

const AGAIN = { backoff: 'exp', backoffMs: 100, backoffMaxMs: 10_000, jitter: true } as const
const KEEP_ALIVE_MS = 60_000
/** How long anybody waits for a network that does not answer. */
const PATIENCE_MS = 5_000
const log = debug('lucid')

export interface LineOptions {
  session: Session
  /** An SQL expression: the name of the channel. */
  channel: string
  hear(payload: string | undefined): void
  /** The database listens, for the first time or again: what was said before was not heard. */
  connected?(): void
}

export class ListeningLine {
  /** The first attempt is over, or takes too long. */
  readonly ready: Promise<void>
  readonly #options: LineOptions
  #connection?: OwnConnection
  #attempt: Promise<void>
  #failures = 0
  #retry?: Cancel
  #closed = false

  constructor(options: LineOptions) {
    this.#options = options
    this.#attempt = this.#connect()
    this.ready = patiently(this.#attempt)
  }

  /** Whether the database listens right now, as far as is known. */
  get open(): boolean {
    return this.#connection !== undefined
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#retry?.()
    await patiently(this.#attempt)
    const connection = this.#connection
    this.#connection = undefined
    if (connection) await this.#end(connection)
  }

  async #connect(): Promise<void> {
    let connection: OwnConnection | undefined
    try {
      connection = await this.#options.session.openConnection()
      await this.#listen(connection)
      if (this.#closed) return await this.#end(connection)
      this.#connection = connection
      this.#failures = 0
    } catch (error) {
      log('listening failed: %s', messageOf(error))
      if (connection) await this.#end(connection)
      return this.#again()
    }
    this.#options.connected?.()
  }

  async #listen(connection: OwnConnection): Promise<void> {
    connection.on('notification', ({ payload }) => this.#options.hear(payload))
    connection.on('error', (error) => log('the listening connection failed: %s', messageOf(error)))
    connection.on('end', () => this.#lost(connection))
    // A network in between may forget a connection on which nothing is said.
    connection.connection?.stream?.setKeepAlive?.(true, KEEP_ALIVE_MS)
    const { rows } = await connection.query(`SELECT ${this.#options.channel} AS channel`)
    await connection.query(`LISTEN "${String(rows[0].channel)}"`)
    // Listening is no reason for a process to stay.
    connection.unref()
  }

  #lost(connection: OwnConnection): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#again()
  }

  #again(): void {
    if (this.#closed) return
    this.#failures += 1
    this.#retry = systemTimers.after(backoffDelay(this.#failures, AGAIN), () => {
      this.#attempt = this.#connect()
    })
  }

  #end(connection: OwnConnection): Promise<void> {
    return patiently(bestEffort('a connection that is gone has ended', connection.end()))
  }
}

const patiently = (work: Promise<void>): Promise<void> =>
  Promise.race([work, sleepOn(systemTimers, PATIENCE_MS)])
