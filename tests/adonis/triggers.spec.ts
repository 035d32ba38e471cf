/*
 * Workflows that events start: `@OnEvent` over the application's emitter, `@OnDiagnostic` over the
 * diagnostics bus, in booted applications.
 */
import { channel } from 'node:diagnostics_channel'
import type { ApplicationService } from '@adonisjs/core/types'
import type { AppEnvironments } from '@adonisjs/core/types/app'
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { InMemoryStateStore, type WorkflowRun, WorkflowEngine } from '../../index.ts'
import { bootApp, PACKAGE } from './app.ts'

const EMIT: unique symbol = Symbol.for('@agora/diagnostics:emit') as never
const slots = globalThis as { [EMIT]?: (lib: string, event: string, payload: unknown) => unknown }

const workflow = (name: string, decorators: string, more = '') => `
  import { BaseWorkflow, OnDiagnostic, OnEvent } from '${PACKAGE}'
  ${decorators}
  export class Triggered extends BaseWorkflow {
    static workflow = { name: '${name}' ${more} }
    async run(ctx, input) { return { input } }
  }`

interface Rig {
  files: Record<string, string>
  environment?: AppEnvironments
  store?: InMemoryStateStore
}

async function booted({ files, environment, store = new InMemoryStateStore() }: Rig) {
  const logs: { level: 'warn' | 'error'; message: string; err?: Error }[] = []
  const app = await bootApp({
    environment,
    durable: { store: 'memory', stores: { memory: store } },
    files: Object.fromEntries(
      Object.entries(files).map(([path, text]) => [`app/workflows/${path}`, text])
    ),
    prepare: (created) =>
      created.booting(() => {
        created.container.resolving('logger', (logger) => {
          logger.warn = ((message: string) => void logs.push({ level: 'warn', message })) as never
          logger.error = ((given: { err: Error }, message: string) =>
            void logs.push({ level: 'error', message, err: given.err })) as never
        })
      }),
  })
  const emitter = await app.container.make('emitter')
  return {
    app,
    store,
    logs,
    emitter,
    emit: (event: string, data?: unknown) => emitter.emit(event as never, data as never),
    listeners: (event: string) => emitter.listenerCount(event as never),
    runs: () => runsOf(app),
  }
}

/** Every run, once all that were started are through. */
async function runsOf(app: ApplicationService): Promise<WorkflowRun[]> {
  const engine = await app.container.make(WorkflowEngine)
  const runs = await engine.listRuns({})
  for (const { id } of runs) await engine.waitForRun(id, { terminal: true, timeoutMs: 5000 })
  return engine.listRuns({})
}

const outputs = (runs: WorkflowRun[]) =>
  runs.map(({ workflow: name, output }) => [name, (output as { input: unknown }).input])

/** A bus as its package leaves it: publishes on Node's channels. Removed after the test. */
function installBus() {
  const seen: unknown[][] = []
  const bus = (lib: string, event: string, payload: unknown) => {
    seen.push([lib, event, payload])
    channel(`agora:${lib}:${event}`).publish(payload)
  }
  slots[EMIT] = bus
  return { bus, seen }
}

test.group('Triggers | the emitter', () => {
  test('an event starts a run with its data, and is recorded when emit resolves', async ({
    assert,
  }) => {
    const { emit, runs, store } = await booted({
      files: { 'ship.ts': workflow('ship', `@OnEvent({ event: 'order:paid' })`) },
    })
    await emit('order:paid', { order: 7, at: new Date(0) })
    assert.lengthOf(await store.listRuns({}), 1)
    await emit('order:paid', { order: 8 })
    await emit('order:refunded', { order: 7 })
    const all = await runs()
    assert.sameDeepMembers(outputs(all), [
      ['ship', { order: 7, at: '1970-01-01T00:00:00.000Z' }],
      ['ship', { order: 8 }],
    ])
    assert.lengthOf(new Set(all.map(({ id }) => id)), 2)
  })

  test('one event starts every workflow that names it, one workflow has several events', async ({
    assert,
  }) => {
    const { emit, runs } = await booted({
      files: {
        'ship.ts': workflow('ship', `@OnEvent({ event: 'a' }) @OnEvent({ event: 'b' })`),
        'bill.ts': workflow('bill', `@OnEvent({ event: 'a' })`),
        'none.ts': workflow('none', ''),
      },
    })
    await emit('a', 1)
    await emit('b', 2)
    assert.sameDeepMembers(outputs(await runs()), [
      ['ship', 1],
      ['bill', 1],
      ['ship', 2],
    ])
  })

  test('of two versions of a workflow only the newest listens', async ({ assert }) => {
    const { emit, runs } = await booted({
      files: {
        'v10.ts': workflow('ship', `@OnEvent({ event: 'new' })`, `, version: '10'`),
        'v9.ts': workflow(
          'ship',
          `@OnEvent({ event: 'new' }) @OnEvent({ event: 'old' })`,
          `, version: '9'`
        ),
      },
    })
    await emit('new', 1)
    await emit('old', 2)
    const all = await runs()
    assert.deepEqual(
      all.map(({ workflowVersion, input }) => [workflowVersion, input]),
      [['10', 1]]
    )
  })

  test('a start that fails is logged, and neither the emitter nor another workflow notices', async ({
    assert,
  }) => {
    const { emit, runs, logs } = await booted({
      files: {
        'picky.ts': workflow(
          'picky',
          `@OnEvent({ event: 'e' })`,
          `, inputSchema: { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) } }`
        ),
        'ship.ts': workflow('ship', `@OnEvent({ event: 'e' })`),
      },
    })
    await emit('e', 1)
    assert.deepEqual(outputs(await runs()), [['ship', 1]])
    assert.lengthOf(logs, 1)
    assert.equal(logs[0].message, 'durable: event "e" could not start a run of workflow "picky"')
    assert.match(logs[0].err!.message, /no/)
  })

  test('a wrong static on fails the boot', async ({ assert }) => {
    await assert.rejects(
      () =>
        booted({ files: { 'wrong.ts': workflow('wrong', `@OnDiagnostic({ lib: 'durable' })`) } }),
      /needs an event for library "durable"/
    )
  })
})

test.group('Triggers | when a process listens', () => {
  const files = { 'ship.ts': workflow('ship', `@OnEvent({ event: 'e' })`) }

  test('one that serves requests does, one that runs a command does not', async ({ assert }) => {
    for (const [environment, count] of [
      ['web', 1],
      ['test', 1],
      ['console', 0],
      ['repl', 0],
    ] as const) {
      const { emit, runs } = await booted({ files, environment })
      await emit('e', 1)
      assert.lengthOf(await runs(), count, environment)
    }
  })

  test('a worker loop does, while it runs', async ({ assert }) => {
    const { app, emit, listeners, runs } = await booted({ files, environment: 'console' })
    const role = await app.container.make('@adonis-agora/durable:store-role')
    const stop = deferred<void>()
    const working = role.work({
      intervalMs: 5,
      drainTimeoutMs: 1000,
      stopSignal: stop.promise,
      logger: { info() {}, error() {} },
    })
    while (listeners('e') === 0) await new Promise((resolve) => setImmediate(resolve))
    await emit('e', 1)
    assert.deepEqual(outputs(await runs()), [['ship', 1]])
    stop.resolve()
    await working
  })

  test('until it shuts down', async ({ assert }) => {
    const { app, emit, listeners, store } = await booted({ files })
    assert.equal(listeners('e'), 1)
    await app.terminate()
    assert.equal(listeners('e'), 0)
    await emit('e', 1)
    assert.isEmpty(await store.listRuns({}))
  })

  test('while the engine drains it starts nothing, and says so', async ({ assert }) => {
    const { app, emit, store, logs } = await booted({ files })
    const engine = await app.container.make(WorkflowEngine)
    engine.beginDrain()
    await emit('e', 1)
    assert.isEmpty(await store.listRuns({}))
    assert.deepEqual(logs, [
      {
        level: 'warn',
        message: 'durable: event "e" starts no run of workflow "ship": shutting down',
      },
    ])
  })

  test('a shutdown waits for a start that is under way', async ({ assert }) => {
    const gate = deferred<void>()
    class SlowStore extends InMemoryStateStore {
      override async createRun(run: WorkflowRun): Promise<void> {
        await gate.promise
        return super.createRun(run)
      }
    }
    const store = new SlowStore()
    const { app, emit, logs } = await booted({ files, store })
    const emitted = emit('e', 1)
    const ended = app.terminate()
    gate.resolve()
    await ended
    await emitted
    assert.lengthOf(await store.listRuns({}), 1)
    assert.isEmpty(logs)
  })
})

test.group('Triggers | the diagnostics bus', (group) => {
  group.each.teardown(() => {
    delete slots[EMIT]
  })

  const on = (config: string) => ({
    'seen.ts': workflow('seen', `@OnDiagnostic(${config})`),
  })

  test('an exact event, a pattern, and everything of a library', async ({ assert }) => {
    installBus()
    for (const [config, events] of [
      [`{ lib: 'queue', event: 'job.failed' }`, ['job.failed']],
      [`{ lib: 'queue', event: /^job\\./g }`, ['job.failed', 'job.done', 'job.again']],
      [`{ lib: 'queue' }`, ['job.failed', 'job.done', 'job.again', 'idle']],
    ] as const) {
      const { app, runs } = await booted({ files: on(config) })
      for (const event of ['job.failed', 'job.done', 'job.again', 'idle']) {
        slots[EMIT]!('queue', event, event)
        slots[EMIT]!('mail', event, 'of another library')
      }
      await settled()
      assert.sameDeepMembers(
        outputs(await runs()),
        events.map((event) => ['seen', event])
      )
      await app.terminate()
    }
  })

  test('a bus that is loaded after the boot, and one that is replaced', async ({ assert }) => {
    const { runs } = await booted({ files: on(`{ lib: 'queue' }`) })
    assert.isUndefined(slots[EMIT])
    const first = installBus()
    slots[EMIT]!('queue', 'one', 1)
    const second = installBus()
    slots[EMIT]!('queue', 'two', 2)
    await settled()
    assert.sameDeepMembers(outputs(await runs()), [
      ['seen', 1],
      ['seen', 2],
    ])
    assert.deepEqual(first.seen, [['queue', 'one', 1]])
    // The runs that this started report to it as well.
    const foreign = second.seen.filter(([lib]) => lib !== 'durable')
    assert.deepEqual(foreign, [['queue', 'two', 2]])
  })

  test('somebody who wraps the bus does not double what is reported', async ({ assert }) => {
    installBus()
    const { runs } = await booted({ files: on(`{ lib: 'queue', event: 'one' }`) })
    const inner = slots[EMIT]!
    slots[EMIT] = (lib, event, payload) => inner(lib, event, payload)
    slots[EMIT]!('queue', 'one', 1)
    await settled()
    assert.lengthOf(await runs(), 1)
  })

  test('without a bus, what is published on the channel of an exact event', async ({ assert }) => {
    const { app, runs } = await booted({ files: on(`{ lib: 'queue', event: 'one' }`) })
    channel('agora:queue:one').publish({ job: 1 })
    channel('agora:queue:two').publish({ job: 2 })
    await settled()
    assert.deepEqual(outputs(await runs()), [['seen', { job: 1 }]])
    await app.terminate()
    assert.isFalse(channel('agora:queue:one').hasSubscribers)
  })

  test('a shutdown leaves the slot as a library that came meanwhile set it', async ({ assert }) => {
    const { app } = await booted({ files: on(`{ lib: 'queue' }`) })
    const { bus } = installBus()
    assert.notEqual(slots[EMIT], bus)
    assert.equal(slots[EMIT], slots[EMIT])
    await app.terminate()
    assert.deepEqual(Object.getOwnPropertyDescriptor(slots, EMIT), {
      value: bus,
      configurable: true,
      enumerable: true,
      writable: true,
    })
    delete slots[EMIT]
    const other = await booted({ files: on(`{ lib: 'queue' }`) })
    await other.app.terminate()
    assert.isFalse(EMIT in slots)
  })

  test('what the bus throws stays between it and its caller', async ({ assert }) => {
    slots[EMIT] = () => {
      throw new Error('the bus is broken')
    }
    const { runs } = await booted({ files: on(`{ lib: 'queue' }`) })
    assert.throws(() => slots[EMIT]!('queue', 'one', 1), 'the bus is broken')
    await settled()
    assert.lengthOf(await runs(), 1)
  })

  test('a start that fails is logged', async ({ assert }) => {
    installBus()
    const { logs, store } = await booted({ files: on(`{ lib: 'queue' }`) })
    slots[EMIT]!('queue', 'one', 1n)
    await settled()
    assert.isEmpty(await store.listRuns({}))
    assert.deepEqual(
      logs.map(({ message }) => message),
      ['durable: diagnostics event "one" of "queue" could not start a run of workflow "seen"']
    )
  })

  test('a workflow does not start on the events of its own runs', async ({ assert }) => {
    installBus()
    const { runs } = await booted({ files: on(`{ lib: 'durable', event: /^run\\./ }`) })
    slots[EMIT]!('durable', 'run.started', { workflow: 'seen' })
    slots[EMIT]!('durable', 'run.started', { workflow: 'other' })
    await settled()
    assert.deepEqual(outputs(await runs()), [['seen', { workflow: 'other' }]])
  })

  /** A report does not wait for the run it starts; the store in memory needs no more than this. */
  async function settled() {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
})
