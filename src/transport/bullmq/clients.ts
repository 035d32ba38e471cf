/*
 * The connections of one transport: one to produce with, one that all workers share for their commands
 * (BullMQ opens one more for each, to wait on), and one that subscribes. Each is opened when it is first
 * needed. An error is reported once for each burst; closing drops every socket, those of BullMQ too.
 */
import { isolate } from '../../foundation/failure.ts'
import type { Cancel, Timers } from '../../foundation/clock.ts'
import { watch } from '../../redis/watchdog.ts'
import type { TransportErrorHandler } from '../ports.ts'
import type { ConnectionSource } from './connection.ts'
import type { BullMQDeps, RedisClient, RedisSettings } from './deps.ts'

const KEEP_ALIVE_MS = 10_000
/** A socket that does not end is torn down after this. */
const DISCONNECT_MS = 500

export class Clients {
  readonly #source: ConnectionSource
  readonly #deps: BullMQDeps
  readonly #onError: TransportErrorHandler
  readonly #timers: Timers
  readonly #pingIntervalMs: number
  readonly #owned = new Set<RedisClient>()
  #producer?: RedisClient
  #workers?: RedisClient
  #subscriber?: RedisClient
  #stopWatching: Cancel = () => {}
  #inBurst = false
  #dropped = false

  constructor(
    source: ConnectionSource,
    deps: BullMQDeps,
    options: { onError: TransportErrorHandler; timers: Timers; pingIntervalMs: number }
  ) {
    this.#source = source
    this.#deps = deps
    this.#onError = options.onError
    this.#timers = options.timers
    this.#pingIntervalMs = options.pingIntervalMs
  }

  /** Queues, keys and publishing. A command gives up after ioredis's usual number of retries. */
  get producer(): RedisClient {
    if (this.#producer) return this.#producer
    if (this.#source.kind === 'client') {
      this.#producer = this.#source.client
      this.#listen(this.#producer)
    } else {
      this.#producer = this.open()
    }
    return this.#producer
  }

  /** What BullMQ's workers share; each duplicates it to wait on. */
  get workers(): RedisClient {
    if (this.#workers) return this.#workers
    const client = this.open({ maxRetriesPerRequest: null })
    const duplicate = client.duplicate.bind(client)
    // BullMQ keeps its waiting connections to itself, and a worker that hangs never closes its own.
    client.duplicate = (options) => this.#own(duplicate(options))
    return (this.#workers = client)
  }

  get subscriber(): RedisClient {
    if (this.#subscriber) return this.#subscriber
    this.#subscriber = this.open({ maxRetriesPerRequest: null })
    const options = { everyMs: this.#pingIntervalMs, timers: this.#timers }
    this.#stopWatching = watch(() => this.#subscriber, options)
    return this.#subscriber
  }

  /** A connection of its own; closed with the others. */
  open(settings: RedisSettings = {}): RedisClient {
    const source = this.#source
    return this.#own(
      source.kind === 'client'
        ? source.client.duplicate(settings)
        : this.#deps.makeRedis({
            keepAlive: KEEP_ALIVE_MS,
            disconnectTimeout: DISCONNECT_MS,
            ...source.settings,
            ...settings,
          })
    )
  }

  /** Drops every socket at once. */
  disconnect(): void {
    this.#stopWatching()
    this.#dropped = true
    for (const client of this.#owned) isolate(() => drop(client), this.#onError)
    this.#owned.clear()
  }

  /** Reports an error; of a lost connection only the first one until some connection is ready again. */
  report(error: unknown): void {
    if (isConnectionLoss(error)) {
      if (this.#inBurst || this.#dropped) return
      this.#inBurst = true
    }
    isolate(() => this.#onError(error))
  }

  #own(client: RedisClient): RedisClient {
    this.#owned.add(client)
    this.#listen(client)
    return client
  }

  #listen(client: RedisClient): void {
    client.on('error', (error) => this.report(error))
    client.on('ready', () => (this.#inBurst = false))
  }
}

/** ioredis tells nobody of the end of a connection that waits for its next attempt; BullMQ would wait for ever. */
function drop(client: RedisClient): void {
  const waits = client.status === 'reconnecting'
  client.disconnect()
  if (waits) client.emit('end')
}

const LOST =
  /^E(CONN|PIPE|TIMEDOUT|NOTFOUND|AI_|HOST|NET)|Connection is closed|Socket closed|max retries per request/

function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return LOST.test(code ?? '') || LOST.test(error.message) || error.message.includes('ECONNREFUSED')
}
