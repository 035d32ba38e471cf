/*
 * One channel of Redis, for as long as its owner lives: over a connection of its own where the client is of
 * ioredis, over the shared subscriber of an `@adonisjs/redis` connection. It is subscribed anew whenever
 * the connection is; what was published in between is lost, and `onSubscribed` says so.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import {
  type AdonisRedisConnection,
  type IoRedisClient,
  isIoRedis,
  type RedisClient,
} from './client.ts'
import { watch } from './watchdog.ts'

export interface SubscriptionOptions {
  channel: string
  onMessage: (text: string) => void
  /** Listening from now on, for the first time or again. */
  onSubscribed?: () => void
  /** Told once until the connection is ready again. */
  onError: (error: unknown) => void
  /** Between two questions of the watchdog, in ms; 0 or `false`: never. */
  pingIntervalMs: number | false
  timers: Timers
}

export interface Subscription {
  readonly isLive: boolean
  /** Idempotent; afterwards nothing is heard. */
  close(): Promise<void>
}

/** Between two attempts to subscribe over a connection that works, in ms. */
const RETRY_MS = 1_000
/** Longest wait for the end of a subscription, in ms. */
const CLOSE_MS = 1_000

/** What a subscriber needs, whatever the client it was made from waits for. */
const SUBSCRIBER = {
  lazyConnect: false,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  keepAlive: 10_000,
  retryStrategy: (times: number) => Math.min(times * 50, 2_000),
}

export function subscribe(client: RedisClient, options: SubscriptionOptions): Subscription {
  return isIoRedis(client) ? ofIoRedis(client, options) : ofAdonis(client, options)
}

/** The state both kinds share. */
class Listening {
  isLive = false
  isClosed = false
  readonly #options: SubscriptionOptions
  #isReported = false
  #cancelRetry: Cancel = () => {}

  constructor(options: SubscriptionOptions) {
    this.#options = options
  }

  subscribed(): void {
    if (this.isClosed) return
    this.#isReported = false
    this.isLive = true
    isolate(() => this.#options.onSubscribed?.(), this.#options.onError)
  }

  heard(text: string): void {
    if (!this.isClosed) isolate(() => this.#options.onMessage(text), this.#options.onError)
  }

  failed(error: unknown, retry?: () => void): void {
    this.isLive = false
    if (this.isClosed) return
    if (!this.#isReported) this.#options.onError(error)
    this.#isReported = true
    if (!retry) return
    this.#cancelRetry()
    this.#cancelRetry = this.#options.timers.after(RETRY_MS, retry)
  }

  close(): void {
    this.isClosed = true
    this.isLive = false
    this.#cancelRetry()
  }
}

function ofIoRedis(client: IoRedisClient, options: SubscriptionOptions): Subscription {
  const { channel, timers } = options
  const state = new Listening(options)
  const connection = client.duplicate(SUBSCRIBER)
  const join = () => {
    if (state.isClosed || connection.status !== 'ready') return
    connection.subscribe(channel).then(
      () => state.subscribed(),
      (error) => state.failed(error, join)
    )
  }
  // Without a listener of its own an error of the connection ends the process.
  connection.on('error', (error) => state.failed(error))
  connection.on('ready', join)
  connection.on('message', (from, text) => {
    if (from === channel) state.heard(text)
  })
  const stop = watch(() => connection, { everyMs: options.pingIntervalMs, timers })
  return {
    get isLive() {
      return state.isLive && connection.status === 'ready'
    },
    async close() {
      if (state.isClosed) return
      state.close()
      stop()
      connection.disconnect()
    },
  }
}

function ofAdonis(client: AdonisRedisConnection, options: SubscriptionOptions): Subscription {
  const { channel, timers } = options
  const state = new Listening(options)
  const hear = (text: string) => state.heard(text)
  // Adding the same handler again changes nothing, and its answer says that the channel is heard.
  const join = () => {
    if (state.isClosed) return
    client.subscribe(channel, hear, {
      onSubscription: () => (state.isClosed ? void leave() : state.subscribed()),
      onError: (error) => state.failed(error, join),
    })
  }
  const leave = async () => {
    if (!client.ioSubscriberConnection) return
    let cancel: Cancel = () => {}
    const late = new Promise<void>((resolve) => (cancel = timers.after(CLOSE_MS, resolve)))
    // A connection that is gone has no subscription either.
    const left = client.unsubscribe(channel, hear).catch(() => {})
    await Promise.race([left, late])
    cancel()
  }
  join()
  client.on('subscriber:ready', join)
  const stop = watch(() => client.ioSubscriberConnection, {
    everyMs: options.pingIntervalMs,
    timers,
  })
  return {
    get isLive() {
      return state.isLive && client.ioSubscriberConnection?.status === 'ready'
    },
    async close() {
      if (state.isClosed) return
      state.close()
      stop()
      client.off('subscriber:ready', join)
      await leave()
    },
  }
}
