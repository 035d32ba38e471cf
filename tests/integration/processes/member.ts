/*
 * A process that does what its parent says, over a database that others use at the same time:
 *
 *   boot   provision it, then boot once more and say how many statements that took
 *   work   start runs and execute whatever is there, until told to stop
 *   hang   execute one run up to the middle of a step that never ends
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import type { Database } from '@adonisjs/lucid/database'
import { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { runWorkerLoop } from '../../../src/loop/main.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { InMemoryTransport } from '../../../src/transport/memory/memory_transport.ts'
import { countStatements, openDatabase } from '../../helpers/databases.ts'
import type { Order, Report, WorkOrder } from './crew.ts'
import { registerFiveSteps, registerHanging } from './five_steps.ts'

let db: Database | undefined
let worker: Worker | undefined

function tell(report: Report): void {
  process.send!(report)
}

async function boot(database: Database): Promise<void> {
  const warnings: string[] = []
  const logger = { warn: (message: string) => void warnings.push(message) }
  const store = new LucidStateStore(database, { logger })
  await store.ensureSchema()
  const counter = countStatements(database)
  await store.ensureSchema()
  tell({ is: 'booted', warnings, statements: counter.count })
  counter.stop()
}

class Worker {
  readonly #engine: WorkflowEngine
  /** Of a web process: its runs are executed by whoever polls first. */
  readonly #starter: WorkflowEngine
  readonly #stop = Promise.withResolvers<void>()
  readonly #loop: Promise<number>
  readonly #file: number

  constructor(database: Database, { name, effects, hang, leaseMs }: WorkOrder) {
    const store = new LucidStateStore(database)
    const logger = {
      warn: (what: string) => tell({ is: 'logged', what }),
      error: (what: string, error?: unknown) => tell({ is: 'logged', what: `${what}: ${error}` }),
    }
    this.#file = openSync(effects, 'a')
    const write = (line: string) => void writeSync(this.#file, `${line}\n`)
    this.#engine = new WorkflowEngine({
      store,
      transport: new InMemoryTransport(),
      instanceId: name,
      logger,
      leaseMs,
    })
    this.#starter = new WorkflowEngine({
      store,
      transport: new InMemoryTransport(),
      logger,
      runDispatcher: { dispatch: () => {} },
    })
    registerFiveSteps(this.#engine, write)
    registerHanging(this.#engine, write, hang)
    registerFiveSteps(this.#starter, write)
    this.#loop = runWorkerLoop(this.#engine, {
      intervalMs: 50,
      stopSignal: this.#stop.promise,
      logger: { info: () => {}, error: (what) => tell({ is: 'logged', what }) },
    })
  }

  /** Half of them are executed here, the others by whoever comes first. */
  async start(runIds: string[]): Promise<void> {
    for (const [place, runId] of runIds.entries()) {
      const engine = place % 2 === 0 ? this.#engine : this.#starter
      await engine.start('five steps', { runId }, runId)
    }
  }

  async hang(runId: string): Promise<void> {
    await this.#engine.start('hanging', { runId }, runId)
  }

  async stop(): Promise<void> {
    this.#stop.resolve()
    await this.#loop
    closeSync(this.#file)
  }
}

async function obey(order: Order): Promise<void> {
  switch (order.do) {
    case 'open':
      await db?.manager.closeAll()
      db = openDatabase(order.location)
      return
    case 'boot':
      return boot(db!)
    case 'work':
      worker = new Worker(db!, order)
      return
    case 'start':
      return worker!.start(order.runIds)
    case 'hang':
      return worker!.hang(order.runId)
    case 'leave':
      await worker?.stop()
      await db?.manager.closeAll()
      process.disconnect()
  }
}

process.on('message', (order: Order) => {
  const done = obey(order)
  done.then(
    () => process.connected && tell({ is: 'done', what: order.do }),
    (error) => {
      tell({ is: 'failed', what: `${order.do}: ${error instanceof Error ? error.stack : error}` })
      process.exitCode = 1
    }
  )
})
// A parent that is gone cannot say so.
process.on('disconnect', () => setImmediate(() => process.exit()))
tell({ is: 'ready' })
