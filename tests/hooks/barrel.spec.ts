/*
 * The barrels that the assembler's own codegen writes with our hooks, in real directories.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CodeGen } from '@adonisjs/assembler'
import { IndexGenerator } from '@adonisjs/assembler/index_generator'
import type { AllHooks } from '@adonisjs/assembler/types'
import { getActiveTestOrFail, test } from '@japa/runner'
import { InvalidArgumentError, registerWorkflowsFromBarrel } from '../../index.ts'
import stepsDefault, { stepsHook } from '../../src/hooks/steps.ts'
import workflowsDefault, { workflowsHook } from '../../src/hooks/workflows.ts'
import { Registrations, workflowModule } from '../authoring/tree.ts'

type InitHooks = AllHooks['init']

const APPS = join(import.meta.dirname, '../../tmp')
const WORKFLOWS = '.adonisjs/durable/workflows.ts'
const STEPS = '.adonisjs/durable/steps.ts'
const SILENT = { info() {} } as unknown as CodeGen['ui']['logger']
const LAZY: InitHooks = [
  () => import('../../src/hooks/workflows.ts'),
  () => import('../../src/hooks/steps.ts'),
]

const manifest = (imports: object) => JSON.stringify({ name: 'app', type: 'module', imports })
const ALIASES = manifest({
  '#workflows/*': './app/workflows/*.js',
  '#steps/*': './app/steps/*.js',
})

async function application(files: Record<string, string>) {
  await mkdir(APPS, { recursive: true })
  const root = await mkdtemp(join(APPS, 'hooks-'))
  getActiveTestOrFail().cleanup(() => rm(root, { recursive: true, force: true }))
  const write = async (path: string, contents: string) => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), contents)
  }
  for (const [path, contents] of Object.entries(files)) await write(path, contents)
  return {
    root,
    write,
    read: (path: string) => readFile(join(root, path), 'utf8'),
    /** Writes what `node ace codegen`, the dev server, the tests and the build write. */
    async generate(init: InitHooks) {
      const codegen = new CodeGen(pathToFileURL(`${root}/`), { hooks: { init } })
      codegen.ui.logger = SILENT
      await codegen.run()
    },
  }
}

/** The lines of a barrel between its braces, comments left out. */
function entriesOf(barrel: string): string[] {
  const [, inside] = /= \{\n([^]*)\}/.exec(barrel)!
  return inside
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

test.group('Hooks | one directory', () => {
  test('import every module lazily, by its alias, under its path', async ({ assert }) => {
    const app = await application({
      'package.json': ALIASES,
      'app/workflows/order_workflow.ts': '',
      'app/workflows/billing/charge.ts': '',
      'app/steps/pay.ts': '',
    })
    await app.generate(LAZY)
    const workflows = await app.read(WORKFLOWS)
    assert.include(workflows, 'DO NOT EDIT')
    assert.match(workflows, /export const workflows = \{/)
    assert.sameMembers(entriesOf(workflows), [
      `'app/workflows/billing/charge.ts': () => import('#workflows/billing/charge'),`,
      `'app/workflows/order_workflow.ts': () => import('#workflows/order_workflow'),`,
    ])
    const steps = await app.read(STEPS)
    assert.match(steps, /export const steps = \{/)
    assert.deepEqual(entriesOf(steps), [`'app/steps/pay.ts': () => import('#steps/pay'),`])
  })

  test('may stand in the rc file as they are', async ({ assert }) => {
    const files = { 'package.json': ALIASES, 'app/workflows/a.ts': '', 'app/steps/b.ts': '' }
    const lazy = await application(files)
    await lazy.generate(LAZY)
    for (const init of [
      [workflowsDefault, stepsDefault],
      [workflowsHook(), stepsHook({})],
    ]) {
      const app = await application(files)
      await app.generate(init)
      for (const barrel of [WORKFLOWS, STEPS]) {
        assert.equal(await app.read(barrel), await lazy.read(barrel))
      }
    }
  })

  test('write an empty barrel where there is nothing', async ({ assert }) => {
    const app = await application({ 'package.json': ALIASES })
    await app.generate(LAZY)
    assert.isEmpty(entriesOf(await app.read(WORKFLOWS)))
    const file = join(app.root, STEPS)
    const { steps: empty } = await import(pathToFileURL(file).href)
    assert.deepEqual(empty, {})
  })

  test('count the modules that discovery counts', async ({ assert }) => {
    const app = await application({
      'package.json': ALIASES,
      'app/workflows/order.ts': '',
      'app/workflows/order_workflow.ts': '',
      'app/workflows/order.js': '',
      'app/workflows/stray.js': '',
      'app/workflows/order.spec.ts': '',
      'app/workflows/order_workflow.test.ts': '',
      'app/workflows/types.d.ts': '',
      'app/workflows/README.md': '',
      'app/workflows/js/plain.js': '',
      "app/workflows/o'brien/2fa.ts": '',
      'app/workflows/modern.mts': '',
    })
    await app.generate([workflowsDefault])
    assert.sameMembers(entriesOf(await app.read(WORKFLOWS)), [
      `'app/workflows/js/plain.js': () => import('#workflows/js/plain'),`,
      // The alias ends in .js, which stands for .ts but not for .mts.
      `'app/workflows/modern.mts': () => import('../../app/workflows/modern.mts'),`,
      `'app/workflows/order.ts': () => import('#workflows/order'),`,
      `'app/workflows/order_workflow.ts': () => import('#workflows/order_workflow'),`,
      `'app/workflows/o\\'brien/2fa.ts': () => import('#workflows/o\\'brien/2fa'),`,
    ])
  })

  test('take another directory, alias and output', async ({ assert }) => {
    const app = await application({ 'package.json': ALIASES, 'src/flows/a.ts': '' })
    const output = 'generated/flows.ts'
    await app.generate([workflowsHook({ source: './src/flows/', importAlias: '#flows', output })])
    assert.deepEqual(entriesOf(await app.read(output)), [
      `'src/flows/a.ts': () => import('#flows/a'),`,
    ])
  })

  test('import by relative path where package.json maps no alias to the directory', async ({
    assert,
  }) => {
    const cases: [imports: object, path: string][] = [
      [{}, '../../app/workflows/a.ts'],
      [{ '#workflows/*': './app/other/*.js' }, '../../app/workflows/a.ts'],
      [{ '#workflows/*': { default: './app/workflows/*.js' } }, '../../app/workflows/a.ts'],
      [{ '#workflows/*': './app/*.js' }, '#workflows/workflows/a'],
    ]
    for (const [imports, path] of cases) {
      const app = await application({ 'package.json': manifest(imports), 'app/workflows/a.ts': '' })
      await app.generate([workflowsDefault])
      assert.deepEqual(entriesOf(await app.read(WORKFLOWS)), [
        `'app/workflows/a.ts': () => import('${path}'),`,
      ])
    }
    // Nothing is known of the aliases.
    const app = await application({ 'package.json': '{ broken', 'app/workflows/a.ts': '' })
    await app.generate([workflowsDefault])
    assert.deepEqual(entriesOf(await app.read(WORKFLOWS)), [
      `'app/workflows/a.ts': () => import('#workflows/a'),`,
    ])
  })

  test('follow files that come and go while a server watches', async ({ assert }) => {
    const app = await application({
      'package.json': ALIASES,
      'app/workflows/a.ts': '',
      'app/b.ts': '',
    })
    const generator = new IndexGenerator(app.root, SILENT)
    await workflowsHook({ source: ['app/workflows', 'app/more'] }).run(
      undefined as never,
      undefined as never,
      generator
    )
    await generator.generate()
    await app.write('app/more/c.ts', '')
    await generator.addFile(join(app.root, 'app/more/c.ts'))
    await generator.addFile(join(app.root, 'app/b.ts'))
    await generator.removeFile(join(app.root, 'app/workflows/a.ts'))
    assert.deepEqual(entriesOf(await app.read(WORKFLOWS)), [
      `'app/more/c.ts': () => import('../../app/more/c.ts'),`,
    ])
  })
})

test.group('Hooks | several directories', () => {
  test('make one barrel, by the alias where it covers a directory', async ({ assert }) => {
    const app = await application({
      'package.json': ALIASES,
      'app/workflows/order.ts': '',
      'modules/billing/flows/charge.ts': '',
      'modules/billing/other.ts': '',
      'app/workflows_of_old/never.ts': '',
    })
    const source = ['app/workflows', 'modules/billing/flows/', 'app/workflows', 'app/missing']
    await app.generate([workflowsHook({ source })])
    assert.sameMembers(entriesOf(await app.read(WORKFLOWS)), [
      `'app/workflows/order.ts': () => import('#workflows/order'),`,
      `'modules/billing/flows/charge.ts': () => import('../../modules/billing/flows/charge.ts'),`,
    ])
  })

  test('may lie beside the application', async ({ assert }) => {
    const app = await application({
      'shop/package.json': ALIASES,
      'shop/app/workflows/order.ts': '',
      'billing/flows/charge.ts': '',
    })
    const codegen = new CodeGen(pathToFileURL(join(app.root, 'shop/')), {
      hooks: { init: [workflowsHook({ source: ['app/workflows', '../billing/flows'] })] },
    })
    codegen.ui.logger = SILENT
    await codegen.run()
    assert.sameMembers(entriesOf(await app.read(`shop/${WORKFLOWS}`)), [
      `'app/workflows/order.ts': () => import('#workflows/order'),`,
      `'../billing/flows/charge.ts': () => import('../../../billing/flows/charge.ts'),`,
    ])
  })

  test('what they write registers, and names both files of a duplicate', async ({ assert }) => {
    const app = await application({
      'package.json': ALIASES,
      'app/workflows/order.ts': workflowModule(`{ name: 'order' }`),
      'modules/billing/charge.ts': workflowModule(`{ name: 'charge' }`),
    })
    const hook = workflowsHook({ source: ['app/workflows', 'modules/billing'] })
    await app.generate([hook])
    let loads = 0
    const load = async () => {
      const { href } = pathToFileURL(join(app.root, WORKFLOWS))
      const { workflows } = await import(`${href}?${loads++}`)
      return workflows
    }
    const engine = new Registrations()
    const metas = await registerWorkflowsFromBarrel(engine, await load(), undefined, {
      appRoot: app.root,
    })
    assert.sameMembers(engine.names, ['order@1', 'charge@1'])
    assert.deepEqual(
      metas.map(({ origin }) => origin),
      ['app', 'app']
    )
    await app.write('modules/billing/order.ts', workflowModule(`{ name: 'order' }`))
    await app.generate([hook])
    const barrel = await load()
    await assert.rejects(
      () => registerWorkflowsFromBarrel(new Registrations(), barrel),
      /"order@1" is defined more than once: app\/workflows\/order\.ts and modules\/billing\/order\.ts/
    )
  })
})

test.group('Hooks | options', () => {
  for (const [title, options] of [
    ['no directory', { source: [] }],
    ['an empty directory', { source: ['app/steps', ''] }],
    ['the whole application', { source: './' }],
    ['an empty alias', { importAlias: '' }],
    ['an empty output', { output: '' }],
    ['a directory that is no text', { source: 7 as never }],
  ] as const) {
    test(`refuse ${title}`, ({ assert }) => {
      const given = options as Parameters<typeof stepsHook>[0]
      assert.throws(() => stepsHook(given), InvalidArgumentError)
      assert.throws(() => stepsHook(given), /stepsHook/)
    })
  }

  test('fit the type of the rc file', ({ expectTypeOf }) => {
    expectTypeOf(workflowsHook()).toExtend<InitHooks[number]>()
    expectTypeOf([workflowsDefault, stepsDefault]).toExtend<InitHooks>()
    expectTypeOf(workflowsHook)
      .parameter(0)
      .toEqualTypeOf<
        { source?: string | string[]; importAlias?: string; output?: string } | undefined
      >()
  })
})
