/*
 * The index of scenarios against the tests: every number has tests, each listed test is there under its
 * title and carries the number, and every test that carries a number is listed.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { ROOT } from './markdown.ts'
import { listedIn, testsIn } from './titles.ts'

/** How many scenarios there are. */
const LAST = 20

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** What the index lists, by number: each test as `file "title"`. */
function listed(): Map<number, string[]> {
  const page = read('docs/internals/scenarios.md')
  const rows = page.matchAll(/^\| *(\d+) *\| *[A-Z][^|]+\|([^|]+)\|$/gm)
  return new Map(
    Array.from(rows, ([, number, tests]) => [
      Number(number),
      listedIn(tests)
        .map(({ file, title }) => `${file} "${title}"`)
        .sort(),
    ])
  )
}

/** The tests that carry a number, each as `file "title"`. */
function tagged(): Map<number, string[]> {
  const found = new Map<number, string[]>()
  for (const file of globSync('tests/**/*.spec.ts', { cwd: ROOT }).sort()) {
    for (const { title, text } of testsIn(read(file))) {
      for (const [, number] of text.matchAll(/'@scenario-(\d+)'/g)) {
        const tests = found.get(Number(number)) ?? []
        found.set(Number(number), [...tests, `${file} "${title}"`].sort())
      }
    }
  }
  return found
}

test.group('documentation | scenarios', () => {
  test('every scenario is in the index, in order', ({ assert }) => {
    assert.deepEqual(
      [...listed().keys()],
      Array.from({ length: LAST }, (_, i) => i + 1)
    )
  })

  test('the index names the tests that carry @scenario, and all of them', ({ assert }) => {
    const found = tagged()
    for (const [number, tests] of listed()) {
      assert.isNotEmpty(tests, `scenario ${number}`)
      assert.deepEqual(tests, found.get(number), `scenario ${number}`)
      found.delete(number)
    }
    assert.deepEqual([...found], [])
  })
})
