/*
 * What is used of a Redis client, in both shapes: an ioredis client, and a connection of `@adonisjs/redis`.
 * Structural, so that no peer is loaded for its types; tests hold the two packages against them.
 */

/** A connection as the watchdog sees it. */
export interface Pingable {
  readonly status: string
  ping(): Promise<unknown>
  disconnect(reconnect?: boolean): void
}

/** A connection that is there for a subscription alone. */
export interface IoRedisSubscriber extends Pingable {
  subscribe(channel: string): Promise<unknown>
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'ready' | 'end', listener: () => void): unknown
}

interface Commands {
  publish(channel: string, message: string): Promise<number>
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>
  evalsha(digest: string, keys: number, ...args: string[]): Promise<unknown>
  set(key: string, value: string, unit: 'PX', ms: number): Promise<unknown>
}

/** A client of ioredis; it stays the caller's, its duplicates are closed with what made them. */
export interface IoRedisClient extends Commands {
  duplicate(override?: object): IoRedisSubscriber
}

/** A connection of `@adonisjs/redis`, which keeps a subscriber of its own for all its subscriptions. */
export interface AdonisRedisConnection extends Commands {
  subscribe(
    channel: string,
    handler: (message: string) => void,
    options?: { onError(error: unknown): void; onSubscription(count: number): void }
  ): void
  unsubscribe(channel: string, handler?: (message: string) => void): Promise<unknown>
  on(event: 'subscriber:ready', listener: () => void): unknown
  off(event: 'subscriber:ready', listener: () => void): unknown
  readonly ioSubscriberConnection?: Pingable
}

/** An ioredis client or a connection of `@adonisjs/redis`. */
export type RedisClient = IoRedisClient | AdonisRedisConnection

export const isIoRedis = (client: RedisClient): client is IoRedisClient =>
  typeof (client as Partial<IoRedisClient>).duplicate === 'function'

const COMMANDS = ['publish', 'eval', 'evalsha', 'subscribe'] as const

/** Why this is neither. */
export function clientProblem(given: unknown): string | undefined {
  const what = 'must be an ioredis client or a connection of @adonisjs/redis'
  if (typeof given !== 'object' || given === null) return `${what}, got ${String(given)}`
  const missing = COMMANDS.find((name) => typeof Reflect.get(given, name) !== 'function')
  return missing === undefined ? undefined : `${what}; this one has no ${missing}()`
}
