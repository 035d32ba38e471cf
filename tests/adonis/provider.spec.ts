import { test } from '@japa/runner'
import type { AppEnvironments } from '@adonisjs/core/types/app'
import type { Database } from '@adonisjs/lucid/database'
import {
  BaseWorkflow,
  defineConfig,
  type DurableConfig,
  InMemoryStateStore,
  InMemoryTransport,
  stores,
  WorkflowEngine,
} from '../../index.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { bootApp, createApp, PACKAGE, startApp } from './app.ts'

const FILES = {
  'app/workflows/order.ts': `
    import { BaseWorkflow } from '${PACKAGE}'
    export default class OrderWorkflow extends BaseWorkflow {
      static workflow = { name: 'order' }
      async run(ctx, input) {
        return ctx.step('price', input)
      }
    }`,
  'app/steps/price.ts': `
    import { defineStep } from '${PACKAGE}'
    export const price = defineStep('price', async ({ amount }) => amount * 2)`,
}

const lucid = (more: DurableConfig = {}) =>
  defineConfig({ store: 'lucid', stores: { lucid: stores.lucid() }, ...more })

async function hasTables(db: Database): Promise<boolean> {
  const rows = await db.from('sqlite_master').where('name', 'durable_workflow_runs')
  return rows.length > 0
}

test.group('Provider', () => {
  for (const environment of ['web', 'test'] satisfies AppEnvironments[]) {
    test(`${environment}: provisions the schema, discovers and executes`, async ({ assert }) => {
      const app = await startApp({ environment, lucid: true, durable: lucid(), files: FILES })
      assert.isTrue(await hasTables(await app.container.make('lucid.db')))
      const engine = await app.container.make(WorkflowEngine)
      await engine.start('order', { amount: 21 }, 'r1')
      const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 5000 })
      assert.deepEqual(result, { runId: 'r1', status: 'completed', output: 42 })
    })
  }

  for (const environment of ['console', 'repl'] satisfies AppEnvironments[]) {
    test(`${environment}: leaves the database as it is until somebody asks for runs`, async ({
      assert,
    }) => {
      const app = await startApp({ environment, lucid: true, durable: lucid(), files: FILES })
      const db = await app.container.make('lucid.db')
      assert.isFalse(await hasTables(db))
      const engine = await app.container.make(WorkflowEngine)
      assert.deepEqual(await engine.listRuns(), [])
      assert.isTrue(await hasTables(db))
    })

    test(`${environment}: consumes nothing until it is told to`, async ({ assert }) => {
      const transport = new InMemoryTransport()
      const durable = defineConfig({ transport: 'memory', transports: { memory: transport } })
      const app = await startApp({ environment, durable, files: FILES })
      const engine = await app.container.make(WorkflowEngine)
      await engine.start('order', { amount: 1 }, 'r1')
      await engine.waitForRun('r1', { timeoutMs: 5000 })
      assert.isTrue(transport.isRunning('r1:0'))
      engine.startConsumers()
      const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 5000 })
      assert.equal(result.output, 2)
    }).tags(['@control-49'])
  }

  test('consumers "always" consumes in a console process too', async ({ assert }) => {
    const durable = defineConfig({ consumers: 'always' })
    const app = await startApp({ environment: 'console', durable, files: FILES })
    const engine = await app.container.make(WorkflowEngine)
    await engine.start('order', { amount: 1 }, 'r1')
    const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 2)
  })

  test('an application that is only warmed up is left alone', async ({ assert }) => {
    const app = await createApp({ lucid: true, durable: lucid(), files: FILES })
    app.setMode('warmup')
    await app.boot()
    await app.warmUp()
    const db = await app.container.make('lucid.db')
    assert.isFalse(await hasTables(db))
    // Providers of such an application are never shut down.
    await db.manager.closeAll()
  })

  test('autoSchema: false leaves the tables to migrations', async ({ assert }) => {
    const app = await startApp({ lucid: true, durable: lucid({ autoSchema: false }) })
    assert.isFalse(await hasTables(await app.container.make('lucid.db')))
  })

  test('an application without config/durable.ts runs in memory', async ({ assert }) => {
    const app = await startApp({ files: FILES })
    const engine = await app.container.make(WorkflowEngine)
    await engine.start('order', { amount: 2 }, 'r1')
    const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 4)
    assert.equal(engine.namespace, 'default')
  })

  test('binds one engine and its transport', async ({ assert }) => {
    const transport = new InMemoryTransport()
    const durable = defineConfig({ transport: 'mine', transports: { mine: transport } })
    const app = await bootApp({ durable })
    const engine = await app.container.make(WorkflowEngine)
    assert.strictEqual(await app.container.make(WorkflowEngine), engine)
    assert.strictEqual(await app.container.make('@adonis-agora/durable:transport'), transport)
  })

  test('registering builds nothing', async ({ assert }) => {
    let built = 0
    const factory = () => {
      built++
      return new InMemoryStateStore()
    }
    const app = await createApp({ durable: { store: 's', stores: { s: factory } } })
    app.booting(() => assert.equal(built, 0))
    const { default: DurableProvider } = await import('../../providers/durable_provider.ts')
    new DurableProvider(app).register()
    assert.equal(built, 0)
    await app.boot()
    assert.equal(built, 1)
  })

  test('a config that cannot work fails the boot with the key', async ({ assert }) => {
    await assert.rejects(
      () => bootApp({ durable: { store: 'lucid' } }),
      'config.store is "lucid", but config.stores.lucid is not defined'
    )
    await assert.rejects(
      () => bootApp({ durable: { blockedPollMs: 1 } }),
      'config.blockedPollMs is not supported by this release: remove it'
    )
  })

  test('a build that failed is tried again, and leaves nothing open', async ({ assert }) => {
    const transport = new InMemoryTransport()
    let closed = 0
    let attempts = 0
    transport.close = async () => void closed++
    const store = () => {
      attempts++
      if (attempts === 1) throw new Error('database is down')
      return new InMemoryStateStore()
    }
    const app = await bootApp({
      provider: false,
      durable: {
        store: 's',
        stores: { s: store },
        transport: 't',
        transports: { t: transport },
      },
    })
    const { default: DurableProvider } = await import('../../providers/durable_provider.ts')
    const provider = new DurableProvider(app)
    provider.register()
    await assert.rejects(() => app.container.make(WorkflowEngine), 'database is down')
    assert.equal(closed, 0)
    assert.instanceOf(await app.container.make(WorkflowEngine), WorkflowEngine)
    await provider.shutdown()
    assert.equal(closed, 1)
  })

  test('what was opened is closed when a later part cannot be built', async ({ assert }) => {
    const closed: string[] = []
    const store = new InMemoryStateStore()
    store.close = async () => void closed.push('store')
    const transport = new InMemoryTransport()
    transport.close = async () => void closed.push('transport')
    await assert.rejects(
      () =>
        bootApp({
          durable: {
            store: 's',
            stores: { s: store },
            transport: 'a',
            transportPool: ['b'],
            transports: {
              a: transport,
              b: () => {
                throw new Error('broker is down')
              },
            },
          },
        }),
      'broker is down'
    )
    assert.deepEqual(closed, ['transport', 'store'])
  })

  test('the statics of workflow classes use the engine of the application', async ({ assert }) => {
    class Greeting extends BaseWorkflow {
      static workflow = { name: 'greeting' }
      async run(_ctx: unknown, input: { name: string }) {
        return `hello ${input.name}`
      }
    }
    const app = await bootApp()
    const engine = await app.container.make(WorkflowEngine)
    engine.register('greeting', '1', (ctx, input: never) => new Greeting().run(ctx, input))
    assert.equal(await Greeting.start({ name: 'Ada' }), 'hello Ada')
    await app.terminate()
    await assert.rejects(() => Greeting.start({ name: 'Ada' }), /there is no workflow engine/)
  })
})

test.group('Provider | embedded worker', () => {
  const pendingOrder = {
    id: 'left-behind',
    workflow: 'order',
    workflowVersion: '1',
    status: 'pending' as const,
    namespace: 'default',
    input: { amount: 4 },
    createdAt: new Date(0),
    updatedAt: new Date(0),
  }

  async function embedding(environment: AppEnvironments, worker: DurableConfig['worker']) {
    const store = new InMemoryStateStore()
    await store.createRun(pendingOrder)
    const durable = defineConfig({ store: 's', stores: { s: store }, worker })
    const app = await startApp({ environment, durable, files: FILES })
    return { app, engine: await app.container.make(WorkflowEngine) }
  }

  test('executes runs that nobody else does', async ({ assert }) => {
    const { engine } = await embedding('web', { embedded: true })
    const result = await engine.waitForRun('left-behind', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 8)
  })

  test('is off unless it is asked for', async ({ assert }) => {
    const { app } = await embedding('web', { intervalMs: 1 })
    const role = await app.container.make('@adonis-agora/durable:store-role')
    assert.isFalse(role.isLooping)
  })

  test('is off in console and REPL processes', async ({ assert }) => {
    for (const environment of ['console', 'repl'] satisfies AppEnvironments[]) {
      const { app } = await embedding(environment, { embedded: true })
      const role = await app.container.make('@adonis-agora/durable:store-role')
      assert.isFalse(role.isLooping)
    }
  })

  test('a tick that fails is logged and does not end it', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await store.createRun(pendingOrder)
    const claim = store.claimDueRuns.bind(store)
    let failures = 0
    store.claimDueRuns = async (due) => {
      if (failures++ < 3) throw new Error('database is down')
      return claim(due)
    }
    const durable = defineConfig({
      store: 's',
      stores: { s: store },
      worker: { embedded: true, intervalMs: 1 },
    })
    const logged: unknown[] = []
    const app = await bootApp({ durable, files: FILES })
    const logger = await app.container.make('logger')
    logger.error = ((message: unknown) => void logged.push(message)) as never
    await app.start(() => {})
    const engine = await app.container.make(WorkflowEngine)
    const result = await engine.waitForRun('left-behind', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 8)
    assert.include(logged, 'durable: runPending failed: database is down')
  })
})

test.group('Provider | shutdown', () => {
  test('drains, then closes transports, then the store, each whatever the others do', async ({
    assert,
  }) => {
    const order: string[] = []
    const store = new InMemoryStateStore()
    store.close = async () => void order.push('store')
    const failing = new InMemoryTransport()
    failing.close = async () => {
      order.push('first transport')
      throw new Error('cannot close')
    }
    const second = new InMemoryTransport()
    second.close = async () => void order.push('second transport')
    const app = await createApp({
      durable: {
        store: 's',
        stores: { s: store },
        transport: 'a',
        transportPool: ['b'],
        transports: { a: failing, b: second },
      },
    })
    await app.boot()
    const engine = await app.container.make(WorkflowEngine)
    const gate = deferred<void>()
    const begun = deferred<void>()
    engine.register('busy', '1', async (ctx) => {
      await ctx.localStep('work', async () => {
        begun.resolve()
        await gate.promise
      })
      order.push('turn')
    })
    await engine.start('busy', null, 'r')
    await begun.promise

    const over = app.terminate()
    while (!engine.isDraining()) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(order, [])
    gate.resolve()
    await assert.rejects(() => over, 'cannot close')
    assert.deepEqual(order, ['turn', 'first transport', 'second transport', 'store'])
    assert.equal((await store.getRun('r'))!.status, 'completed')
  })

  test('happens once', async ({ assert }) => {
    const app = await bootApp({ durable: defineConfig({ store: 's', stores: { s: counted() } }) })
    const role = await app.container.make('@adonis-agora/durable:store-role')
    await Promise.all([role.shutdown(), role.shutdown()])
    await app.terminate()
    assert.equal(closes, 1)
  })

  test('builds nothing for an application that never had an engine', async ({ assert }) => {
    let built = 0
    const app = await createApp({
      durable: { store: 's', stores: { s: () => (built++, never()) } },
    })
    const { default: DurableProvider } = await import('../../providers/durable_provider.ts')
    const provider = new DurableProvider(app)
    provider.register()
    await provider.shutdown()
    assert.equal(built, 0)
  })

  test('an embedded loop drains the engine, and nobody drains it again', async ({ assert }) => {
    const app = await startApp({ durable: defineConfig({ worker: { embedded: true } }) })
    const engine = await app.container.make(WorkflowEngine)
    const drain = engine.drain.bind(engine)
    let drains = 0
    engine.drain = (ms) => {
      drains++
      return drain(ms)
    }
    await app.terminate()
    assert.equal(drains, 1)
  })

  let closes = 0
  function counted(): InMemoryStateStore {
    const store = new InMemoryStateStore()
    store.close = async () => void closes++
    return store
  }

  function never(): never {
    throw new Error('is never called')
  }
})
