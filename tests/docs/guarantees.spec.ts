/*
 * The page of guarantees against the tests: whatever it promises names a test that is there.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { pages, ROOT } from './markdown.ts'

const page = pages().find(({ file }) => file === 'docs/reliability/guarantees.md')!
const PROMISES = page.tables.flatMap(({ rows }) => rows.slice(1))

test.group('documentation | guarantees', () => {
  test('every table says promise, cost and test', ({ assert }) => {
    assert.isAbove(PROMISES.length, 25)
    for (const { rows } of page.tables) assert.deepEqual(rows[0], ['Promise', 'Cost', 'Test'])
  })

  for (const [promise, , proof] of PROMISES) {
    test(`a test holds: ${promise}`, ({ assert }) => {
      const [, file, title] = /^`([^`]+)` "([^"]+)"$/.exec(proof) ?? []
      assert.isDefined(title, proof)
      const source = readFileSync(join(ROOT, file), 'utf8')
      assert.match(source, new RegExp(`test\\(\\s*'${RegExp.escape(title)}'`), file)
    })
  }
})
