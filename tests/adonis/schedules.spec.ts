/*
 * Schedules of an application: from config/durable.ts and from classes, fired by a worker loop.
 */
import { test } from '@japa/runner'
import {
  defineConfig,
  type DurableConfig,
  InMemoryStateStore,
  WorkflowEngine,
} from '../../index.ts'
import { bootApp, PACKAGE, startApp } from './app.ts'

const DAY = 86_400_000

const workflow = (name: string, schedule: string, decorator = '') => `
  import { BaseWorkflow, Scheduled } from '${PACKAGE}'
  ${decorator}
  export default class Reporting extends BaseWorkflow {
    static workflow = { name: '${name}' }
    ${schedule && `static schedule = ${schedule}`}
    async run(ctx, input) { return input ?? 'none' }
  }`

function appWith(files: Record<string, string>, config: DurableConfig = {}) {
  const store = new InMemoryStateStore()
  const options = {
    files: Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`app/workflows/${name}`, text])
    ),
    durable: defineConfig({ store: 'memory', stores: { memory: store }, ...config }),
  }
  return { store, options }
}

const listed = async (engine: WorkflowEngine) => {
  const schedules = await engine.listSchedules()
  return schedules.map(({ key, workflow: name, source }) => [key, name, source])
}

test.group('Schedules of an application', () => {
  test('classes and config are merged, and the config wins with a whole entry', async ({
    assert,
  }) => {
    const { options } = appWith(
      {
        'one.ts': workflow('one', `{ everyMs: ${DAY} }`),
        'two.ts': workflow('two', `[{ everyMs: ${DAY} }, { key: 'named', everyMs: ${DAY} }]`),
        'three.ts': workflow(
          'three',
          '',
          `@Scheduled({ key: 'taken', everyMs: ${DAY}, input: 1 })`
        ),
        'none.ts': workflow('none', ''),
      },
      { schedules: [{ key: 'taken', workflow: 'none', everyMs: DAY }] }
    )
    const app = await bootApp(options)
    const engine = await app.container.make(WorkflowEngine)
    assert.sameDeepMembers(await listed(engine), [
      ['taken', 'none', 'config'],
      ['one', 'one', 'class'],
      ['two:0', 'two', 'class'],
      ['named', 'two', 'class'],
    ])
    const run = await engine.triggerSchedule('taken')
    const { output } = await engine.waitForRun(run!.runId, { terminal: true, timeoutMs: 5000 })
    assert.equal(output, 'none')
  })

  test('a lazy import is performed when a worker starts, and the loop fires it', async ({
    assert,
  }) => {
    let imports = 0
    class Lazy {
      static workflow = { name: 'lazy' }
      async run() {}
    }
    const lazy = async () => {
      imports++
      return { default: Lazy }
    }
    const { options } = appWith(
      { 'lazy.ts': workflow('lazy', '') },
      { schedules: [{ key: 'lazy', workflow: lazy, everyMs: DAY, input: { a: 1 } }] }
    )
    const waiting = await bootApp(options)
    await waiting.container.make(WorkflowEngine)
    assert.equal(imports, 0)
    const embedded = { worker: { embedded: true, intervalMs: 5 } }
    const app = await startApp({ ...options, durable: { ...options.durable, ...embedded } })
    const engine = await app.container.make(WorkflowEngine)
    const [{ current }] = await engine.listSchedules()
    const run = await engine.waitForRun(current!.runId, { terminal: true, timeoutMs: 5000 })
    assert.deepEqual(run.output, { a: 1 })
    assert.equal(imports, 1)
  })

  test('an import that fails ends the start of the worker with the key', async ({ assert }) => {
    const broken = async () => {
      throw new Error('no such file')
    }
    const { options } = appWith(
      {},
      {
        worker: { embedded: true },
        schedules: [{ key: 'broken', workflow: broken, everyMs: DAY }],
      }
    )
    await assert.rejects(
      () => startApp(options),
      'schedule "broken": its workflow cannot be imported: no such file'
    )
  })

  test('a pattern or a zone that is none ends the boot with the key', async ({ assert }) => {
    for (const [schedule, message] of [
      ["{ cron: '0 25 * * *' }", /schedule "one": cron "0 25 \* \* \*" cannot be used/],
      ["{ cron: '0 2 * * *', timezone: 'Mars/X' }", /schedule "one": timezone "Mars\/X" cannot be/],
      ["{ cron: '0 2 * *' }", /schedule "one" cron must be a pattern of five fields/],
    ] as const) {
      const { options } = appWith({ 'one.ts': workflow('one', schedule) })
      await assert.rejects(() => bootApp(options), message)
    }
  })
})
