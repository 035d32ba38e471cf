/*
 * Who is to be told: pods that asked for something, and pods that follow a tenant. A pod keeps keys alive
 * while it can be addressed; a request carries the instance that waits for its reply, which whoever
 * answers remembers. Over any store of keys that expire.
 */
import type { Cancel, Clock, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { KeyNames } from '../wire/names.ts'
import type { TransportErrorHandler } from './ports.ts'
import { BEAT_KEY_MS, KEY_LIVES_MS, type WorkerKeyStore } from './worker_keys.ts'

export interface InboxOptions {
  store: WorkerKeyStore
  /** Asked at each use: a namespace may come later than the transport. */
  names(): KeyNames
  instanceId: string
  /** How long the subscribers of a tenant are remembered, in ms. */
  cacheMs: number
  clock: Clock
  timers: Timers
  onError: TransportErrorHandler
}

const REMEMBERED = 10_000

export class Inbox {
  readonly #options: InboxOptions
  readonly #tenants = new Map<string, number>()
  readonly #replyTo = new Map<string, string>()
  readonly #subscribers = new Map<string, { at: number; ids: string[] }>()
  #open = false
  #stop?: Cancel

  constructor(options: InboxOptions) {
    this.#options = options
  }

  /** This instance can be addressed from now on. */
  open(): void {
    if (this.#open) return
    this.#open = true
    this.#stop = this.#options.timers.every(BEAT_KEY_MS, () => this.#announce())
    this.#announce()
  }

  /** This instance follows a tenant until the answer is called as often as this. */
  follow(tenant: string): Cancel {
    this.#tenants.set(tenant, (this.#tenants.get(tenant) ?? 0) + 1)
    this.open()
    this.#announce()
    return () => {
      const left = (this.#tenants.get(tenant) ?? 1) - 1
      if (left > 0) return void this.#tenants.set(tenant, left)
      this.#tenants.delete(tenant)
      const { names, instanceId, store, onError } = this.#options
      isolate(() => store.delete([names().tenantSubscriber(tenant, instanceId)]), onError)
    }
  }

  /** Notes who waits for the reply to this request. */
  remember(requestId: string | undefined, instanceId: unknown): void {
    if (requestId === undefined || typeof instanceId !== 'string') return
    if (this.#replyTo.size >= REMEMBERED) {
      for (const oldest of this.#replyTo.keys()) {
        this.#replyTo.delete(oldest)
        break
      }
    }
    this.#replyTo.set(requestId, instanceId)
  }

  /** Who waits for it; asked once. */
  addressOf(requestId: string): string | undefined {
    const instanceId = this.#replyTo.get(requestId)
    this.#replyTo.delete(requestId)
    return instanceId
  }

  /** The live instances that follow a tenant, at most `cacheMs` old. */
  async followersOf(tenant: string): Promise<string[]> {
    const { clock, cacheMs, store, names } = this.#options
    const known = this.#subscribers.get(tenant)
    if (known && clock() - known.at < cacheMs) return known.ids
    const start = names().tenantSubscribers(tenant)
    const rows = await store.list(start)
    const ids = rows.map(({ key }) => key.slice(start.length))
    this.#subscribers.set(tenant, { at: clock(), ids })
    return ids
  }

  /** The live instances that can be addressed at all. */
  async addressable(): Promise<string[]> {
    const { store, names } = this.#options
    const start = names().inbox('')
    const rows = await store.list(start)
    return rows.map(({ key }) => key.slice(start.length))
  }

  async close(): Promise<void> {
    this.#stop?.()
    if (!this.#open) return
    this.#open = false
    await this.#options.store.delete(this.#keys())
  }

  #keys(): string[] {
    const { names, instanceId } = this.#options
    const tenants = [...this.#tenants.keys()]
    return [
      names().inbox(instanceId),
      ...tenants.map((tenant) => names().tenantSubscriber(tenant, instanceId)),
    ]
  }

  #announce(): void {
    const { store, clock, onError } = this.#options
    const value = JSON.stringify({ ts: clock() })
    for (const key of this.#keys()) isolate(() => store.set(key, value, KEY_LIVES_MS), onError)
  }
}
