/*
 * Brokers as the bench uses them: one transport beside the engine, one in a worker process.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Database } from '@adonisjs/lucid/database'
import { BullMQTransport } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import { databaseKeys } from '../../src/transport/db/keys.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { QueueTransport } from '../../src/transport/queue/queue_transport.ts'
import { altered } from '../helpers/altered.ts'
import type { DatabaseLocation } from '../helpers/databases.ts'
import { type Backing, openAdapter } from '../transport/queue/bench.ts'

/** Plain JSON. */
export type Broker = { location: DatabaseLocation } & (
  | { name: 'db' }
  | { name: 'bullmq'; url: string; prefix: string }
  | { name: 'queue'; backing: Backing; prefix: string; pollIntervalMs?: number }
)

/** As many as runs are in flight, so that no step waits for a slot. */
export const SLOTS = 20

export async function openBroker(broker: Broker, db: Database): Promise<Transport> {
  const options = { concurrency: SLOTS, resultConcurrency: SLOTS }
  if (broker.name === 'db') return new DbTransport({ ...options, db })
  if (broker.name === 'queue') {
    const { backing, prefix, pollIntervalMs } = broker
    const { adapter, close } = await openAdapter(backing, db)
    const workerKeys = databaseKeys(db)
    const made = new QueueTransport({ ...options, adapter, prefix, workerKeys, pollIntervalMs })
    return altered<Transport>(made, { close: () => made.close().then(close) })
  }
  return BullMQTransport.create({ ...options, connection: broker.url, prefix: broker.prefix })
}

/** A process that serves `remote`; it does not outlive this one. */
export async function beginWorker(broker: Broker): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'step_worker.ts'), [JSON.stringify(broker)], {
    execArgv: ['--import=@poppinss/ts-exec'],
  })
  await once(child, 'message')
  return child
}

export async function endWorker(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
