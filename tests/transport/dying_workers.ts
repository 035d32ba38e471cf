/*
 * Worker processes of a test, which it kills or which kill themselves.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { getActiveTestOrFail } from '@japa/runner'
import type { BullMQTransportConfig } from '../../src/transport/bullmq/bullmq_transport.ts'
import type { DbTransportConfig } from '../../src/transport/db/db_transport.ts'
import type { QueueTransportConfig } from '../../src/transport/queue/queue_transport.ts'
import type { DatabaseLocation } from '../helpers/databases.ts'
import type { Backing } from './queue/bench.ts'

/** How a worker reaches its transport. */
export type Over =
  | { over: 'db'; location: DatabaseLocation; options: DbTransportConfig }
  | { over: 'bullmq'; options: BullMQTransportConfig }
  | { over: 'queue'; backing: Backing; options: QueueTransportConfig }

export type WorkerOrders = Over & { name: string; does: 'hang' | 'die' | 'end' }

const SCRIPT = join(import.meta.dirname, 'dying_worker.ts')

export class DyingWorker {
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  #pickups = 0

  constructor(orders: WorkerOrders) {
    this.#child = fork(SCRIPT, [JSON.stringify(orders)], {
      execArgv: ['--import=@poppinss/ts-exec', '--enable-source-maps'],
    })
    this.exited = new Promise((resolve) => void this.#child.once('exit', () => resolve()))
    this.#child.on('message', () => void (this.#pickups += 1))
    getActiveTestOrFail().cleanup(async () => {
      this.kill()
      await this.exited
    })
  }

  get pickups(): number {
    return this.#pickups
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
