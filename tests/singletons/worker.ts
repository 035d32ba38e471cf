/*
 * One worker process of the singleton test: an engine and a worker loop over the database it is told, until
 * it is killed or asked to end. Prints nothing when all is well.
 *
 *   worker.ts '{"location":{…},"limit":1}'
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { runWorkerLoop } from '../../src/loop/main.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { type DatabaseLocation, openDatabase } from '../helpers/databases.ts'

export interface WorkerOptions {
  location: DatabaseLocation
  limit: number
}

export interface Guest {
  key: string
  /** How long it stays inside, in ms. */
  stays: number
  /** It sleeps without a process while it is inside. */
  sleeps: boolean
}

export const LEDGER = 'singleton_ledger'
export const LEASE_MS = 2_000
const POLL_MS = 100

export function registerGuest(engine: WorkflowEngine, limit: number): void {
  engine.register(
    'guest',
    '1',
    async (ctx, { key, stays, sleeps }: Guest) => {
      const note = (what: string) =>
        ctx.transaction(what, async (tx) => {
          const trx = tx as TransactionClientContract
          await trx.table(LEDGER).insert({ run_id: ctx.runId, guest_key: key, what })
          return null
        })
      await note('enter')
      if (sleeps) await ctx.sleep(stays)
      else await ctx.localStep('stay', () => pause(stays))
      await note('leave')
    },
    { singleton: { key: (input) => (input as Guest).key, limit } }
  )
}

if (process.argv[2] !== undefined && import.meta.filename === process.argv[1]) {
  const { location, limit } = JSON.parse(process.argv[2]) as WorkerOptions
  const db = openDatabase(location)
  const engine = new WorkflowEngine({ store: new LucidStateStore(db), leaseMs: LEASE_MS })
  registerGuest(engine, limit)
  const stop = Promise.withResolvers<void>()
  process.on('message', () => stop.resolve())
  process.send?.('ready')
  await runWorkerLoop(engine, {
    intervalMs: POLL_MS,
    stopSignal: stop.promise,
    logger: { info: () => {}, error: (text) => process.stderr.write(`${text}\n`) },
  })
  await db.manager.closeAll()
  process.disconnect?.()
}
