/*
 * Keys of workers and pods in a table. A key that expired counts as gone and is deleted by the janitor.
 */
import type { Database } from '@adonisjs/lucid/database'
import { type Clock, systemClock } from '../../foundation/clock.ts'
import { startsWith } from '../../sql/dialect.ts'
import { Session } from '../../sql/session.ts'
import type { WorkerKeyStore } from '../worker_keys.ts'
import { createWorkerKeysTable, type TransportTablesOptions } from './schema.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'

/** How often keys that expired are deleted, in ms. */
const SWEEP_MS = 60_000

export class TableKeys implements WorkerKeyStore {
  readonly #session: Session
  readonly #clock: Clock
  readonly #ready: () => Promise<void>

  constructor(session: Session, clock: Clock, ready: () => Promise<void>) {
    this.#session = session
    this.#clock = clock
    this.#ready = ready
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#ready()
    const now = this.#clock()
    const { dialect } = this.#session
    await this.#session.change(
      `INSERT INTO ${T.workerKeys} (key_name, value, beat_at, expires_at) VALUES (?, ?, ?, ?)
       ${dialect.replacing('key_name', ['value', 'beat_at', 'expires_at'])}`,
      [key, value, now, now + ttlMs]
    )
  }

  async list(prefix: string): Promise<{ key: string; value: string; at: number }[]> {
    await this.#ready()
    const { text, bindings } = startsWith('key_name', prefix)
    const rows = await this.#session.run(
      `SELECT key_name, value, beat_at FROM ${T.workerKeys} WHERE ${text} AND expires_at > ?`,
      [...bindings, this.#clock()]
    )
    return rows.map((row) => ({
      key: String(row.key_name),
      value: String(row.value),
      at: Number(row.beat_at),
    }))
  }

  async delete(keys: string[]): Promise<void> {
    await this.#ready()
    const { dialect } = this.#session
    await this.#session.change(
      `DELETE FROM ${T.workerKeys} WHERE ${dialect.isIn('key_name', 'text')}`,
      [dialect.list(keys)]
    )
  }

  async dropExpired(): Promise<void> {
    await this.#session.change(`DELETE FROM ${T.workerKeys} WHERE expires_at < ?`, [this.#clock()])
  }
}

/**
 * Keys for a transport whose messages are elsewhere. Its one table is created at the first use; each
 * process that sets keys deletes those that expired, too.
 */
class DatabaseKeys extends TableKeys {
  readonly #clock: Clock
  #sweptAt = 0

  constructor(session: Session, clock: Clock, ready: () => Promise<void>) {
    super(session, clock, ready)
    this.#clock = clock
  }

  override async set(key: string, value: string, ttlMs: number): Promise<void> {
    await super.set(key, value, ttlMs)
    const now = this.#clock()
    if (now - this.#sweptAt < SWEEP_MS) return
    this.#sweptAt = now
    await this.dropExpired()
  }
}

export function databaseKeys(
  db: Database,
  { clock = systemClock, ...options }: TransportTablesOptions & { clock?: Clock } = {}
): WorkerKeyStore {
  const session = new Session(db)
  let ready: Promise<void> | undefined
  const provision = async () => {
    try {
      await createWorkerKeysTable(session, options)
    } catch (error) {
      ready = undefined
      throw error
    }
  }
  return new DatabaseKeys(session, clock, () => (ready ??= provision()))
}
