/*
 * Signal waiters (one a token, found by run too) and payloads that came before anybody waited (first in,
 * first out, a token).
 */
import { decodeJson, encodeJson } from '../../foundation/json.ts'
import type { SignalWaiter } from '../../types/checkpoint.ts'
import { decodeRow, encodeRow, WAITER_COLUMNS, type StoredWaiter } from './columns.ts'

export class SignalTable {
  readonly #waiters = new Map<string, StoredWaiter>()
  readonly #byRun = new Map<string, Set<string>>()
  readonly #buffers = new Map<string, (string | undefined)[]>()

  waiter(token: string): SignalWaiter | null {
    const row = this.#waiters.get(token)
    return row ? decode(row) : null
  }

  hasWaiter(token: string): boolean {
    return this.#waiters.has(token)
  }

  put(waiter: SignalWaiter): void {
    this.#drop(waiter.token)
    this.#waiters.set(
      waiter.token,
      encodeRow<SignalWaiter, typeof WAITER_COLUMNS>(WAITER_COLUMNS, waiter) as StoredWaiter
    )
    const tokens = this.#byRun.get(waiter.runId)
    if (tokens) tokens.add(waiter.token)
    else this.#byRun.set(waiter.runId, new Set([waiter.token]))
  }

  take(token: string): SignalWaiter | null {
    const waiter = this.waiter(token)
    this.#drop(token)
    return waiter
  }

  /** True while exactly this waiter stands. */
  stands(waiter: SignalWaiter): boolean {
    const row = this.#waiters.get(waiter.token)
    return row?.runId === waiter.runId && row.seq === waiter.seq
  }

  remove(waiter: SignalWaiter): void {
    if (this.stands(waiter)) this.#drop(waiter.token)
  }

  withPrefix(prefix: string): SignalWaiter[] {
    const found: SignalWaiter[] = []
    for (const row of this.#waiters.values()) {
      if (row.token.startsWith(prefix)) found.push(decode(row))
    }
    return found
  }

  ofRuns(runIds: string[]): SignalWaiter[] {
    return [...new Set(runIds)].flatMap((runId) =>
      [...(this.#byRun.get(runId) ?? [])].map((token) => decode(this.#waiters.get(token)!))
    )
  }

  removeOfRun(runId: string): void {
    for (const token of [...(this.#byRun.get(runId) ?? [])]) this.#drop(token)
  }

  buffer(token: string, payload: unknown): void {
    const text = encodeJson(payload, 'payload', Number.POSITIVE_INFINITY)
    const queue = this.#buffers.get(token)
    if (queue) queue.push(text)
    else this.#buffers.set(token, [text])
  }

  hasBuffered(token: string): boolean {
    return this.#buffers.has(token)
  }

  bufferedTokens(prefixes: string[]): string[] {
    const tokens = [...this.#buffers.keys()]
    return tokens.filter((token) => prefixes.some((prefix) => token.startsWith(prefix)))
  }

  dropBuffered(token: string): void {
    this.#buffers.delete(token)
  }

  takeBuffered(token: string): { payload: unknown } | null {
    const queue = this.#buffers.get(token)
    if (!queue) return null
    const payload = decodeJson(queue.shift())
    if (queue.length === 0) this.#buffers.delete(token)
    return { payload }
  }

  #drop(token: string): void {
    const row = this.#waiters.get(token)
    if (!row) return
    this.#waiters.delete(token)
    const tokens = this.#byRun.get(row.runId)
    tokens?.delete(token)
    if (tokens?.size === 0) this.#byRun.delete(row.runId)
  }
}

const decode = (row: StoredWaiter): SignalWaiter =>
  decodeRow<SignalWaiter, typeof WAITER_COLUMNS>(WAITER_COLUMNS, row)
