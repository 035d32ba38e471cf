/*
 * The names of the root door, held against tests/package/public_surface.txt. A name that comes or goes is
 * a change for users: edit the list in the commit that makes it, with an entry in the changelog.
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
  /** Exports that name nothing: `export *`, a default. */
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
    } else if (ts.isVariableStatement(statement)) {
      const declared = statement.declarationList.declarations
      door.names.push(...declared.map(({ name }) => name.getText()))
    } else {
      door.unnamed.push(statement.getText())
    }
  }
  return door
}

test.group('package | public surface', () => {
  const door = readDoor('index.ts')

  test('the root exports the names that are listed, and no others', ({ assert }) => {
    const listed = read('tests/package/public_surface.txt').trim().split('\n')
    assert.deepEqual([...door.names].sort(), listed)
  })

  test('every export has a name, once', ({ assert }) => {
    assert.deepEqual(door.unnamed, [])
    assert.lengthOf(new Set(door.names), door.names.length)
  })

  test('what is no type is there at run time', async ({ assert }) => {
    const root = await import('../../index.ts')
    const values = door.names.filter((name) => !name.startsWith('type '))
    assert.sameMembers(Object.keys(root), values)
    for (const [name, value] of Object.entries(root)) assert.isDefined(value, name)
  })

  test('VERSION is the version of the package', async ({ assert }) => {
    const { VERSION } = await import('../../index.ts')
    assert.equal(VERSION, JSON.parse(read('package.json')).version)
  })
})
