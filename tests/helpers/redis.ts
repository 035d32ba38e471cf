/*
 * Redis for tests: clients in both shapes, over a prefix of the test's own that is emptied afterwards.
 */
import { RedisManagerFactory } from '@adonisjs/redis/factories'
import type { Connection } from '@adonisjs/redis/types'
import { getActiveTest } from '@japa/runner'
import { randomUUID } from 'node:crypto'
import { Redis, type RedisOptions } from 'ioredis'
import type { RedisClient } from '../../src/redis/client.ts'
import { backend } from './backends.ts'
import { until } from './until.ts'

/** Where Redis is, or null when it is absent. */
export const redisUrl = (): Promise<string | null> => backend('redis')

export const SHAPES = ['ioredis', '@adonisjs/redis'] as const

const pending: (() => unknown)[] = []

/** When the test ends, or, for what a hook opened, when `cleanUp` is called. */
function afterwards(work: () => unknown): void {
  const test = getActiveTest()
  if (test) test.cleanup(async () => void (await work()))
  else pending.push(work)
}

/** Closes what was opened in a hook; for its teardown. */
export async function cleanUp(): Promise<void> {
  for (const work of pending.splice(0).reverse()) await work()
}

/** A prefix that nobody else uses; its keys go with the test. */
export function ownPrefix(url: string): string {
  const prefix = `test-${randomUUID()}`
  afterwards(() => emptyPrefix(url, prefix))
  return prefix
}

export async function emptyPrefix(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url)
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1000)
    if (keys.length > 0) await redis.del(keys)
    cursor = next
  } while (cursor !== '0')
  redis.disconnect()
}

/** An ioredis client, closed with the test. */
export function ioRedis(url: string, options: RedisOptions = {}): Redis {
  const redis = new Redis(url, options)
  redis.on('error', () => {})
  afterwards(() => redis.disconnect())
  return redis
}

/** A connection of `@adonisjs/redis`, closed with the test. */
export function adonisRedis(url: string): Connection {
  const { hostname, port } = new URL(url)
  const config = { host: hostname, port: Number(port || 6379) }
  const manager = new RedisManagerFactory({
    connection: 'main',
    connections: { main: config },
  }).create()
  afterwards(() => manager.disconnectAll())
  return manager.connection('main')
}

export function clientOf(shape: (typeof SHAPES)[number], url: string): RedisClient {
  return shape === 'ioredis' ? ioRedis(url) : adonisRedis(url)
}

/** Resolves once so many connections listen on a channel. */
export async function listeners(redis: Redis, channel: string, count = 1): Promise<void> {
  await until(async () => {
    const [, found] = await redis.pubsub('NUMSUB', channel)
    return Number(found) >= count
  }, `${count} to listen on ${channel}`)
}
