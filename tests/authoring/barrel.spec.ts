/*
 * Registering workflows and steps from barrels, generated and written by hand.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from '@japa/runner'
import type { Barrel } from '../../src/authoring/barrel.ts'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import { registerStepsFromBarrel } from '../../src/authoring/discover_steps.ts'
import { registerWorkflowsFromBarrel } from '../../src/authoring/discover_workflows.ts'
import { defineStep, Step } from '../../src/authoring/step.ts'
import { DuplicateDiscoveryError, InvalidArgumentError } from '../../src/errors.ts'
import type { DurableStepMeta } from '../../src/types/step.ts'
import type { WorkflowMeta } from '../../src/types/workflow.ts'
import { failureOf, Registrations, ServedSteps, tree } from './tree.ts'

const workflow = (name: string, more: object = {}) =>
  class extends BaseWorkflow {
    static workflow = { name, ...more }
    async run() {
      return name
    }
  }

/** What a lazy import of a module with these exports is. */
const module = (exports: object) => () => Promise.resolve(exports)

test.group('Discovery | workflows of a barrel', () => {
  test('registers the classes of every module, default and named, once each', async ({
    assert,
  }) => {
    const order = workflow('order', { version: '2' })
    const engine = new Registrations()
    const metas = await registerWorkflowsFromBarrel(engine, {
      'app/workflows/order.ts': module({ default: order, helper: () => 1 }),
      'app/workflows/index.ts': module({ order, Charge: workflow('charge') }),
    })
    assert.deepEqual(engine.names, ['order@2', 'charge@1'])
    assert.deepEqual(
      metas.map((meta) => [meta.name, meta.version, 'file' in meta]),
      [
        ['order', '2', false],
        ['charge', '1', false],
      ]
    )
  })

  test('takes nested groups, as other barrels of AdonisJS have them', async ({ assert }) => {
    const engine = new Registrations()
    await registerWorkflowsFromBarrel(engine, {
      billing: { Charge: module({ default: workflow('charge') }), deep: {} },
      Order: module({ default: workflow('order') }),
    })
    assert.deepEqual(engine.names, ['charge@1', 'order@1'])
  })

  test('builds each class with the factory, before anything is registered', async ({ assert }) => {
    const engine = new Registrations()
    const built: string[] = []
    const barrel = {
      a: module({ default: workflow('a') }),
      b: module({ default: workflow('b') }),
    }
    await registerWorkflowsFromBarrel(engine, barrel, async (target) => {
      built.push((target as never as { workflow: { name: string } }).workflow.name)
      return new target()
    })
    assert.deepEqual(built, ['a', 'b'])
    const none = new Registrations()
    await assert.rejects(() =>
      registerWorkflowsFromBarrel(none, barrel, () => Promise.reject(new Error('no database')))
    )
    assert.isEmpty(none.names)
  })

  test('two modules that claim one name are refused, by their keys', async ({ assert }) => {
    const engine = new Registrations()
    const barrel = {
      'app/orders/flows/charge.ts': module({ default: workflow('charge') }),
      'app/billing/flows/charge.ts': module({ default: workflow('charge') }),
    }
    const error = await failureOf(registerWorkflowsFromBarrel(engine, barrel))
    assert.instanceOf(error, DuplicateDiscoveryError)
    assert.equal(error.kind, 'workflow')
    assert.equal(error.id, 'charge@1')
    assert.deepEqual(error.files, Object.keys(barrel))
    for (const key of Object.keys(barrel)) assert.include(error.message, key)
    assert.isEmpty(engine.names)
  })

  test('the origin is that of the application, unless the class declares one', async ({
    assert,
  }) => {
    const root = await tree({ 'package.json': '{ "name": "the-shop" }', 'app/.keep': '' })
    const barrel = {
      a: module({ default: workflow('a') }),
      b: module({ default: workflow('b', { origin: 'declared' }) }),
    }
    for (const appRoot of [root, join(root, 'app'), pathToFileURL(`${root}/`), `file://${root}`]) {
      const metas = await registerWorkflowsFromBarrel(new Registrations(), barrel, undefined, {
        appRoot,
      })
      assert.deepEqual(
        metas.map(({ origin }) => origin),
        ['the-shop', 'declared'],
        String(appRoot)
      )
    }
  })

  test('without an application it is the package that calls', async ({ assert }) => {
    const discovery = join(import.meta.dirname, '../../src/authoring/discover_workflows.ts')
    const root = await tree({
      'package.json': '{ "name": "a-plugin", "type": "module" }',
      'register.ts':
        `import { registerWorkflowsFromBarrel } from ${JSON.stringify(discovery)}\n` +
        `export const register = (engine, barrel) => registerWorkflowsFromBarrel(engine, barrel)\n`,
    })
    const { register } = await import(pathToFileURL(join(root, 'register.ts')).href)
    const engine = new Registrations()
    const [meta] = await register(engine, { a: module({ default: workflow('a') }) })
    assert.equal(meta.origin, 'a-plugin')
    assert.equal(engine.calls[0].options.origin, 'a-plugin')
  })

  test('a class that forgot its name is reported with its key', async ({ assert }) => {
    class Nameless extends BaseWorkflow {
      async run() {}
    }
    const warnings: string[] = []
    await registerWorkflowsFromBarrel(
      new Registrations(),
      { 'app/workflows/nameless.ts': module({ Nameless }) },
      undefined,
      { warn: (message) => void warnings.push(message) }
    )
    assert.lengthOf(warnings, 1)
    assert.match(warnings[0], /^Nameless in app\/workflows\/nameless\.ts extends BaseWorkflow/)
  })

  test('a module that cannot be imported is named, with its cause', async ({ assert }) => {
    const cause = new Error('half written')
    const error = await failureOf(
      registerWorkflowsFromBarrel(new Registrations(), {
        'app/workflows/broken.ts': () => Promise.reject(cause),
      })
    )
    assert.equal(error.message, 'cannot import app/workflows/broken.ts: half written')
    assert.equal(error.code, 'discovery_import')
    assert.equal(error.cause, cause)
  })

  test('an entry that is no lazy import is refused', async ({ assert }) => {
    const barrel = { billing: { charge: './charge.ts' } } as never
    const error = await failureOf(registerWorkflowsFromBarrel(new Registrations(), barrel))
    assert.instanceOf(error, InvalidArgumentError)
    assert.include(error.message, 'barrel entry "billing.charge"')
  })
})

test.group('Discovery | types of barrels', () => {
  test('a generated barrel, a nested one and the answers', ({ expectTypeOf }) => {
    const generated = { 'app/workflows/a.ts': () => import('./tree.ts') }
    expectTypeOf(generated).toExtend<Barrel>()
    expectTypeOf({ billing: { Charge: generated['app/workflows/a.ts'] } }).toExtend<Barrel>()
    expectTypeOf<{ a: string }>().not.toExtend<Barrel>()
    expectTypeOf(registerWorkflowsFromBarrel).returns.resolves.toEqualTypeOf<WorkflowMeta[]>()
    expectTypeOf(registerStepsFromBarrel).returns.resolves.toEqualTypeOf<DurableStepMeta[]>()
    type Options = NonNullable<Parameters<typeof registerWorkflowsFromBarrel>[3]>
    expectTypeOf<Options['appRoot']>().toEqualTypeOf<string | URL | undefined>()
  })
})

test.group('Discovery | steps of a barrel', () => {
  class Payments {
    @Step({ name: 'pay', retries: 3 })
    pay(input: number) {
      return input * 2
    }
  }

  test('serves handles and methods, and answers what it serves', async ({ assert }) => {
    const server = new ServedSteps()
    const metas = await registerStepsFromBarrel(server, {
      'app/steps/payments.ts': module({ default: Payments }),
      'app/steps/label.ts': module({ label: defineStep('label', () => 'printed') }),
    })
    assert.deepEqual(server.names, ['pay', 'label'])
    assert.equal(await server.call('pay', 21), 42)
    assert.equal(metas[0].config?.retries, 3)
    assert.isFalse(metas.some((meta) => 'file' in meta))
  })

  test('two handlers of one name are refused, by their keys', async ({ assert }) => {
    const server = new ServedSteps()
    const barrel = {
      'app/a/pay.ts': module({ default: Payments }),
      'app/b/pay.ts': module({ pay: defineStep('pay', () => 1) }),
    }
    const error = await failureOf(registerStepsFromBarrel(server, barrel))
    assert.instanceOf(error, DuplicateDiscoveryError)
    assert.equal(error.kind, 'step')
    assert.deepEqual(error.files, Object.keys(barrel))
    assert.isEmpty(server.names)
  })
})
