/*
 * `durable:work` in a process of its own, with real signals, over the database it is told:
 *
 *   worker_command.ts '{"location":{…},"leaseMs":2000}' --interval=25 --drain-timeout=5000
 *
 * `shop` does one thing in a transaction and others beside it, `stuck` never ends.
 */
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import DurableWork from '../../../commands/durable_work.ts'
import { defineConfig, WorkflowEngine } from '../../../index.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { startApp } from '../../adonis/app.ts'
import { openDatabase } from '../../helpers/databases.ts'
import { registerShop } from './shop.ts'
import type { DatabaseLocation } from '../../helpers/databases.ts'

const [given, ...flags] = process.argv.slice(2)
const { location, leaseMs } = JSON.parse(given) as { location: DatabaseLocation; leaseMs: number }

const db = openDatabase(location)
const app = await startApp({
  environment: 'console',
  durable: defineConfig({
    store: 'own',
    stores: { own: new LucidStateStore(db) },
    drive: false,
    leaseMs,
    workflowsPath: false,
    stepsPath: false,
  }),
})
const engine = await app.container.make(WorkflowEngine)
registerShop(engine, (tx) => tx as TransactionClientContract)
engine.register('stuck', '1', (ctx) =>
  ctx.localStep('forever', () => {
    process.stdout.write('a step is stuck\n')
    return new Promise(() => {})
  })
)
const ace = await app.container.make('ace')
const command = await ace.create(DurableWork, flags)
await command.exec()
await app.terminate()
await db.manager.closeAll()
process.exitCode = command.exitCode
