import { test } from '@japa/runner'
import { defineConfig, type Transport, WorkflowEngine } from '../../index.ts'
import { bootApp, PACKAGE } from './app.ts'

const workflow = (name: string, body = `return '${name}'`, version = '1') => `
  import { BaseWorkflow } from '${PACKAGE}'
  export default class extends BaseWorkflow {
    static workflow = { name: '${name}', version: '${version}' }
    async run(ctx, input) { ${body} }
  }`

/** What `@inject()` leaves behind where decorators emit metadata. */
const INJECTS_COUNTER = 'static containerInjections = { _constructor: { dependencies: [Counter] } }'

async function outputOf(engine: WorkflowEngine, name: string, input: unknown = null) {
  await engine.start(name, input, `run-${name}`)
  const result = await engine.waitForRun(`run-${name}`, { terminal: true, timeoutMs: 5000 })
  return result.output
}

test.group('Discovery at boot', () => {
  test('builds workflow and step classes through the container, once each', async ({ assert }) => {
    const app = await bootApp({
      files: {
        'app/services/counter.ts': `
          export class Counter {
            static built = 0
            constructor() { Counter.built++ }
            next = 0
            count() { return ++this.next }
          }`,
        'app/workflows/counting.ts': `
          import { BaseWorkflow } from '${PACKAGE}'
          import { Counter } from '../services/counter.ts'
          export default class Counting extends BaseWorkflow {
            ${INJECTS_COUNTER}
            static workflow = { name: 'counting' }
            constructor(private counter: Counter) { super() }
            async run(ctx) {
              const here = await ctx.localStep('count', () => this.counter.count())
              return [here, await ctx.step('Tally.tally', null), Counter.built]
            }
          }`,
        'app/steps/tally.ts': `
          import { Step } from '${PACKAGE}'
          import { Counter } from '../services/counter.ts'
          export class Tally {
            ${INJECTS_COUNTER}
            constructor(private counter: Counter) {}
            @Step()
            tally() { return this.counter.count() }
          }`,
      },
      prepare: async (created) => {
        const file = created.makeURL('app/services/counter.ts').href
        const { Counter } = await import(file)
        created.container.singleton(Counter, () => new Counter())
      },
    })
    const engine = await app.container.make(WorkflowEngine)
    assert.deepEqual(await outputOf(engine, 'counting'), [1, 2, 1])
  })

  test('finds nested directories and JavaScript applications', async ({ assert }) => {
    const app = await bootApp({
      files: {
        'app/workflows/billing/deep/charge.js': workflow('charge'),
        'app/workflows/billing/deep/charge.d.ts': 'export default class {}',
      },
    })
    assert.equal(await outputOf(await app.container.make(WorkflowEngine), 'charge'), 'charge')
  })

  test('a workflow module may import the engine of the application', async ({ assert }) => {
    const service = new URL('../../services/main.ts', import.meta.url).href
    const app = await bootApp({
      files: {
        'app/workflows/parent.ts':
          `import engine from '${service}'\n` +
          workflow(
            'parent',
            `return ctx.localStep('peek', async () => (await engine.getRun(ctx.runId)).workflow)`
          ),
      },
    })
    assert.equal(await outputOf(await app.container.make(WorkflowEngine), 'parent'), 'parent')
  })

  test('one directory that is named twice is scanned once', async ({ assert }) => {
    const app = await bootApp({
      durable: defineConfig({ workflowsPath: ['app/workflows', './app/workflows/'] }),
      files: { 'app/workflows/only.ts': workflow('only') },
    })
    assert.equal(await outputOf(await app.container.make(WorkflowEngine), 'only'), 'only')
  })

  test('two directories that claim one name fail the boot with both files', async ({ assert }) => {
    const files = { 'a/one.ts': workflow('same'), 'b/two.ts': workflow('same') }
    await assert.rejects(
      () => bootApp({ durable: defineConfig({ workflowsPath: ['a', 'b'] }), files }),
      /the workflow "same@1" is defined more than once: .*a\/one\.ts and .*b\/two\.ts/
    )
  })

  test('a module that cannot be imported fails the boot with its file', async ({ assert }) => {
    const files = { 'app/workflows/broken.ts': `throw new Error('half written')` }
    await assert.rejects(
      () => bootApp({ files }),
      /cannot import .*app\/workflows\/broken\.ts: half written/
    )
  })

  test('a class that forgot its name is reported to the log', async ({ assert }) => {
    const warnings: string[] = []
    await bootApp({
      files: {
        'app/workflows/nameless.ts': `
          import { BaseWorkflow } from '${PACKAGE}'
          export default class Nameless extends BaseWorkflow { async run() {} }`,
      },
      prepare: (created) =>
        created.booting(() => {
          created.container.resolving('logger', (logger) => {
            logger.warn = ((message: string) => void warnings.push(message)) as never
          })
        }),
    })
    assert.lengthOf(warnings, 1)
    assert.match(
      warnings[0],
      /^durable: Nameless in .*nameless\.ts extends BaseWorkflow but has no/
    )
  })

  test('a transport that cannot serve steps leaves them to other processes', async ({ assert }) => {
    const transport: Transport = {
      dispatch: async () => {},
      onResult: () => {},
      onHeartbeat: () => {},
    }
    const app = await bootApp({
      durable: defineConfig({ transport: 'far', transports: { far: transport } }),
      files: {
        'app/workflows/here.ts': workflow('here'),
        'app/steps/there.ts': `
          import { defineStep } from '${PACKAGE}'
          export const there = defineStep('there', () => 1)`,
      },
    })
    assert.equal(await outputOf(await app.container.make(WorkflowEngine), 'here'), 'here')
  })
})
