/*
 * Over what the steps of a play are carried. In one process with their runs they die with it; over a broker
 * they run in worker processes of their own, which die apart from the engines.
 */
import type { Database } from '@adonisjs/lucid/database'
import type { Clock } from '../../src/foundation/clock.ts'
import { BullMQTransport } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { QueueTransport } from '../../src/transport/queue/queue_transport.ts'
import type { StepOptions } from '../../src/types/step.ts'
import { altered } from '../helpers/altered.ts'
import { openAdapter } from '../transport/queue/bench.ts'

export const CARRIERS = ['eventEmitter', 'db', 'bullmq', 'queue'] as const

export type CarrierName = (typeof CARRIERS)[number]

/** Plain JSON, for members. */
export interface Carrier {
  name: CarrierName
  /** Of Redis, where all names begin with `prefix`. */
  redis?: { url: string; prefix: string }
}

interface Openings {
  db: Database
  /** Of the member. */
  name: string
  clock: Clock
  leaseMs: number
  say(text: string): void
}

const CLOSE_MS = 2_000
/** No task fails because it met many deaths: who waits for it would not learn when. */
const ANY_NUMBER = 1_000

/** Needs a Redis of its own. */
export const isOnRedis = (name: CarrierName): boolean => name === 'bullmq' || name === 'queue'

export const crosses = ({ name }: Carrier): boolean => name !== 'eventEmitter'

/** A broker that is down fails a dispatch, as an attempt of its step. */
export const policyOf = (carrier: Carrier): Pick<StepOptions, 'retries' | 'backoffMs'> =>
  crosses(carrier) ? { retries: 100, backoffMs: 200 } : {}

export async function openTransport(
  carrier: Carrier,
  { db, name, clock, leaseMs, say }: Openings
): Promise<Transport> {
  const onError = (error: unknown) => say(`${carrier.name}: ${String(error)}`)
  const common = { clock, onError, closeTimeoutMs: CLOSE_MS, instanceId: name, concurrency: 8 }
  if (carrier.name === 'db') {
    return new DbTransport({ ...common, db, leaseMs, resultConcurrency: 16 })
  }
  if (carrier.name === 'bullmq') {
    return BullMQTransport.create({
      ...common,
      connection: carrier.redis!.url,
      prefix: carrier.redis!.prefix,
      resultConcurrency: 16,
      lockDuration: leaseMs,
      stalledInterval: leaseMs / 2,
      maxStalledCount: ANY_NUMBER,
    })
  }
  if (carrier.name === 'queue') {
    const { adapter, close } = await openAdapter({ redis: carrier.redis!.url })
    const made = new QueueTransport({
      ...common,
      adapter,
      prefix: carrier.redis!.prefix,
      pollIntervalMs: 50,
      resultConcurrency: 16,
      stalledThresholdMs: leaseMs,
      stalledCheckIntervalMs: leaseMs / 2,
      maxStalledCount: ANY_NUMBER,
    })
    return altered<Transport>(made, { close: () => made.close().then(close) })
  }
  return new EventEmitterTransport({ clock, onError })
}
