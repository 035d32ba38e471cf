/*
 * What a broker still holds: a task, a claim, a result, a message that nobody took. When all is over there
 * is none.
 */
import type { Database } from '@adonisjs/lucid/database'
import { Redis } from 'ioredis'
import { TRANSPORT_TABLES } from '../../src/transport/db/tables.ts'
import type { Carrier } from './carriers.ts'

const { tasks, results, heartbeats, control, messages } = TRANSPORT_TABLES
/** What BullMQ keeps of a queue in which there is nothing. */
const OF_A_QUEUE = /^bull:[^:]+:(meta|id|events|marker|stalled-check|pc)$/

/** Sentences; rejects while the broker cannot be asked. */
export async function leftovers(carrier: Carrier, db: Database): Promise<string[]> {
  if (carrier.name === 'db') return rowsLeft(db)
  if (carrier.redis) return keysLeft(carrier.name, carrier.redis)
  return []
}

async function rowsLeft(db: Database): Promise<string[]> {
  const found: string[] = []
  for (const table of [tasks, results, heartbeats, control, messages]) {
    const rows = (await db.from(table)) as Record<string, unknown>[]
    for (const { step_id: stepId, id, kind, claimed_by: by, claimed_at: at } of rows) {
      found.push(`${table} holds ${String(stepId ?? id)} ${JSON.stringify({ kind, by, at })}`)
    }
  }
  return found
}

async function keysLeft(
  name: Carrier['name'],
  { url, prefix }: NonNullable<Carrier['redis']>
): Promise<string[]> {
  const redis = new Redis(url, { retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    const keys = await redis.keys(name === 'queue' ? `jobs::${prefix}:*` : `bull:${prefix}-*`)
    return keys.filter((key) => !OF_A_QUEUE.test(key)).map((key) => `Redis holds ${key}`)
  } finally {
    redis.disconnect()
  }
}
