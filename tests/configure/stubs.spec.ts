import { test } from '@japa/runner'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import ts from 'typescript'
import { createApp } from '../adonis/app.ts'

const ROOT = join(import.meta.dirname, '../..')
// The last thing that a build writes.
const BUILT = existsSync(join(ROOT, 'build/commands/commands.json'))
if (!BUILT) console.log('skipped: stubs of the build, there is no build (npm run build makes one)')
const TREES = BUILT ? ['stubs', 'build/stubs'] : ['stubs']

const WORKFLOW = {
  name: 'order',
  className: 'OrderWorkflow',
  inputName: 'OrderInput',
  directory: 'app/workflows',
  path: 'billing',
  fileName: 'order_workflow.ts',
}

/** Every stub, with the states in which it is rendered and where the result goes. */
const STUBS: Record<string, { state: object; to: string }[]> = {
  'config/durable.stub': [
    { state: { usesLucid: true }, to: 'config/durable.ts' },
    { state: { usesLucid: false }, to: 'config/durable.ts' },
  ],
  'database/migrations/create_durable_tables.stub': [
    {
      state: { migration: { fileName: '1_create_durable_tables.ts' } },
      to: 'database/migrations/1_create_durable_tables.ts',
    },
  ],
  'database/migrations/create_durable_transport_tables.stub': [
    {
      state: { migration: { fileName: '2_create_durable_transport_tables.ts' } },
      to: 'database/migrations/2_create_durable_transport_tables.ts',
    },
  ],
  'database/migrations/create_durable_transport_messages.stub': [
    {
      state: { migration: { fileName: '3_create_durable_transport_messages.ts' } },
      to: 'database/migrations/3_create_durable_transport_messages.ts',
    },
  ],
  'make/workflow/main.stub': [
    { state: { workflow: WORKFLOW }, to: 'app/workflows/billing/order_workflow.ts' },
    {
      state: { workflow: { ...WORKFLOW, schedule: '0 6 * * 1' } },
      to: 'app/workflows/billing/order_workflow.ts',
    },
  ],
}

async function render(tree: string, stub: string, state: object) {
  const app = await createApp({ environment: 'console', provider: false })
  const stubs = await app.stubs.create()
  const prepared = await stubs.build(stub, { source: join(ROOT, tree) })
  const output = await prepared.generate(state)
  return {
    path: app.relativePath(output.destination),
    contents: await readFile(output.destination, 'utf8'),
  }
}

test.group('Stubs', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('all of them are rendered here', ({ assert }) => {
    assert.sameMembers(globSync('**/*.stub', { cwd: join(ROOT, 'stubs') }), Object.keys(STUBS))
  })

  for (const tree of TREES) {
    for (const [stub, renderings] of Object.entries(STUBS)) {
      test(`${tree}/${stub} becomes a whole file`, async ({ assert }) => {
        for (const { state, to } of renderings) {
          const { path, contents } = await render(tree, stub, state)
          assert.equal(path, to)
          assert.notMatch(contents, /\{\{|\}\}\}|undefined/)
          const { diagnostics } = ts.transpileModule(contents, { reportDiagnostics: true })
          assert.deepEqual(diagnostics, [])
        }
      })
    }
  }

  test('what they become compiles in an application', async ({ assert, fs }) => {
    const files: string[] = []
    for (const [stub, renderings] of Object.entries(STUBS)) {
      for (const [index, { state }] of renderings.entries()) {
        const { contents } = await render('stubs', stub, state)
        const file = `${stub.replaceAll(/\W/g, '_')}_${index}.ts`
        await fs.create(file, contents)
        files.push(join(fs.basePath, file))
      }
    }
    const program = ts.createProgram(files, {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      strict: true,
      noUnusedLocals: true,
      noUnusedParameters: true,
      experimentalDecorators: true,
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      noEmit: true,
      types: ['node'],
      paths: { '@adonis-agora/durable': [join(ROOT, 'index.ts')] },
    })
    const problems = files
      .map((file) => program.getSourceFile(file)!)
      .flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ])
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    assert.deepEqual(problems, [])
  })

  if (BUILT) {
    test('the build has the same ones, byte for byte', ({ assert }) => {
      const read = (tree: string) =>
        Object.fromEntries(
          globSync('**/*.stub', { cwd: join(ROOT, tree) }).map((stub) => [
            stub,
            readFileSync(join(ROOT, tree, stub), 'utf8'),
          ])
        )
      assert.deepEqual(read('build/stubs'), read('stubs'))
    })
  }
})
