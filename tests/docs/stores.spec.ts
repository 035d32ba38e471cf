/*
 * What the pages about stores list is what there is.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { indexesOf } from '../../src/sql/ddl.ts'
import { SCHEMA } from '../../src/store/lucid/schema/tables.ts'
import { OPTIONAL_MEMBERS, REQUIRED_MEMBERS } from '../../src/store/ports/members.ts'

const page = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../docs/stores', name), 'utf8')

test.group('Pages about stores', () => {
  test('every member of the port is listed', ({ assert }) => {
    const text = page('custom.md')
    const members = [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS]
    assert.deepEqual(
      members.filter((member) => !text.includes(`\`${member}\``)),
      []
    )
  })

  test('the tables and indexes are those of the schema', ({ assert }) => {
    const text = page('overview.md')
    const [listed, replaced] = text.split('These serve no statement any more')
    const named = (part: string) => [...part.matchAll(/`(durable_\w+)`/g)].map(([, name]) => name)
    const indexes = new Set(
      (['postgres', 'mysql'] as const).flatMap((dialect) =>
        SCHEMA.flatMap((table) => indexesOf(dialect, table).map(({ name }) => name))
      )
    )
    const known = new Set([...indexes, ...SCHEMA.map(({ name }) => name)])
    const told = new Set(named(listed))
    assert.deepEqual([...known].filter((name) => !told.has(name)), []) // prettier-ignore
    assert.deepEqual([...told].filter((name) => !known.has(name)), []) // prettier-ignore
    const old = named(replaced.split('\n')[0])
    assert.isAbove(old.length, 5)
    assert.deepEqual(old.filter((name) => known.has(name)), []) // prettier-ignore
  })
})
