/*
 * The index of races against the tests: every number has tests on every store, and every test that
 * carries a number is listed.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { ROOT } from './markdown.ts'

/** What must hold on every store. */
const NUMBERS = [
  [1, 3],
  [6, 8],
  [10, 15],
  [17, 32],
  [34, 44],
  [47, 57],
  [60, 62],
].flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i))

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** The files that the index names, by number. */
function listed(): Map<number, string[]> {
  const rows = read('docs/internals/races.md').matchAll(/^\| *(\d+) *\|[^|]+\|([^|]+)\|$/gm)
  return new Map(
    Array.from(rows, ([, number, files]) => [
      Number(number),
      Array.from(files.matchAll(/`([^`]+)`/g), ([, file]) => file),
    ])
  )
}

/** The files whose tests carry a number. */
function tagged(): Map<number, string[]> {
  const found = new Map<number, string[]>()
  for (const file of globSync('tests/**/*.spec.ts', { cwd: ROOT }).sort()) {
    const numbers = new Set(Array.from(read(file).matchAll(/'@race-(\d+)'/g), ([, n]) => Number(n)))
    for (const number of numbers) found.set(number, [...(found.get(number) ?? []), file])
  }
  return found
}

test.group('documentation | races', () => {
  test('every race that must hold has a number in the index', ({ assert }) => {
    assert.deepEqual([...listed().keys()], NUMBERS)
  })

  test('the index names the files whose tests carry the number, and all of them', ({ assert }) => {
    const found = tagged()
    for (const [number, files] of listed()) {
      assert.isNotEmpty(files, `race ${number}`)
      assert.deepEqual(files, found.get(number), `race ${number}`)
      found.delete(number)
    }
    assert.deepEqual([...found], [])
  })

  test('every such test runs on every store', ({ assert }) => {
    for (const files of listed().values()) {
      for (const file of files) assert.include(read(file), 'of await storesUnderTest(', file)
    }
  })
})
