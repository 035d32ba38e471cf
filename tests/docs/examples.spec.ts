/*
 * The documentation against the repository: every example compiles, every link resolves, and what a page
 * lists is what the code has.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { test } from '@japa/runner'
import * as root from '../../index.ts'
import { type Link, namesUnder, type Page, pages, readPage, ROOT } from './markdown.ts'
import { Examples } from './type_check.ts'

const PAGES = pages()
const page = (file: string): Page => PAGES.find((one) => one.file === file)!

const COMPILES_WITHIN_MS = 180_000

/** A page as it must not be. */
const WRONG = readPage(
  'docs/wrong.md',
  `# Wrong

\`\`\`ts
import { WorkflowEngine } from '@adonis-agora/durable'
import { charge } from '#steps/nowhere'

new WorkflowEngine({ store: 7 })
\`\`\`

<!-- prelude: payment -->

\`\`\`ts
await ctx.step(charge, order)
await ctx.step(charge, { ...order, cents: 'many' })
\`\`\`
`
)

let compiled: Examples | undefined
/** Made by the first test that needs it. */
const examples = (): Examples => (compiled ??= new Examples([...PAGES, WRONG]))

test.group('documentation | examples', (group) => {
  group.tap((one) => one.timeout(COMPILES_WITHIN_MS))

  for (const one of PAGES) {
    if (!one.blocks.some(({ language }) => language === 'ts')) continue
    test(`every example of ${one.file} compiles`, ({ assert }) => {
      assert.deepEqual(examples().breachesOf(one), [])
    })
  }

  test('a wrong example is found, with its line', ({ assert }) => {
    const [module, store, input, ...others] = examples().breachesOf(WRONG)
    assert.match(module, /^docs\/wrong\.md:5 .*#steps\/nowhere/)
    assert.match(store, /^docs\/wrong\.md:7 .*StateStore/)
    assert.match(input, /^docs\/wrong\.md:14 [^]*string/)
    assert.deepEqual(others, [])
  })

  test('an example that is not checked says why', ({ assert }) => {
    const silent = PAGES.flatMap(({ file, blocks }) =>
      blocks
        .filter(({ flags, above }) => flags.includes('no-check') && !/not checked/i.test(above))
        .map(({ line }) => `${file}:${line}`)
    )
    assert.deepEqual(silent, [])
  })

  test('a fence names a language', ({ assert }) => {
    const known = ['ts', 'sh', 'text', 'json', 'sql', 'mermaid']
    const other = PAGES.flatMap(({ file, blocks }) =>
      blocks
        .filter(({ language }) => !known.includes(language))
        .map(({ line, language }) => `${file}:${line} ${language}`)
    )
    assert.deepEqual(other, [])
  })
})

test.group('documentation | links', () => {
  test('every relative link leads to a file, and its anchor to a heading', ({ assert }) => {
    const broken = PAGES.flatMap((from) =>
      from.links
        .filter((link) => isBroken(from, link))
        .map(({ line, target }) => `${from.file}:${line} ${target}`)
    )
    assert.deepEqual(broken, [])
  })

  test('every page is linked from another page', ({ assert }) => {
    const linked = new Set(
      PAGES.flatMap((from) =>
        from.links.map(({ target }) => resolved(from, target)).filter((file) => file !== from.file)
      )
    )
    const lost = PAGES.map(({ file }) => file).filter((file) => !linked.has(file))
    assert.deepEqual(lost, ['README.md'])
  })

  test('every page that a comment in the sources names is there', ({ assert }) => {
    const missing = sources().flatMap(({ file, text }) =>
      [...text.matchAll(/\bdocs\/[\w/.-]*[\w/]/g)]
        .map(([path]) => path)
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${file}: ${path}`)
    )
    assert.deepEqual(missing, [])
  })

  test('every source file that a page names is there', ({ assert }) => {
    const missing = PAGES.flatMap(({ file, prose }) =>
      [...prose.matchAll(/`((?:src|tests|examples)\/[\w/.-]+)`/g)]
        .map(([, path]) => path)
        // What a script writes is not in the repository.
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${file}: ${path}`)
    )
    assert.deepEqual(missing, [])
  })
})

test.group('documentation | references', (group) => {
  group.tap((one) => one.timeout(COMPILES_WITHIN_MS))

  test('docs/configuration.md lists the options of config/durable.ts', ({ assert }) => {
    const options = examples().membersOf('src/adonis/define_config.ts', 'StandaloneConfig')
    const listed = namesUnder(page('docs/configuration.md'), 'Options')
    assert.sameMembers(listed, options)
    const worker = examples().membersOf('src/adonis/define_config.ts', 'EmbeddedWorkerConfig')
    assert.sameMembers(namesUnder(page('docs/configuration.md'), 'worker'), worker)
  })

  test('docs/reference/engine.md lists the dependencies and the verbs of the engine', ({
    assert,
  }) => {
    const reference = page('docs/reference/engine.md')
    const dependencies = examples().membersOf('src/engine/deps.ts', 'WorkflowEngineDeps')
    assert.sameMembers(namesUnder(reference, 'Dependencies'), dependencies)
    const verbs = examples().membersOf('src/engine/api.ts', 'EngineApi')
    const listed = PAGE_SECTIONS.flatMap((heading) => namesUnder(reference, heading))
    assert.sameMembers(listed, verbs)
  })

  test('docs/errors.md lists the error classes, each with its code', ({ assert }) => {
    const classes = Object.values(root).filter(
      (value) => typeof value === 'function' && value.prototype instanceof Error
    ) as unknown as { name: string; code?: string }[]
    const rows = page('docs/errors.md').tables.flatMap((table) => table.rows.slice(1))
    const listed = rows.map(([name, code]) => `${strip(name)} ${strip(code)}`)
    const wanted = classes.map(({ name, code }) => `${name} ${code ?? '–'}`)
    assert.includeMembers(listed, wanted)
  })

  test('the sources cite only invariants that ARCHITECTURE.md lists', ({ assert }) => {
    const section = page('ARCHITECTURE.md')
      .prose.split(/^## Invariants$/m)[1]
      .split(/^## /m)[0]
    const listed = new Set([...section.matchAll(/^(\d+)\. /gm)].map(([, number]) => number))
    const unknown = sources().flatMap(({ file, text }) =>
      [...text.matchAll(/\binvariants? (\d+(?:(?:, | and )\d+)*)/g)]
        .flatMap(([, numbers]) => numbers.match(/\d+/g)!)
        .filter((number) => !listed.has(number))
        .map((number) => `${file}: invariant ${number}`)
    )
    assert.isAbove(listed.size, 0)
    assert.deepEqual(unknown, [])
  })

  test('README.md and docs/cli.md name only scripts and commands that exist', ({ assert }) => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const named = PAGES.flatMap(({ file, prose, blocks }) =>
      [prose, ...blocks.map(({ code }) => code)].flatMap((text) => [
        ...[...text.matchAll(/npm run ([\w:]+)/g)]
          .filter(([, script]) => !(script in scripts))
          .map(([call]) => `${file}: ${call}`),
        ...[...text.matchAll(/node ace ((?:durable|make):[\w:]+)/g)]
          .filter(([, command]) => !commandNames().includes(command))
          .map(([call]) => `${file}: ${call}`),
      ])
    )
    assert.deepEqual(named, [])
  })
})

const PAGE_SECTIONS = [
  'Registering',
  'Starting and controlling runs',
  'Delivering',
  'From outside',
  'Reading',
  'Listening',
  'Workers',
  'Schedules',
  'Upkeep',
]

const strip = (cell: string): string => cell.replaceAll('`', '')

function isBroken(from: Page, { target }: Link): boolean {
  if (/^[a-z]+:/.test(target)) return false
  const [, anchor] = target.split('#')
  const file = resolved(from, target)
  if (!existsSync(join(ROOT, file))) return true
  if (anchor === undefined) return false
  return !PAGES.find((one) => one.file === file)?.anchors.has(anchor)
}

/** The file that a link leads to, relative to the root. */
function resolved(from: Page, target: string): string {
  const [path] = target.split('#')
  if (path === '') return from.file
  return relative(ROOT, resolve(ROOT, from.file, '..', path))
}

function sources(): { file: string; text: string }[] {
  const patterns = ['*.ts', '{src,providers,services,commands,stubs}/**/*.{ts,stub}']
  return globSync(patterns, { cwd: ROOT }).map((file) => ({
    file,
    text: readFileSync(join(ROOT, file), 'utf8'),
  }))
}

/** As the command classes name themselves. */
function commandNames(): string[] {
  return globSync('commands/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [
      ...readFileSync(join(ROOT, file), 'utf8').matchAll(/commandName(?:: string)? = '([\w:]+)'/g),
    ].map(([, name]) => name)
  )
}
