/*
 * Telling instead of asking, on Postgres: who wrote a row says so to those who listen. Statements of their
 * own, after the write and never inside it (transactions that notify commit one at a time), and what is
 * to be said while one is under way goes with the next. A lost nudge costs latency up to the poll.
 */
import { debug } from '../../foundation/debug.ts'
import { messageOf } from '../../foundation/failure.ts'
import { ListeningLine } from '../../sql/listening_line.ts'
import type { Session } from '../../sql/session.ts'

/** Of a database's schema: the tables of another one hold other tasks. */
const CHANNEL = `'durable_transport_' || md5(coalesce(current_schema(), ''))`
const log = debug('db transport')

/** What there may be: `tasks:<namespace>:<group>`, `results:<namespace>`, `messages:<namespace>:<kind>`. */
export type Topic = string

export const topics = {
  tasks: (namespace: string, group: string): Topic => `tasks:${namespace}:${group}`,
  results: (namespace: string): Topic => `results:${namespace}`,
  messages: (namespace: string, kind: string): Topic => `messages:${namespace}:${kind}`,
}

/** Told that there may be something; true when it goes and looks right away. */
export type Listener = () => boolean

export class Nudges {
  readonly #session: Session
  readonly #listeners = new Map<Topic, Set<Listener>>()
  #unsaid = new Set<Topic>()
  #saying?: Promise<void>
  #line?: ListeningLine
  #closed = false

  constructor(session: Session) {
    this.#session = session
  }

  /** Tells listeners of this process; when none of them looks right away, those of others. */
  tell(topic: Topic): void {
    if (this.#closed) return
    let heard = false
    for (const listener of this.#listeners.get(topic) ?? []) heard = listener() || heard
    if (!heard && this.#session.isPostgres) {
      this.#unsaid.add(topic)
      this.#saying ??= this.#say()
    }
  }

  /** Calls `listener` whenever there may be something, also after a time without a line. */
  listen(topic: Topic, listener: Listener): void {
    const known = this.#listeners.get(topic)
    if (known) known.add(listener)
    else this.#listeners.set(topic, new Set([listener]))
    if (this.#closed || !this.#session.isPostgres) return
    this.#line ??= new ListeningLine({
      session: this.#session,
      channel: CHANNEL,
      hear: (payload) => this.#hear(payload),
      connected: () => {
        for (const listeners of this.#listeners.values()) for (const each of listeners) each()
      },
    })
  }

  forget(topic: Topic, listener: Listener): void {
    const known = this.#listeners.get(topic)
    known?.delete(listener)
    if (known?.size === 0) this.#listeners.delete(topic)
  }

  /** Resolves once the database was asked to listen. */
  async ready(): Promise<void> {
    await this.#line?.ready
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
    await this.#line?.close()
    await this.#saying
  }

  #hear(payload: string | undefined): void {
    for (const topic of (payload ?? '').split('\n')) {
      for (const listener of this.#listeners.get(topic) ?? []) listener()
    }
  }

  async #say(): Promise<void> {
    // What the same turn of the event loop still has to say goes along.
    await Promise.resolve()
    while (this.#unsaid.size > 0) {
      const said = [...this.#unsaid]
      this.#unsaid = new Set()
      try {
        await this.#session.run(
          `SELECT pg_notify(${CHANNEL}, topic) FROM unnest(?::text[]) AS topic`,
          [said]
        )
      } catch (error) {
        log('a nudge was lost: %s', messageOf(error))
      }
    }
    this.#saying = undefined
  }
}
