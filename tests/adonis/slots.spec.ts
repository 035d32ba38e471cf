import { test } from '@japa/runner'
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  defineConfig,
  type DurableConfig,
  InMemoryStateStore,
  WorkflowEngine,
} from '../../index.ts'
import { contextFromSlot, rehydrateFromSlot, traceparentFromSlot } from '../../src/adonis/slots.ts'
import type { RemoteTask } from '../../src/wire/messages.ts'
import { bootApp } from './app.ts'

const ACCESSOR = Symbol.for('@agora/context:accessor')
const SCOPE = Symbol.for('@agora/context:scope')
const TRACEPARENT = Symbol.for('@agora/otel:traceparent')

/** A context package: an accessor, and a scope that is opened around work. */
function installContext() {
  const storage = new AsyncLocalStorage<Record<string, unknown>>()
  set(ACCESSOR, { get: () => storage.getStore() })
  set(SCOPE, (carrier: Record<string, unknown>, fn: () => unknown) => storage.run(carrier, fn))
  return storage
}

function set(symbol: symbol, value: unknown): void {
  ;(globalThis as Record<symbol, unknown>)[symbol] = value
}

async function dispatched(config: DurableConfig, before: () => void = () => {}) {
  const tasks: RemoteTask[] = []
  const far = {
    dispatch: async (task: RemoteTask) => void tasks.push(task),
    onResult: () => {},
    onHeartbeat: () => {},
  }
  const durable = defineConfig({ transport: 'far', transports: { far }, ...config })
  const app = await bootApp({ durable })
  const engine = await app.container.make(WorkflowEngine)
  engine.register('remote', '1', (ctx) => ctx.step('far', null))
  before()
  await engine.start('remote', null, 'r')
  await engine.waitForRun('r', { timeoutMs: 5000 })
  return tasks[0]
}

test.group('Global slots', (group) => {
  group.each.teardown(() => {
    for (const symbol of [ACCESSOR, SCOPE, TRACEPARENT]) set(symbol, undefined)
  })

  test('without integrations nothing is added', async ({ assert }) => {
    assert.isUndefined(contextFromSlot())
    assert.isUndefined(traceparentFromSlot())
    assert.equal(
      rehydrateFromSlot({ user: 1 }, () => 'ran'),
      'ran'
    )
    const task = await dispatched({})
    assert.isUndefined(task.traceparent)
    assert.isUndefined(task.context)
  })

  test('an integration that is loaded after the engine was built counts', async ({ assert }) => {
    const task = await dispatched({}, () => set(TRACEPARENT, () => '00-late-1-01'))
    assert.equal(task.traceparent, '00-late-1-01')
  })

  test('traceparent of the config wins over an integration', async ({ assert }) => {
    set(TRACEPARENT, () => '00-slot-1-01')
    const task = await dispatched({ traceparent: () => '00-config-1-01' })
    assert.equal(task.traceparent, '00-config-1-01')
  })

  test('the context around a start is not looked into on its way', async ({ assert }) => {
    const storage = installContext()
    const context = { user: { id: 7 }, locale: 'pt' }
    const task = await storage.run(context, () => dispatched({}))
    assert.deepEqual(task.context, context)
  })

  test('a served step runs in the context that travelled with it', async ({ assert }) => {
    const storage = installContext()
    const store = new InMemoryStateStore()
    const app = await bootApp({ durable: { store: 's', stores: { s: store } } })
    const engine = await app.container.make(WorkflowEngine)
    engine.handle('whoami', () => storage.getStore())
    engine.register('remote', '1', (ctx) => ctx.step('whoami', null))
    await storage.run({ user: 7 }, () => engine.start('remote', null, 'r'))
    const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.deepEqual(result.output, { user: 7 })
  })
})
