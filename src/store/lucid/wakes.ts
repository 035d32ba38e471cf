/*
 * Wake hints between processes, over LISTEN and NOTIFY of Postgres. Listening takes a connection of its
 * own: one of the pool would be missing there, and a pooler in between may hand it to somebody else. It is
 * opened for the first listener, opened again when it is lost, and ended with the last. What was said
 * meanwhile is lost; polls find it (invariant 9).
 */
import { backoffDelay } from '../../foundation/backoff.ts'
import { type Cancel, sleepOn, systemTimers } from '../../foundation/clock.ts'
import { debug } from '../../foundation/debug.ts'
import { bestEffort, isolate, messageOf } from '../../foundation/failure.ts'
import type { WakeHint, WakeHints } from '../ports/wake_hints.ts'
import type { OwnConnection, Session } from './session.ts'

type Listener = (hint: WakeHint) => void

/** Of a database's schema: the tables of another one hold other runs. */
const CHANNEL = `'durable_wake_' || md5(coalesce(current_schema(), ''))`
/** Postgres takes 8,000 bytes. */
const MOST_BYTES = 7_000
const AGAIN = { backoff: 'exp', backoffMs: 100, backoffMaxMs: 10_000, jitter: true } as const
const KEEP_ALIVE_MS = 60_000
/** How long anybody waits for a network that does not answer. */
const PATIENCE_MS = 5_000
const log = debug('lucid')

export class WakeChannel implements WakeHints {
  readonly #session: Session
  readonly #listeners = new Set<Listener>()
  #line?: Line

  constructor(session: Session) {
    this.#session = session
  }

  /** Rejects with `StoreUnavailableError`; nothing but latency depends on it. */
  async notifyWake(hint: WakeHint): Promise<void> {
    const { dialect } = this.#session
    await this.#session.run(`SELECT pg_notify(${CHANNEL}, hint) FROM unnest(?::text[]) AS hint`, [
      dialect.list(pieces(hint)),
    ])
  }

  /** Resolves once the database was asked to listen, even if it could not be reached. */
  async onWake(listener: Listener): Promise<() => Promise<void>> {
    const own: Listener = (hint) => listener(hint)
    this.#listeners.add(own)
    this.#line ??= new Line(this.#session, (text) => this.#hear(text))
    await this.#line.ready
    return async () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) await this.close()
    }
  }

  /** Nobody is called back any more, and the connection is gone. */
  async close(): Promise<void> {
    this.#listeners.clear()
    const line = this.#line
    this.#line = undefined
    await line?.close()
  }

  #hear(text: string | undefined): void {
    const hint = readHint(text)
    if (!hint) return
    for (const listener of this.#listeners) {
      isolate(() => listener({ namespace: hint.namespace, runIds: [...hint.runIds] }))
    }
  }
}

/** A connection that listens, and its successors. */
class Line {
  /** The first attempt is over, or takes too long. */
  readonly ready: Promise<void>
  readonly #session: Session
  readonly #hear: (text: string | undefined) => void
  #connection?: OwnConnection
  #attempt: Promise<void>
  #failures = 0
  #retry?: Cancel
  #closed = false

  constructor(session: Session, hear: (text: string | undefined) => void) {
    this.#session = session
    this.#hear = hear
    this.#attempt = this.#connect()
    this.ready = patiently(this.#attempt)
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
      connection = await this.#session.openConnection()
      await this.#listen(connection)
      if (this.#closed) return await this.#end(connection)
      this.#connection = connection
      this.#failures = 0
    } catch (error) {
      log('listening for wake hints failed: %s', messageOf(error))
      if (connection) await this.#end(connection)
      this.#again()
    }
  }

  async #listen(connection: OwnConnection): Promise<void> {
    connection.on('notification', ({ payload }) => this.#hear(payload))
    connection.on('error', (error) => log('the listening connection failed: %s', messageOf(error)))
    connection.on('end', () => this.#lost(connection))
    // A network in between may forget a connection on which nothing is said.
    connection.connection?.stream?.setKeepAlive?.(true, KEEP_ALIVE_MS)
    const { rows } = await connection.query(`SELECT ${CHANNEL} AS channel`)
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

/** A hint as texts that one notification can carry. */
function pieces({ namespace, runIds }: WakeHint): string[] {
  const texts: string[] = []
  let ids: string[] = []
  let bytes = 0
  const flush = () => void texts.push(JSON.stringify({ namespace, runIds: ids }))
  for (const id of runIds) {
    const size = Buffer.byteLength(JSON.stringify(id)) + 1
    if (ids.length > 0 && bytes + size > MOST_BYTES) {
      flush()
      ids = []
      bytes = 0
    }
    ids.push(id)
    bytes += size
  }
  flush()
  return texts
}

/** Anybody may notify on a channel: undefined for what is no hint. */
function readHint(text: string | undefined): WakeHint | undefined {
  try {
    const { namespace, runIds } = JSON.parse(text ?? '') as WakeHint
    const isHint = typeof namespace === 'string' && runIds.every((id) => typeof id === 'string')
    return isHint ? { namespace, runIds } : undefined
  } catch {
    return undefined
  }
}
