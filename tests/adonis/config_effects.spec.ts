import { test } from '@japa/runner'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Assert } from '@japa/assert'
import type { ApplicationService } from '@adonisjs/core/types'
import {
  type DurableConfig,
  defineConfig,
  InMemoryStateStore,
  InMemoryTransport,
  stores,
  type Transport,
  WorkflowEngine,
  type WorkflowRun,
} from '../../index.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { RemoteTask } from '../../src/wire/messages.ts'
import { bootApp, PACKAGE, startApp } from './app.ts'
import { UPKEEP_EFFECTS } from './upkeep_effects.ts'
import { FLOW_EFFECTS } from './flow_effects.ts'

/** Keeps what it is given and answers nothing: a broker without workers. */
class SilentTransport implements Transport {
  readonly tasks: RemoteTask[] = []

  async dispatch(task: RemoteTask): Promise<void> {
    this.tasks.push(task)
  }

  onResult(): void {}
  onHeartbeat(): void {}
}

interface Rig {
  assert: Assert
  /** An application with this config, over a store that the test can look into. */
  boot(config?: DurableConfig, files?: Record<string, string>): Promise<Booted>
}

interface Booted {
  app: ApplicationService
  engine: WorkflowEngine
  store: InMemoryStateStore
}

const QUIET: DurableConfig = { workflowsPath: false, stepsPath: false }

function rig(assert: Assert): Rig {
  return {
    assert,
    async boot(config = {}, files) {
      const store = new InMemoryStateStore()
      const durable = { ...QUIET, store: 'memory', stores: { memory: store }, ...config }
      const app = await bootApp({ durable: defineConfig(durable), files })
      return { app, engine: await app.container.make(WorkflowEngine), store }
    },
  }
}

const over = (transport: Transport): DurableConfig => ({
  transport: 'test',
  transports: { test: transport },
})

/** A run in the middle of a local step; `end` lets it finish. */
async function executing({ engine }: Booted, runId = 'r') {
  const gate = deferred<void>()
  const begun = deferred<void>()
  engine.register('busy', '1', (ctx) =>
    ctx.localStep('work', async () => {
      begun.resolve()
      await gate.promise
    })
  )
  await engine.start('busy', null, runId)
  await begun.promise
  return { run: (await engine.getRun(runId))!, end: () => gate.resolve() }
}

/** A run that waits for a dispatched step. */
async function waiting({ engine }: Booted) {
  engine.register('remote', '1', (ctx) => ctx.step('far', null))
  await engine.start('remote', null, 'r')
  await engine.waitForRun('r', { timeoutMs: 5000 })
  const [row] = await engine.listCheckpoints('r')
  return { run: (await engine.getRun('r'))!, row }
}

function storedRun(id: string, patch: Partial<WorkflowRun>): WorkflowRun {
  return {
    id,
    workflow: 'plain',
    workflowVersion: '1',
    status: 'pending',
    namespace: 'default',
    input: null,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...patch,
  }
}

const spin = () => new Promise((resolve) => setImmediate(resolve))

async function bodiesRun(booted: Booted): Promise<number> {
  let bodies = 0
  booted.engine.register('waits', '1', async (ctx) => {
    bodies++
    return ctx.waitForSignal('go')
  })
  await booted.engine.start('waits', null, 'r')
  await booted.engine.waitForRun('r', { timeoutMs: 5000 })
  await booted.engine.signal('go', 1)
  await booted.engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
  return bodies
}

/** One proof per key of the config: that it is observed by whoever it is meant for. */
const EFFECTS: { [Key in keyof Required<DurableConfig>]: (rig: Rig) => Promise<void> } = {
  ...UPKEEP_EFFECTS,
  ...FLOW_EFFECTS,

  async role({ assert, boot }) {
    await assert.rejects(() => boot({ role: 'tenant' } as never), /config\.role "tenant"/)
  },

  async transport({ assert, boot }) {
    const transport = new SilentTransport()
    await waiting(
      await boot({ transport: 'b', transports: { a: new SilentTransport(), b: transport } })
    )
    assert.deepEqual(
      transport.tasks.map(({ name, transport: id }) => [name, id]),
      [['far', 'b']]
    )
  },

  async transports({ assert, boot }) {
    const transport = new SilentTransport()
    const { app } = await boot({ transport: 'a', transports: { a: () => transport } })
    assert.equal(await app.container.make('@adonis-agora/durable:transport'), transport)
  },

  async transportPool({ assert, boot }) {
    const second = new SilentTransport()
    const booted = await boot({
      transport: 'a',
      transports: { a: new SilentTransport(), b: second },
      transportPool: ['b', 'a'],
    })
    booted.engine.register('pinned', '1', (ctx) => ctx.step('far', null, { transport: 'b' }))
    await booted.engine.start('pinned', null, 'r')
    await booted.engine.waitForRun('r', { timeoutMs: 5000 })
    assert.lengthOf(second.tasks, 1)
  },

  async store({ assert, boot }) {
    const [one, two] = [new InMemoryStateStore(), new InMemoryStateStore()]
    const { engine } = await boot({ store: 'two', stores: { one, two } })
    engine.register('plain', '1', async () => 1)
    await engine.start('plain', null, 'r')
    assert.isNull(await one.getRun('r'))
    assert.equal((await two.getRun('r'))!.id, 'r')
  },

  async stores({ assert, boot }) {
    const contexts: object[] = []
    const factory = (context: object) => {
      contexts.push(context)
      return new InMemoryStateStore()
    }
    const { app } = await boot({ store: 'own', stores: { own: factory, unused: stores.lucid() } })
    assert.deepEqual(contexts, [{ app }])
  },

  async autoSchema({ assert, boot }) {
    for (const [autoSchema, times] of [
      [undefined, 1],
      [false, 0],
    ] as const) {
      let calls = 0
      const store = new (class extends InMemoryStateStore {
        async ensureSchema() {
          calls++
        }
      })()
      await boot({ autoSchema, store: 's', stores: { s: store } })
      assert.equal(calls, times)
    }
  },

  async traceparent({ assert, boot }) {
    const transport = new SilentTransport()
    await waiting(await boot({ ...over(transport), traceparent: () => '00-abc-def-01' }))
    assert.equal(transport.tasks[0].traceparent, '00-abc-def-01')
  },

  async trackStepStart({ assert, boot }) {
    const seen: string[] = []
    for (const trackStepStart of [true, false]) {
      const { engine } = await boot({ trackStepStart })
      engine.register('slow', '1', (ctx) =>
        ctx.localStep('work', async () => {
          // The step takes longer than a start that goes unrecorded.
          await new Promise((resolve) => setTimeout(resolve, 120))
          const rows = await engine.listCheckpoints('r')
          seen.push(rows.map(({ status }) => status).join())
        })
      )
      await engine.start('slow', null, 'r')
      await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    }
    assert.deepEqual(seen, ['running', ''])
  },

  async leaseMs({ assert, boot }) {
    const { run, end } = await executing(await boot({ leaseMs: 4321 }))
    assert.equal(run.lockedUntil! - run.claimedAt!.getTime(), 4321)
    end()
  },

  async instanceId({ assert, boot }) {
    const owners: string[] = []
    for (let boots = 0; boots < 2; boots++) {
      const { run, end } = await executing(await boot({ instanceId: 'web-1' }))
      owners.push(run.lockedBy!)
      end()
    }
    assert.match(owners[0], /^web-1-[0-9a-f]{8}$/)
    assert.match(owners[1], /^web-1-[0-9a-f]{8}$/)
    assert.notEqual(owners[0], owners[1])
  },

  async namespace({ assert, boot }) {
    for (const [namespace, expected] of [
      ['eu', 'eu'],
      [undefined, 'default'],
      ['', 'default'],
    ]) {
      const { engine } = await boot({ namespace })
      engine.register('plain', '1', async () => 1)
      await engine.start('plain', null, 'r')
      assert.equal(engine.namespace, expected)
      assert.equal((await engine.getRun('r'))!.namespace, expected)
    }
  },

  async scopeReads({ assert, boot }) {
    for (const [scopeReads, found] of [
      [true, false],
      [false, true],
    ]) {
      const { engine, store } = await boot({ namespace: 'eu', scopeReads })
      await store.createRun(storedRun('us', { namespace: 'us' }))
      assert.equal((await engine.getRun('us')) !== null, found)
    }
  },

  async maxRecoveryAttempts({ assert, boot }) {
    const { engine, store } = await boot({ maxRecoveryAttempts: 0 })
    await store.createRun(storedRun('r', { status: 'running', turns: 1, lockedUntil: 1 }))
    await engine.recoverIncomplete()
    assert.equal((await engine.getRun('r'))!.status, 'dead')
  },

  async compensationRetries({ assert, boot }) {
    const { engine } = await boot({ compensationRetries: 3 })
    let undos = 0
    engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('one', () => 1, {
        compensate: () => {
          undos++
          throw new Error('not yet')
        },
      })
      throw new Error('no')
    })
    await engine.start('saga', null, 'r')
    await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(undos, 3)
  },

  async compensationTimeoutMs({ assert, boot }) {
    const transport = new SilentTransport()
    const { engine } = await boot({ ...over(transport), compensationTimeoutMs: 1 })
    engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('one', () => 1)
      await ctx.step('far', null, { compensate: 'undo-far' })
    })
    await engine.start('saga', null, 'r')
    await engine.waitForRun('r', { timeoutMs: 5000 })
    const [, row] = await engine.listCheckpoints('r')
    assert.equal(row.name, 'far')
    await engine.cancel('r', { compensate: true })
    // The undo is never answered: with the default of five minutes this would not end.
    const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.status, 'cancelled')
  },

  async runDispatcher({ assert, boot }) {
    const dispatched: string[] = []
    const runDispatcher = { dispatch: (runId: string) => void dispatched.push(runId) }
    // It wins over `drive`.
    const { engine } = await boot({ runDispatcher, drive: false })
    engine.register('plain', '1', async () => 1)
    await engine.start('plain', null, 'r')
    while (dispatched.length === 0) await spin()
    assert.deepEqual(dispatched, ['r'])
    assert.equal((await engine.getRun('r'))!.status, 'pending')
  },

  async drive({ assert, boot }) {
    const { engine } = await boot({ drive: false })
    engine.register('plain', '1', async () => 1)
    await engine.start('plain', null, 'left')
    await engine.start('plain', null, 'asked-for')
    await engine.resume('asked-for')
    assert.equal((await engine.getRun('asked-for'))!.status, 'completed')
    assert.equal((await engine.getRun('left'))!.status, 'pending')
  },

  async drainTimeoutMs({ assert, boot }) {
    const booted = await boot({ drainTimeoutMs: 0 })
    const { end } = await executing(booted)
    // With the default of ten seconds this would exceed the timeout of the test.
    await booted.app.terminate()
    assert.equal((await booted.store.getRun('r'))!.status, 'running')
    end()
  },

  async consumers({ assert, boot }) {
    const transport = new InMemoryTransport()
    const { engine } = await boot({ ...over(transport), consumers: 'never' })
    engine.handle('far', () => 'served')
    engine.register('remote', '1', (ctx) => ctx.step('far', null))
    await engine.start('remote', null, 'r')
    await engine.waitForRun('r', { timeoutMs: 5000 })
    assert.isTrue(transport.isRunning('r:0'))
    engine.startConsumers()
    const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 'served')
  },

  async worker({ assert }) {
    const store = new InMemoryStateStore()
    await store.createRun(storedRun('left-behind', {}))
    const app = await startApp({
      files: {
        'app/workflows/plain.ts': `
          import { BaseWorkflow } from '${PACKAGE}'
          export default class Plain extends BaseWorkflow {
            static workflow = { name: 'plain' }
            async run() { return 'picked up' }
          }`,
      },
      durable: defineConfig({
        store: 'memory',
        stores: { memory: store },
        worker: { embedded: true, intervalMs: 5, drainTimeoutMs: 0 },
      }),
    })
    const engine = await app.container.make(WorkflowEngine)
    const result = await engine.waitForRun('left-behind', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 'picked up')
    // More than one tick at this interval, and the budget of the worker wins.
    await store.createRun(storedRun('later', {}))
    await engine.waitForRun('later', { terminal: true, timeoutMs: 5000 })
    const { end } = await executing({ app, engine, store })
    await app.terminate()
    assert.equal((await store.getRun('r'))!.status, 'running')
    end()
  },

  async remoteRedispatchMs({ assert, boot }) {
    const off = await waiting(await boot(over(new SilentTransport())))
    assert.isUndefined(off.row.wakeAt)
    const { row } = await waiting(
      await boot({ ...over(new SilentTransport()), remoteRedispatchMs: 7000 })
    )
    assert.isBelow(row.wakeAt! - row.enqueuedAt.getTime(), 60_000)
  },

  async remoteRedispatchMax({ assert, boot }) {
    const transport = new SilentTransport()
    const booted = await boot({ ...over(transport), remoteRedispatchMs: 1, remoteRedispatchMax: 2 })
    const { row } = await waiting(booted)
    let run = await booted.engine.getRun('r')
    while (run!.status === 'suspended') {
      await booted.engine.resumeDueTimers(row.wakeAt! + 60_000)
      await spin()
      run = await booted.engine.getRun('r')
    }
    assert.equal(run!.error?.code, 'remote_step_lost')
    assert.lengthOf(transport.tasks, 2)
  },

  async timerBatchSize({ assert, boot }) {
    const { engine, store } = await boot({ timerBatchSize: 2 })
    engine.register('plain', '1', async () => 1)
    for (const id of ['a', 'b', 'c']) {
      await store.createRun(storedRun(id, { status: 'suspended', wakeAt: 1 }))
    }
    assert.lengthOf(await engine.resumeDueTimers(), 2)
    assert.lengthOf(await engine.resumeDueTimers(), 1)
  },

  async reconcileMs({ assert, boot }) {
    const { run } = await waiting(await boot({ ...over(new SilentTransport()), reconcileMs: 1234 }))
    assert.isBelow(run.wakeAt! - run.createdAt.getTime(), 60_000)
    const off = await waiting(await boot({ ...over(new SilentTransport()), reconcileMs: 0 }))
    assert.isUndefined(off.run.wakeAt)
  },

  async workflowsPath({ assert, boot }) {
    const workflow = (name: string) => `
      import { BaseWorkflow } from '${PACKAGE}'
      export default class extends BaseWorkflow {
        static workflow = { name: '${name}' }
        async run() { return '${name}' }
      }`
    const files = {
      'app/workflows/usual.ts': workflow('usual'),
      'modules/billing/flows/charge.ts': workflow('charge'),
    }
    const started = async (config: DurableConfig) => {
      const { engine } = await boot({ stepsPath: false, ...config }, files)
      const names = await Promise.all(
        ['usual', 'charge'].map((name) =>
          engine.start(name, null, name).then(
            () => [name],
            () => []
          )
        )
      )
      return names.flat()
    }
    assert.deepEqual(await started({ workflowsPath: undefined }), ['usual'])
    assert.deepEqual(await started({ workflowsPath: 'modules' }), ['charge'])
    const both = ['app/workflows', 'modules/billing/flows']
    assert.deepEqual(await started({ workflowsPath: both }), ['usual', 'charge'])
    assert.deepEqual(await started({ workflowsPath: false }), [])
    assert.deepEqual(await started({ workflowsPath: [] }), [])
  },

  async stepsPath({ assert, boot }) {
    const files = {
      'handlers/far.ts': `
        import { defineStep } from '${PACKAGE}'
        export const far = defineStep('far', () => 'served')`,
    }
    // Discovery of steps does not depend on that of workflows.
    const { engine } = await boot({ workflowsPath: false, stepsPath: 'handlers' }, files)
    engine.register('remote', '1', (ctx) => ctx.step('far', null))
    await engine.start('remote', null, 'r')
    const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 'served')
  },

  async continuations({ assert, boot }) {
    assert.equal(await bodiesRun(await boot()), 1)
    assert.equal(await bodiesRun(await boot({ continuations: false })), 2)
  },

  async webhookUrl({ assert, boot }) {
    const { engine } = await boot({ webhookUrl: (token) => `https://hooks/${token}` })
    engine.register('hooked', '1', async (ctx) => ctx.webhook().url)
    await engine.start('hooked', null, 'r')
    const run = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(run.output, 'https://hooks/wh:r:0')
  },

  async schedules({ assert, boot }) {
    const schedules = [{ key: 'often', workflow: 'plain', everyMs: 86_400_000 }]
    const { engine } = await boot({ schedules })
    engine.register('plain', '1', async () => 1)
    const { started } = await engine.fireSchedules()
    assert.match(started[0].runId, /^sched:often:\d+$/)
  },

  async persistedSchedules({ assert, boot }) {
    const { engine } = await boot({ persistedSchedules: true })
    engine.register('plain', '1', async () => 1)
    await engine.schedules.create({ id: 'often', workflow: 'plain', everyMs: 1 })
    await sleep(5)
    const { started } = await engine.fireSchedules()
    assert.lengthOf(started, 1)
  },

  async maxPayloadBytes({ assert, boot }) {
    const { engine } = await boot({ maxPayloadBytes: 10 })
    engine.register('plain', '1', async () => 1)
    await engine.start('plain', 'short', 'fits')
    await assert.rejects(() => engine.start('plain', 'much too long', 'r'), /10/)
  },
}

test.group('Every key of the config', () => {
  for (const [key, prove] of Object.entries(EFFECTS)) {
    test(`${key} takes effect`, ({ assert }) => prove(rig(assert)))
  }
})
