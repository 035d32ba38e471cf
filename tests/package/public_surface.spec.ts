/*
 * The names of the doors, held against tests/package/public_surface.txt: one section a door. A name that
 * comes or goes is a change for users: edit the list in the commit that makes it, with an entry in the
 * changelog.
 */
import { test } from '@japa/runner'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

interface Door {
  /** Every exported name; types as `type Name`. */
  names: string[]
  /** Exports that name nothing: `export *`. */
  unnamed: string[]
}

function readDoor(path: string): Door {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.ESNext, true)
  const door: Door = { names: [], unnamed: [] }
  for (const statement of source.statements) {
    if (ts.isExportDeclaration(statement)) {
      const clause = statement.exportClause
      if (!clause || !ts.isNamedExports(clause)) door.unnamed.push(statement.getText())
      else {
        const prefix = statement.isTypeOnly ? 'type ' : ''
        door.names.push(...clause.elements.map(({ name }) => `${prefix}${name.text}`))
      }
    } else if (ts.isExportAssignment(statement)) {
      door.names.push('default')
    } else if (!isExported(statement)) {
      continue
    } else if (ts.isInterfaceDeclaration(statement)) {
      door.names.push(`type ${statement.name.text}`)
    } else if (ts.isClassDeclaration(statement) || ts.isFunctionDeclaration(statement)) {
      door.names.push(statement.name!.text)
    } else if (ts.isVariableStatement(statement)) {
      const declared = statement.declarationList.declarations
      door.names.push(...declared.map(({ name }) => name.getText()))
    } else {
      door.unnamed.push(statement.getText())
    }
  }
  return door
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
}

/** Exported names by door, as they are listed: `[testing]`, then its names. The root comes first. */
function listedNames(): Map<string, string[]> {
  const listed = new Map<string, string[]>()
  for (const section of read('tests/package/public_surface.txt').trim().split('\n\n')) {
    const [head, ...names] = section.split('\n')
    const door = /^\[(.+)\]$/.exec(head)?.[1]
    listed.set(door ?? '.', door ? names : [head, ...names])
  }
  return listed
}

const DOORS: Record<string, string> = {
  '.': 'index.ts',
  'testing': 'src/testing/main.ts',
  'testing/conformance': 'src/testing/conformance.ts',
  'hooks/workflows': 'src/hooks/workflows.ts',
  'hooks/steps': 'src/hooks/steps.ts',
  'admission-redis': 'src/flow/redis/main.ts',
  'control-plane-redis': 'src/control_plane/redis/main.ts',
}

for (const [name, file] of Object.entries(DOORS)) {
  test.group(`package | public surface of "${name}"`, () => {
    const door = readDoor(file)

    test('it exports the names that are listed, and no others', ({ assert }) => {
      assert.deepEqual([...door.names].sort(), listedNames().get(name))
    })

    test('every export has a name, once', ({ assert }) => {
      assert.deepEqual(door.unnamed, [])
      assert.lengthOf(new Set(door.names), door.names.length)
    })

    test('what is no type is there at run time', async ({ assert }) => {
      const module = (await import(join(ROOT, file))) as object
      const values = door.names.filter((one) => !one.startsWith('type '))
      assert.sameMembers(Object.keys(module), values)
      for (const [one, value] of Object.entries(module)) assert.isDefined(value, one)
    })
  })
}

test.group('package | public surface', () => {
  test('every section of the list is a door', ({ assert }) => {
    assert.sameMembers([...listedNames().keys()], Object.keys(DOORS))
  })

  test('VERSION is the version of the package', async ({ assert }) => {
    const { VERSION } = await import('../../index.ts')
    assert.equal(VERSION, JSON.parse(read('package.json')).version)
  })
})
