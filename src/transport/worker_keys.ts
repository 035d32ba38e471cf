/*
 * Who is out there: each worker keeps a key per token alive, and reads those of others. Over any store of
 * keys that expire; reads skip what they cannot parse.
 */
import type { Cancel, Clock, Timers } from '../foundation/clock.ts'
import { DurableError, isolate } from '../foundation/failure.ts'
import { decode, readWorkerBeat } from '../wire/codec.ts'
import type { WorkerDescriptor, WorkerHeartbeat, WorkerStatus } from '../wire/messages.ts'
import { type KeyNames, parseWorkerKey } from '../wire/names.ts'
import type { TransportErrorHandler } from './ports.ts'

/** How often a worker renews its keys, in ms. */
export const BEAT_KEY_MS = 10_000
/** How long a key lives without that, in ms. */
export const KEY_LIVES_MS = 35_000

/** A store of keys that expire, shared by the processes of a fleet. */
export interface WorkerKeyStore {
  /** Sets a key that lives for `ttlMs`. */
  set(key: string, value: string, ttlMs: number): Promise<void>
  /** The live keys that begin with `prefix`; `at` is when each was set, in epoch ms. */
  list(prefix: string): Promise<{ key: string; value: string; at: number }[]>
  delete(keys: string[]): Promise<void>
}

/** One that need not know when a key was set. */
export type KeyStore = Pick<WorkerKeyStore, 'set' | 'delete'> & {
  list(prefix: string): Promise<{ key: string; value: string }[]>
}

export interface WorkerKeysOptions {
  store: KeyStore
  /** Asked at each use: a namespace may come later than the transport. */
  names(): KeyNames
  instanceId: string
  status(): WorkerStatus
  clock: Clock
  timers: Timers
  onError: TransportErrorHandler
}

export class WorkerKeys {
  readonly #options: WorkerKeysOptions
  readonly #tokens = new Set<string>()
  #stop?: Cancel

  constructor(options: WorkerKeysOptions) {
    this.#options = options
  }

  /** Keeps this worker known as live on a token, from now until `close`. */
  serve(token: string): void {
    if (this.#tokens.has(token)) return
    this.#tokens.add(token)
    this.#stop ??= this.#options.timers.every(BEAT_KEY_MS, () => {
      for (const known of this.#tokens) this.#beat(known)
    })
    this.#beat(token)
  }

  async close(): Promise<void> {
    this.#stop?.()
    const { names, instanceId, store } = this.#options
    const keys = [...this.#tokens].map((token) => names().workerHeartbeat(token, instanceId))
    this.#tokens.clear()
    if (keys.length > 0) await store.delete(keys)
  }

  /** Live workers of a token, or of all of them. */
  async heartbeats(token?: string): Promise<WorkerHeartbeat[]> {
    const { names, store } = this.#options
    const rows = await store.list(names().workerHeartbeats(token))
    return rows.flatMap(({ key, value }) => {
      const parts = parseWorkerKey(key, names().workerHeartbeats())
      if (!parts) return []
      const { lastBeatAt, status } = readWorkerBeat(value)
      const beat: WorkerHeartbeat = {
        group: parts.token,
        instanceId: parts.instanceId,
        lastBeatAt,
      }
      return [status ? { ...beat, status } : beat]
    })
  }

  /** Tokens with a live worker. */
  async tokens(): Promise<string[]> {
    const beats = await this.heartbeats()
    return [...new Set(beats.map(({ group }) => group))].sort()
  }

  /** What workers of a token, or of all of them, say of themselves; an instance counts once. */
  async descriptors(token?: string): Promise<WorkerDescriptor[]> {
    const { names, store } = this.#options
    const rows = await store.list(names().workerDescriptors(token))
    const known = new Map<string, WorkerDescriptor>()
    for (const { value } of rows) {
      const descriptor = readable(() => decode('descriptor', value))
      if (descriptor) known.set(descriptor.instanceId, descriptor)
    }
    return [...known.values()]
  }

  #beat(token: string): void {
    const { store, names, instanceId, status, clock, onError } = this.#options
    const value = JSON.stringify({ ts: clock(), status: status() })
    isolate(
      () => store.set(names().workerHeartbeat(token, instanceId), value, KEY_LIVES_MS),
      onError
    )
  }
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof DurableError) return undefined
    throw error
  }
}
