/*
 * Boot from generated barrels: when one is used, and what happens when it does not fit the directories.
 */
import { rm, writeFile } from 'node:fs/promises'
import { CodeGen } from '@adonisjs/assembler'
import type { ApplicationService } from '@adonisjs/core/types'
import { test } from '@japa/runner'
import { type DurableConfig, WorkflowEngine } from '../../index.ts'
import { stepsHook } from '../../src/hooks/steps.ts'
import { workflowsHook } from '../../src/hooks/workflows.ts'
import { bootApp, PACKAGE } from './app.ts'

const workflow = (name: string, body = `return '${name}'`) => `
  import { BaseWorkflow } from '${PACKAGE}'
  export default class extends BaseWorkflow {
    static workflow = { name: '${name}' }
    async run(ctx, input) { ${body} }
  }`

const MANIFEST = {
  'package.json': JSON.stringify({
    name: 'the-shop',
    type: 'module',
    imports: { '#workflows/*': './app/workflows/*.js', '#steps/*': './app/steps/*.js' },
  }),
}

const BARREL = '.adonisjs/durable/workflows.ts'
const SILENT = { info() {} } as unknown as CodeGen['ui']['logger']

interface Rig {
  files: Record<string, string>
  durable?: DurableConfig
  /** Sources of the hooks; not generated when absent. */
  workflows?: string | string[]
  steps?: string | string[]
  /** After the barrels were written, before the boot. */
  change?: (app: ApplicationService) => Promise<unknown>
}

async function booted({ files, durable, workflows, steps, change }: Rig) {
  const warnings: string[] = []
  const app = await bootApp({
    durable,
    files: { ...MANIFEST, ...files },
    prepare: async (created) => {
      const init = [
        ...(workflows === undefined ? [] : [workflowsHook({ source: workflows })]),
        ...(steps === undefined ? [] : [stepsHook({ source: steps })]),
      ]
      const codegen = new CodeGen(created.appRoot, { hooks: { init } })
      codegen.ui.logger = SILENT
      await codegen.run()
      await change?.(created)
      created.booting(() => {
        created.container.resolving('logger', (logger) => {
          logger.warn = ((message: string) => void warnings.push(message)) as never
        })
      })
    },
  })
  return { warnings, engine: await app.container.make(WorkflowEngine) }
}

async function outputOf(engine: WorkflowEngine, name: string) {
  await engine.start(name, null, `run-${name}`)
  const { output } = await engine.waitForRun(`run-${name}`, { terminal: true, timeoutMs: 5000 })
  return output
}

const knows = (engine: WorkflowEngine, name: string): Promise<boolean> =>
  engine.start(name, null, `probe-${name}`).then(
    () => true,
    () => false
  )

test.group('Boot from barrels', () => {
  test('the workflows and steps of an application are registered and run', async ({ assert }) => {
    const { engine, warnings } = await booted({
      workflows: 'app/workflows',
      steps: 'app/steps',
      files: {
        'app/workflows/order_workflow.ts': `
          import { pay } from '#steps/pay'
          ${workflow('order', `return ctx.step(pay, 21)`)}`,
        'app/steps/pay.ts': `
          import { defineStep } from '${PACKAGE}'
          export const pay = defineStep('pay', (cents) => cents * 2)`,
      },
    })
    assert.equal(await outputOf(engine, 'order'), 42)
    assert.isEmpty(warnings)
    const run = await engine.getRun('run-order')
    assert.equal(run!.origin, 'the-shop')
  })

  test('the barrel is what is registered, not the directory', async ({ assert }) => {
    const { engine, warnings } = await booted({
      files: {
        'app/workflows/order.ts': workflow('from_the_directory'),
        'app/elsewhere.ts': workflow('from_the_barrel'),
        [BARREL]: `export const workflows = {
          'app/workflows/order.ts': () => import('../../app/elsewhere.ts'),
        }`,
      },
    })
    assert.isTrue(await knows(engine, 'from_the_barrel'))
    assert.isFalse(await knows(engine, 'from_the_directory'))
    assert.isEmpty(warnings)
  })

  test('a compiled barrel is found too; entries may be grouped and named otherwise', async ({
    assert,
  }) => {
    const { engine, warnings } = await booted({
      files: {
        'app/workflows/billing/order_workflow.ts': workflow('order'),
        '.adonisjs/durable/workflows.js': `export const workflows = {
          billing: { Order: () => import('../../app/workflows/billing/order_workflow.ts') },
        }`,
      },
    })
    assert.equal(await outputOf(engine, 'order'), 'order')
    assert.isEmpty(warnings)
  })

  test('several directories make one barrel', async ({ assert }) => {
    const source = ['modules/orders/flows', 'modules/billing/flows']
    const { engine, warnings } = await booted({
      workflows: source,
      durable: { workflowsPath: source },
      files: {
        'modules/orders/flows/order.ts': workflow('order'),
        'modules/billing/flows/charge.ts': workflow('charge'),
      },
    })
    assert.equal(await outputOf(engine, 'order'), 'order')
    assert.equal(await outputOf(engine, 'charge'), 'charge')
    assert.isEmpty(warnings)
  })

  test('two modules that claim one name fail the boot with both files', async ({ assert }) => {
    const source = ['a/flows', 'b/flows']
    const files = { 'a/flows/one.ts': workflow('same'), 'b/flows/two.ts': workflow('same') }
    await assert.rejects(
      () => booted({ workflows: source, durable: { workflowsPath: source }, files }),
      /the workflow "same@1" is defined more than once: a\/flows\/one\.ts and b\/flows\/two\.ts/
    )
    const step = `import { defineStep } from '${PACKAGE}'; export const x = defineStep('x', () => 1)`
    await assert.rejects(
      () =>
        booted({
          steps: ['a', 'b'],
          durable: { stepsPath: ['a', 'b'] },
          files: { 'a/one.ts': step, 'b/two.ts': step },
        }),
      /the step "x" is defined more than once: a\/one\.ts and b\/two\.ts/
    )
  })

  test('false turns discovery off, barrel or not', async ({ assert }) => {
    for (const workflowsPath of [false, []] as const) {
      const { engine } = await booted({
        workflows: 'app/workflows',
        durable: { workflowsPath: workflowsPath as false },
        files: { 'app/workflows/order.ts': workflow('order') },
      })
      assert.isFalse(await knows(engine, 'order'))
    }
  })
})

test.group('Boot from barrels | out of date', () => {
  test('a file that came later is registered all the same, and reported', async ({ assert }) => {
    const { engine, warnings } = await booted({
      workflows: 'app/workflows',
      files: { 'app/workflows/old.ts': workflow('old') },
      change: (app) =>
        writeFile(app.makePath('app/workflows/later_workflow.ts'), workflow('later')),
    })
    assert.isTrue(await knows(engine, 'old'))
    assert.isTrue(await knows(engine, 'later'))
    assert.lengthOf(warnings, 1)
    assert.match(
      warnings[0],
      /^durable: \.adonisjs\/durable\/workflows\.ts lacks app\/workflows\/later_workflow\.ts, so the directories are read instead\. /
    )
  })

  test('a file that went since does not fail the boot', async ({ assert }) => {
    const { engine, warnings } = await booted({
      workflows: 'app/workflows',
      files: {
        'app/workflows/stays.ts': workflow('stays'),
        'app/workflows/goes.ts': workflow('goes'),
      },
      change: (app) => rm(app.makePath('app/workflows/goes.ts')),
    })
    assert.isTrue(await knows(engine, 'stays'))
    assert.match(warnings[0], /names app\/workflows\/goes\.ts, which is not there, so the direct/)
  })

  test('a hook with other directories than the config is reported', async ({ assert }) => {
    const files = {
      'modules/a/one.ts': workflow('one'),
      'modules/b/two.ts': workflow('two'),
    }
    const more = await booted({
      workflows: ['modules/a', 'modules/b'],
      durable: { workflowsPath: 'modules/a' },
      files,
    })
    assert.isTrue(await knows(more.engine, 'two'))
    assert.match(
      more.warnings[0],
      /names modules\/b\/two\.ts from outside of config\.workflowsPath/
    )
    const less = await booted({
      workflows: 'modules/a',
      durable: { workflowsPath: ['modules/a', 'modules/b'] },
      files,
    })
    assert.isTrue(await knows(less.engine, 'two'))
    assert.match(less.warnings[0], /lacks modules\/b\/two\.ts/)
  })

  test('in production the barrel counts as it is', async ({ assert }) => {
    const before = process.env.NODE_ENV
    process.env.NODE_ENV = 'production'
    try {
      const { engine, warnings } = await booted({
        workflows: 'app/workflows',
        files: { 'app/workflows/old.ts': workflow('old') },
        change: (app) => writeFile(app.makePath('app/workflows/later.ts'), workflow('later')),
      })
      assert.isTrue(await knows(engine, 'old'))
      assert.isFalse(await knows(engine, 'later'))
      assert.isEmpty(warnings)
    } finally {
      if (before === undefined) delete process.env.NODE_ENV
      else process.env.NODE_ENV = before
    }
  })
})

test.group('Boot from barrels | broken', () => {
  test('a module of the barrel that throws fails the boot with its path', async ({ assert }) => {
    await assert.rejects(
      () =>
        booted({
          workflows: 'app/workflows',
          files: { 'app/workflows/broken.ts': `throw new Error('half written')` },
        }),
      'cannot import app/workflows/broken.ts: half written'
    )
  })

  test('a barrel that cannot be imported fails the boot, it is not passed over', async ({
    assert,
  }) => {
    const files = { 'app/workflows/order.ts': workflow('order') }
    await assert.rejects(
      () => booted({ files: { ...files, [BARREL]: `import './nowhere.ts'` } }),
      /cannot import .*\.adonisjs\/durable\/workflows\.ts: .*nowhere\.ts/
    )
    await assert.rejects(
      () => booted({ files: { ...files, [BARREL]: `export const flows = {}` } }),
      /workflows\.ts does not export "workflows", a map of lazy imports/
    )
  })
})
