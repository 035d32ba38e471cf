/*
 * Applications that share a run queue: who starts runs, who takes them, and who does neither. Loops tick
 * once an hour here, so whatever moves was handed over.
 */
import { getActiveTestOrFail, test } from '@japa/runner'
import { join } from 'node:path'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import type { AppEnvironments } from '@adonisjs/core/types/app'
import {
  defineConfig,
  type DurableConfig,
  stores,
  transports,
  WorkflowEngine,
} from '../../index.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { until } from '../helpers/until.ts'
import { PACKAGE, startApp } from './app.ts'

const HOUR = 3_600_000

const FILES = {
  'app/workflows/order.ts': `
    import { BaseWorkflow } from '${PACKAGE}'
    export default class OrderWorkflow extends BaseWorkflow {
      static workflow = { name: 'order' }
      async run(ctx, input) { return [input, await ctx.waitForSignal('paid ' + ctx.runId)] }
    }`,
}

async function fleet() {
  const folder = await mkdtemp(join(tmpdir(), 'durable-run-queue-'))
  getActiveTestOrFail().cleanup(() => rm(folder, { recursive: true, force: true }))
  const connection = {
    client: 'better-sqlite3',
    connection: { filename: join(folder, 'app.sqlite') },
    useNullAsDefault: true,
  }
  return async (environment: AppEnvironments, more: DurableConfig = {}) => {
    const app = await startApp({
      environment,
      files: FILES,
      lucid: { connection: 'one', connections: { one: connection } },
      durable: defineConfig({
        store: 'lucid',
        stores: { lucid: stores.lucid() },
        transport: 'db',
        transports: { db: transports.db({ pollIntervalMs: 20, idleBackoffMax: 1 }) },
        worker: { intervalMs: HOUR },
        ...more,
      }),
    })
    const engine = await app.container.make(WorkflowEngine)
    const ended: string[] = []
    engine.subscribe(({ type, runId }) => void (type === 'run.completed' && ended.push(runId)))
    /** The worker loop of this process, until the test ends. */
    const work = async () => {
      const role = await app.container.make('@adonis-agora/durable:store-role')
      const stop = deferred<void>()
      const logger = { info() {}, error() {} }
      const settings = { intervalMs: HOUR, drainTimeoutMs: 1000 }
      const working = role.work({ ...settings, stopSignal: stop.promise, logger })
      getActiveTestOrFail().cleanup(async () => {
        stop.resolve()
        await working
      })
    }
    const statusOf = async (runId: string, wanted: string) => {
      const run = await engine.getRun(runId)
      return run?.status === wanted
    }
    return { app, engine, ended, work, statusOf }
  }
}

test.group('Applications with a run queue', (group) => {
  group.each.timeout(60_000)

  test('a web process that does not drive hands starts and signals to the worker', async ({
    assert,
  }) => {
    const open = await fleet()
    const web = await open('web', { drive: false })
    const worker = await open('console', { drive: false })
    await worker.work()
    await web.engine.start('order', 1, 'r')
    await until(() => web.statusOf('r', 'suspended'), 'the first turn')
    const answer = await web.engine.signal('paid r', 'yes')
    assert.deepInclude(answer, { runId: 'r', status: 'suspended' })
    await until(() => worker.ended.includes('r'), 'the end in the worker')
    assert.deepInclude(await web.engine.getRun('r'), { output: [1, 'yes'] })
    assert.deepEqual(web.ended, [])
  })

  test('a web process that drives takes runs without a loop, a console takes none', async ({
    assert,
  }) => {
    const open = await fleet()
    const consoleApp = await open('console')
    await consoleApp.engine.start('order', 1, 'r')
    await consoleApp.engine.signal('paid r', 'early')
    const web = await open('web')
    await until(() => web.ended.includes('r'), 'the end in the web process')
    assert.deepEqual(consoleApp.ended, [])
    assert.deepInclude(await web.engine.getRun('r'), { output: [1, 'early'] })
  })
})
