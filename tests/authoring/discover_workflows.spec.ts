/*
 * Registering workflow classes from directories of real modules, and one by one.
 */
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { z } from 'zod'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import {
  registerWorkflowClass,
  registerWorkflowsFromDir,
  workflowsAmong,
} from '../../src/authoring/discover_workflows.ts'
import { DuplicateDiscoveryError, InvalidArgumentError } from '../../src/errors.ts'
import type { WorkflowClass } from '../../src/types/workflow.ts'
import { baseImport, failureOf, Registrations, tree, workflowModule } from './tree.ts'

const MANIFEST = '{ "type": "module" }'

test.group('Discovery | workflows of a directory', () => {
  test('registers the classes of every module below, in the order of their paths', async ({
    assert,
  }) => {
    const root = await tree({
      'order_workflow.ts': workflowModule(`{ name: 'order', version: '2' }`),
      'billing/deep/charge_workflow.ts': workflowModule(`{ name: 'charge' }`),
      'zeta_workflow.ts': workflowModule(
        `{ name: 'zeta' }`,
        `export class Named extends BaseWorkflow { static workflow = { name: 'named' }\n run() {} }\n` +
          `export const helper = () => 1\nexport const data = { workflow: { name: 'data' } }\n`
      ),
    })
    const engine = new Registrations()
    const metas = await registerWorkflowsFromDir(engine, root)
    assert.deepEqual(engine.names, ['charge@1', 'order@2', 'named@1', 'zeta@1'])
    assert.deepEqual(
      metas.map(({ name, version, file }) => [name, version, file]),
      [
        ['charge', '1', join(root, 'billing/deep/charge_workflow.ts')],
        ['order', '2', join(root, 'order_workflow.ts')],
        ['named', '1', join(root, 'zeta_workflow.ts')],
        ['zeta', '1', join(root, 'zeta_workflow.ts')],
      ]
    )
    assert.deepEqual(await engine.calls[1].fn(undefined as never, 7), { name: 'order', input: 7 })
  })

  test('prefers TypeScript in each directory and leaves out declarations and specs', async ({
    assert,
  }) => {
    const broken = 'throw new Error("never imported")'
    const root = await tree({
      'order_workflow.ts': workflowModule(`{ name: 'source' }`),
      'order_workflow.js': broken,
      'other_workflow.js': broken,
      'order_workflow.spec.ts': broken,
      'order_workflow.test.ts': broken,
      'order_workflow.d.ts': broken,
      'compiled/order_workflow.js': workflowModule(`{ name: 'compiled' }`),
      'compiled/order_workflow.js.map': '{}',
      'compiled/order_workflow.d.ts': broken,
      'compiled/order_workflow.spec.js': broken,
      'compiled/more_workflow.mjs': workflowModule(`{ name: 'more' }`),
      'modern/a_workflow.mts': workflowModule(`{ name: 'modern' }`),
      'modern/a_workflow.mjs': broken,
      'modern/a_workflow.d.mts': broken,
      'notes/readme.md': broken,
    })
    const engine = new Registrations()
    await registerWorkflowsFromDir(engine, root)
    assert.deepEqual(engine.names, ['more@1', 'compiled@1', 'modern@1', 'source@1'])
  })

  test('follows links once and survives broken ones', async ({ assert }) => {
    const root = await tree({ 'a/order_workflow.ts': workflowModule(`{ name: 'order' }`) })
    await symlink(root, join(root, 'a/loop'))
    await symlink(join(root, 'gone'), join(root, 'broken_workflow.ts'))
    await symlink(join(root, 'a'), join(root, 'b'))
    const engine = new Registrations()
    await registerWorkflowsFromDir(engine, root)
    assert.deepEqual(engine.names, ['order@1'])
  })

  test('a class that is exported twice registers once', async ({ assert }) => {
    const root = await tree({
      'order_workflow.ts': workflowModule(`{ name: 'order' }`, 'export { SomeWorkflow }\n'),
      'index.ts': `export { default as Order } from './order_workflow.ts'\n`,
    })
    const engine = new Registrations()
    assert.lengthOf(await registerWorkflowsFromDir(engine, root), 1)
    assert.deepEqual(engine.names, ['order@1'])
  })

  test('a missing directory holds nothing, another failure is passed on', async ({ assert }) => {
    const root = await tree({ file: '' })
    const engine = new Registrations()
    assert.deepEqual(await registerWorkflowsFromDir(engine, join(root, 'missing')), [])
    assert.deepEqual(await registerWorkflowsFromDir(engine, []), [])
    const failure = await failureOf(registerWorkflowsFromDir(engine, join(root, 'file')))
    assert.equal(failure.code, 'ENOTDIR')
  })

  test('names the file of a module that throws and keeps the cause', async ({ assert }) => {
    const root = await tree({
      'a_workflow.ts': workflowModule(`{ name: 'a' }`),
      'b_workflow.ts': `throw new TypeError('no database')`,
    })
    const engine = new Registrations()
    const failure = await failureOf(registerWorkflowsFromDir(engine, root))
    assert.equal(failure.code, 'discovery_import')
    assert.include(failure.message, join(root, 'b_workflow.ts'))
    assert.include(failure.message, 'no database')
    assert.instanceOf(failure.cause, TypeError)
    assert.deepEqual(engine.calls, [])
  })
})

test.group('Discovery | several directories', () => {
  test('all are registered; overlapping and repeated ones count once', async ({ assert }) => {
    const root = await tree({
      'orders/flows/order_workflow.ts': workflowModule(`{ name: 'order' }`),
      'billing/flows/charge_workflow.ts': workflowModule(`{ name: 'charge' }`),
    })
    const engine = new Registrations()
    await registerWorkflowsFromDir(engine, [
      join(root, 'orders/flows'),
      join(root, 'billing/flows'),
      join(root, 'orders/flows/'),
      root,
    ])
    assert.deepEqual(engine.names, ['order@1', 'charge@1'])
  })

  test('one name and version in two classes is refused with both files', async ({ assert }) => {
    const root = await tree({
      'orders/a_workflow.ts': workflowModule(`{ name: 'other' }`),
      'orders/charge_workflow.ts': workflowModule(`{ name: 'charge', version: '1' }`),
      'billing/charge_workflow.ts': workflowModule(`{ name: 'charge' }`),
    })
    const engine = new Registrations()
    const failure = await failureOf(
      registerWorkflowsFromDir(engine, [join(root, 'orders'), join(root, 'billing')])
    )
    assert.instanceOf(failure, DuplicateDiscoveryError)
    const files = [
      join(root, 'orders/charge_workflow.ts'),
      join(root, 'billing/charge_workflow.ts'),
    ]
    assert.containSubset(failure, { kind: 'workflow', id: 'charge@1', files })
    for (const file of files) assert.include(failure.message, file)
    assert.deepEqual(engine.calls, [])
  })

  test('so it is inside one directory; two versions of one name are none', async ({ assert }) => {
    const root = await tree({
      'one/a_workflow.ts': workflowModule(`{ name: 'a' }`),
      'one/b_workflow.ts': workflowModule(`{ name: 'a' }`),
      'two/a_workflow.ts': workflowModule(`{ name: 'a' }`),
      'two/b_workflow.ts': workflowModule(`{ name: 'a', version: '2' }`),
    })
    const engine = new Registrations()
    const failure = await failureOf(registerWorkflowsFromDir(engine, join(root, 'one')))
    assert.instanceOf(failure, DuplicateDiscoveryError)
    await registerWorkflowsFromDir(engine, join(root, 'two'))
    assert.deepEqual(engine.names, ['a@1', 'a@2'])
  })
})

test.group('Discovery | instances', () => {
  test('the factory may be asynchronous and builds each class once', async ({ assert }) => {
    const root = await tree({
      'mail_workflow.ts':
        `${baseImport}export default class Mail extends BaseWorkflow {\n` +
        `  static workflow = { name: 'mail' }\n` +
        `  constructor(private readonly mailer: { send(to: string): string }) { super() }\n` +
        `  async run(ctx: unknown, input: string) { return this.mailer.send(input) }\n}\n` +
        `export { Mail }\n`,
    })
    const engine = new Registrations()
    const built: string[] = []
    await registerWorkflowsFromDir(engine, root, async (target) => {
      built.push(target.name)
      return new target({ send: (to: string) => `sent to ${to}` })
    })
    assert.deepEqual(built, ['Mail'])
    assert.equal(await engine.calls[0].fn(undefined as never, 'me'), 'sent to me')
  })

  test('nothing is registered when one cannot be built or used', async ({ assert }) => {
    const good = workflowModule(`{ name: 'a' }`)
    const engine = new Registrations()
    const unbuildable = await tree({ 'a.ts': good, 'b.ts': workflowModule(`{ name: 'b' }`) })
    const refused = await failureOf(
      registerWorkflowsFromDir(engine, unbuildable, () => Promise.reject(new Error('no binding')))
    )
    assert.equal(refused.message, 'no binding')

    const bodiless = await tree({
      'a.ts': good,
      'b.ts': `export class Bodiless { static workflow = { name: 'bodiless' } }`,
    })
    const failure = await failureOf(registerWorkflowsFromDir(engine, bodiless))
    assert.instanceOf(failure, InvalidArgumentError)
    assert.include(failure.message, 'workflow "bodiless" has no run(ctx, input) method')

    const misdeclared = await tree({
      'a.ts': good,
      'b.ts': workflowModule(`{ name: 'b', inputSchema: { type: 'object' } }`),
    })
    assert.instanceOf(
      await failureOf(registerWorkflowsFromDir(engine, misdeclared)),
      InvalidArgumentError
    )
    assert.deepEqual(engine.calls, [])
  })

  test('a synchronous run answers and throws as a promise', async ({ assert }) => {
    const root = await tree({
      'sync.ts':
        `${baseImport}export class Sync extends BaseWorkflow { static workflow = { name: 'sync' }\n` +
        `run(ctx, input) { if (input === 'bad') throw new Error('refused')\n return input } }`,
    })
    const engine = new Registrations()
    await registerWorkflowsFromDir(engine, root)
    assert.equal(await engine.calls[0].fn(undefined as never, 'good'), 'good')
    await assert.rejects(() => engine.calls[0].fn(undefined as never, 'bad'), 'refused')
  })
})

test.group('Discovery | warnings', () => {
  test('reports a workflow class without a name, but no base of another', async ({ assert }) => {
    const root = await tree({
      'base.ts': `${baseImport}export abstract class Shared extends BaseWorkflow {}\nexport { BaseWorkflow }`,
      'order.ts':
        `import { Shared } from './base.ts'\n` +
        `export class Order extends Shared { static workflow = { name: 'order' }\n run() {} }`,
      'lost.ts': `${baseImport}export default class Lost extends BaseWorkflow { run() {} }`,
      'unnamed.ts': workflowModule(`{ version: '2' }`),
    })
    const engine = new Registrations()
    const warnings: string[] = []
    await registerWorkflowsFromDir(engine, root, undefined, {
      warn: (message) => warnings.push(message),
    })
    assert.deepEqual(engine.names, ['order@1'])
    assert.lengthOf(warnings, 2)
    assert.include(warnings[0], `Lost in ${join(root, 'lost.ts')}`)
    assert.include(warnings[1], join(root, 'unnamed.ts'))
  })

  test('knows a class made with another copy of the package', async ({ assert }) => {
    const copy = '../../src/authoring/base_workflow.ts?copy=discovery'
    const { BaseWorkflow: Other } = (await import(copy)) as { BaseWorkflow: typeof BaseWorkflow }
    assert.notStrictEqual(Other, BaseWorkflow)
    class Lost extends Other {
      run() {}
    }
    const warnings: string[] = []
    workflowsAmong([{ value: Other }, { value: Lost, file: 'lost.ts' }], {
      warn: (message) => warnings.push(message),
    })
    assert.lengthOf(warnings, 1)
    assert.include(warnings[0], 'Lost in lost.ts')
  })

  test('ignores exports that only look like classes', async ({ assert }) => {
    const hostile = new Proxy(class Hostile {}, {
      get(target, key) {
        if (key === 'workflow') throw new Error('not yet')
        return Reflect.get(target, key)
      },
    })
    const arrow = Object.assign(() => 1, { workflow: { name: 'arrow' } })
    assert.deepEqual(
      workflowsAmong([hostile, arrow, z.string(), null, 1, 'x'].map((value) => ({ value }))),
      []
    )
  })
})

test.group('Discovery | origin', () => {
  test('is the declared one, or the name of the nearest manifest', async ({ assert }) => {
    const root = await tree({
      'package.json': '{ "name": "shop", "type": "module" }',
      'app/order.ts': workflowModule(`{ name: 'order' }`),
      'app/told.ts': workflowModule(`{ name: 'told', origin: '@acme/told' }`),
      'vendor/billing/package.json': '{ "name": "@acme/billing", "type": "module" }',
      'vendor/billing/flows/charge.ts': workflowModule(`{ name: 'charge' }`),
      'vendor/unnamed/package.json': MANIFEST,
      'vendor/unnamed/flow.ts': workflowModule(`{ name: 'unnamed' }`),
    })
    const engine = new Registrations()
    const metas = await registerWorkflowsFromDir(engine, [join(root, 'app'), join(root, 'vendor')])
    const origins = metas.map(({ name, origin }) => [name, origin])
    assert.deepEqual(origins, [
      ['order', 'shop'],
      ['told', '@acme/told'],
      ['charge', '@acme/billing'],
      ['unnamed', 'shop'],
    ])
    assert.deepEqual(
      engine.calls.map(({ name, options }) => [name, options.origin]),
      origins
    )
  })
})

test.group('Discovery | one class', () => {
  class Notify extends BaseWorkflow {
    static override workflow = { name: 'notify' }

    run(_ctx: unknown, input: unknown) {
      return input
    }
  }

  test('registers every declared option and no absent one', async ({ assert }) => {
    const schema = z.object({ id: z.string() })
    class Full {
      static workflow = {
        name: 'full',
        version: '3',
        tags: ['a'],
        executionTimeout: '5m',
        onEvent: ['paid'],
        singleton: { key: () => 'k', limit: 2 },
        concurrency: { key: () => undefined, limit: 4 },
        origin: '@acme/full',
        onError: [
          { code: 'declined', workflow: Notify },
          {
            code: class Refused {
              static readonly code = 'refused'
            },
            workflow: 'by-name',
          },
          { workflow: 'catch-all' },
        ],
        deadLetterWorkflow: Notify,
        inputSchema: schema,
        searchAttributes: z.object({ region: z.string() }),
      }

      async run() {}
    }
    const engine = new Registrations()
    const meta = await registerWorkflowClass(engine, Full)
    assert.equal(meta.version, '3')
    const { options, name, version } = engine.calls[0]
    assert.deepEqual([name, version], ['full', '3'])
    assert.deepEqual(options, {
      tags: ['a'],
      executionTimeout: '5m',
      onEvent: ['paid'],
      singleton: Full.workflow.singleton,
      concurrency: Full.workflow.concurrency,
      origin: '@acme/full',
      onError: [
        { code: 'declined', workflow: 'notify' },
        { code: 'refused', workflow: 'by-name' },
        { workflow: 'catch-all' },
      ],
      deadLetterWorkflow: 'notify',
      inputSchema: schema,
      searchAttributesSchema: Full.workflow.searchAttributes,
    })

    await registerWorkflowClass(engine, Notify)
    assert.deepEqual(engine.calls[1].options, {})
  })

  test('builds through the factory', async ({ assert }) => {
    const engine = new Registrations()
    await registerWorkflowClass(engine, Notify, async () => ({ run: () => 'made' }))
    assert.equal(await engine.calls[0].fn(undefined as never, 1), 'made')
  })

  test('refuses a class without static workflow', async ({ assert }) => {
    class Nameless extends BaseWorkflow {
      run() {}
    }
    const engine = new Registrations()
    for (const target of [Nameless, undefined as unknown as WorkflowClass]) {
      const failure = await failureOf(registerWorkflowClass(engine, target))
      assert.instanceOf(failure, InvalidArgumentError)
      assert.include(failure.message, 'has no `static workflow = { name }`')
    }
    assert.deepEqual(engine.calls, [])
  })
})
