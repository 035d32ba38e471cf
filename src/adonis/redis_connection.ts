/*
 * The application's connections to Redis, for drivers that take one by name.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { RedisClient } from '../redis/client.ts'
import type { FactoryContext } from './factory_context.ts'
import { loadPeer } from './peer.ts'

interface Manager {
  managerConfig?: { connections?: Record<string, unknown> }
  connection(name: string): RedisClient
}

/** Throws `RuntimeException` when there is no such connection, or no Redis at all. */
export async function redisConnection(
  { app }: FactoryContext,
  name: string,
  neededBy: string
): Promise<RedisClient> {
  if (!app.container.hasBinding('redis')) await explainMissing(neededBy)
  const manager = (await app.container.make('redis')) as Manager
  const known = Object.keys(manager.managerConfig?.connections ?? {})
  if (!known.includes(name)) {
    const list = known.map((key) => `"${key}"`).join(', ') || 'none'
    throw new RuntimeException(
      `durable: ${neededBy} in config/durable.ts names the connection "${name}", which is none of ` +
        `config/redis.ts (it has ${list})`
    )
  }
  return manager.connection(name)
}

async function explainMissing(neededBy: string): Promise<never> {
  await loadPeer(() => import('@adonisjs/redis'), { peer: '@adonisjs/redis', neededBy })
  throw new RuntimeException(
    `durable: ${neededBy} found no Redis in the container. List "@adonisjs/redis/redis_provider" ` +
      'before the durable provider in adonisrc.ts (node ace configure @adonisjs/redis does)'
  )
}
