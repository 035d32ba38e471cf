/*
 * The root door against the API reference: a name that is missing, or that has another signature, fails by
 * name. One that a later release brings must still be missing: else it leaves that list.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from '@japa/runner'
import ts from 'typescript'
import { CONTROL_FLOW_SIGNAL, SchemaValidationError, TERMINAL_RUN_STATUSES } from '../../index.ts'
import { KEYS, MEMBERS, TYPES, VALUES, WRONG } from './reference.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FILE = join(ROOT, 'tests/api/checked.ts')

interface Check {
  name: string
  /** One line of code that compiles exactly when the name is as it should be. */
  code: string
  /** Why it must not compile. */
  not?: 'later' | 'wrong'
}

const memberName = (member: string): string => /^(?:readonly )?(\w+)/.exec(member)![1]

/** A method as a property: the parameters of a method may be narrower than asked, those of a property not. */
const strict = (member: string): string => member.replace(/^(\w+\??)([<(].*)$/, '$1: { $2 }')

const memberCheck = (of: string, member: string, not?: Check['not']): Check => ({
  name: not === 'wrong' ? `${of}: ${member}` : `${of}.${memberName(member)}`,
  code: `{ interface Wanted { ${strict(member)} }; const it: Wanted = null! as Pick<${of}, '${memberName(member)}'>; void it }`,
  not,
})

const CHECKS: Check[] = [
  ...MEMBERS.flatMap(({ of, members, later = {} }) => [
    ...members.map((member) => memberCheck(of, member)),
    ...Object.values(later).flatMap((group) =>
      group.map((member) => memberCheck(of, member, 'later'))
    ),
  ]),
  ...WRONG.flatMap(({ of, members }) => members.map((member) => memberCheck(of, member, 'wrong'))),
  ...VALUES.flatMap(({ table, values, later = {} }) => [
    ...Object.entries(values).map(([name, type]) => ({
      name: `${table}: ${name}`,
      code: `{ const it: ${type} = api.${name}; void it }`,
    })),
    ...Object.values(later).flatMap((names) =>
      names.map((name) => ({
        name: `${table}: ${name}`,
        code: `void api.${name}`,
        not: 'later' as const,
      }))
    ),
  ]),
  ...Object.entries(TYPES).map(([name, type]) => ({
    name: `type ${name}`,
    code: `{ const a: ${type} = null! as ${name}; const b: ${name} = null! as ${type}; void [a, b] }`,
  })),
  ...Object.entries(KEYS).map(([name, keys]) => ({
    name: `members of ${name}`,
    code: `{ const it: Record<${keys.map((key) => `'${key}'`).join(' | ')}, 1> = null! as Record<keyof ${name}, 1>; void it }`,
  })),
]

/** Everything that the root exports as a type or a class. */
function typeNames(): string[] {
  const source = ts.createSourceFile(
    'index.ts',
    readFileSync(join(ROOT, 'index.ts'), 'utf8'),
    ts.ScriptTarget.Latest
  )
  return source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || !statement.exportClause) return []
    const names = (statement.exportClause as ts.NamedExports).elements.map(({ name }) => name.text)
    return names.filter((name) => /^[A-Z][a-z]/.test(name))
  })
}

/** What the compiler says of each line, by the index of its check. */
function compile(): Map<number, string> {
  const head = [
    `import * as api from '../../index.ts'`,
    `import type { ${typeNames().join(', ')} } from '../../index.ts'`,
  ]
  const text = [...head, ...CHECKS.map(({ code }) => code), ''].join('\n')
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  const given = { ...options, noEmit: true, declaration: false, noUnusedLocals: false }
  const host = ts.createCompilerHost(given)
  const { readFile, fileExists } = host
  host.readFile = (name) => (name === FILE ? text : readFile.call(host, name))
  host.fileExists = (name) => name === FILE || fileExists.call(host, name)
  const program = ts.createProgram({ rootNames: [FILE], options: given, host })
  const source = program.getSourceFile(FILE)!
  const found = new Map<number, string>()
  for (const { start, messageText } of [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ]) {
    const { line } = source.getLineAndCharacterOfPosition(start ?? 0)
    const message = ts.flattenDiagnosticMessageText(messageText, '\n')
    found.set(line - head.length, `${found.get(line - head.length) ?? ''}${message}\n`)
  }
  return found
}

test.group('API reference', (group) => {
  let found: Map<number, string>
  group.setup(() => {
    found = compile()
  })
  group.tap((one) => one.timeout(180_000))

  test('the checks themselves compile', ({ assert }) => {
    const outside = [...found].filter(([index]) => index < 0)
    assert.deepEqual(outside, [])
  })

  for (const [index, { name, not }] of CHECKS.entries()) {
    const title = { later: `${name} comes later`, wrong: `${name} is found to be wrong` }
    test(not ? title[not] : name, ({ assert }) => {
      if (not === 'later') assert.isDefined(found.get(index), 'it is here: move it out of `later`')
      else if (not) assert.isDefined(found.get(index))
      else assert.isUndefined(found.get(index))
    })
  }

  test('values that the reference names', ({ assert }) => {
    assert.sameMembers([...TERMINAL_RUN_STATUSES], ['completed', 'failed', 'cancelled', 'dead'])
    assert.equal(SchemaValidationError.code, 'schema_validation')
    assert.strictEqual(CONTROL_FLOW_SIGNAL, Symbol.for('@agora/durable:control-flow'))
  })
})
