/*
 * Wake hints between processes, over LISTEN and NOTIFY of Postgres. The listening connection is opened for
 * the first listener and ended with the last. What was said while it was lost is lost; polls find it
 * (invariant 9).
 */
import { isolate } from '../../foundation/failure.ts'
import { ListeningLine } from '../../sql/listening_line.ts'
import type { Session } from '../../sql/session.ts'
import type { WakeHint, WakeHints } from '../ports/wake_hints.ts'

type Listener = (hint: WakeHint) => void

/** Of a database's schema: the tables of another one hold other runs. */
const CHANNEL = `'durable_wake_' || md5(coalesce(current_schema(), ''))`
/** Postgres takes 8,000 bytes. */
const MOST_BYTES = 7_000

export class WakeChannel implements WakeHints {
  readonly #session: Session
  readonly #listeners = new Set<Listener>()
  #line?: ListeningLine

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
    this.#line ??= new ListeningLine({
      session: this.#session,
      channel: CHANNEL,
      hear: (text) => this.#hear(text),
    })
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
