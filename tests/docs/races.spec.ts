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

/** What must hold of control; the gaps are numbers above, or of what is not built yet. */
const CONTROL = [3, [10, 19], 21, 37, [46, 49], 51, 52, 55, [58, 60]].flatMap((part) => {
  const [from, to] = Array.isArray(part) ? part : [part, part]
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
})

const INDEXES = [
  { tag: 'race', heading: '## Tests by number', numbers: NUMBERS },
  { tag: 'control', heading: '## Control by number', numbers: CONTROL },
]

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** The files that the index names, by number. */
function listed(heading: string): Map<number, string[]> {
  const [, section] = read('docs/internals/races.md').split(heading)
  const rows = section.split('\n## ')[0].matchAll(/^\| *(\d+) *\|[^|]+\|([^|]+)\|$/gm)
  return new Map(
    Array.from(rows, ([, number, files]) => [
      Number(number),
      Array.from(files.matchAll(/`([^`]+)`/g), ([, file]) => file),
    ])
  )
}

/** The files whose tests carry a number. */
function tagged(tag: string): Map<number, string[]> {
  const found = new Map<number, string[]>()
  for (const file of globSync('tests/**/*.spec.ts', { cwd: ROOT }).sort()) {
    const tags = read(file).matchAll(new RegExp(`'@${tag}-(\\d+)'`, 'g'))
    const numbers = new Set(Array.from(tags, ([, n]) => Number(n)))
    for (const number of numbers) found.set(number, [...(found.get(number) ?? []), file])
  }
  return found
}

test.group('documentation | races', () => {
  for (const { tag, heading, numbers } of INDEXES) {
    test(`every ${tag} that must hold has a number in the index`, ({ assert }) => {
      assert.deepEqual([...listed(heading).keys()], numbers)
    })

    test(`the index names the files whose tests carry @${tag}, and all of them`, ({ assert }) => {
      const found = tagged(tag)
      for (const [number, files] of listed(heading)) {
        assert.isNotEmpty(files, `${tag} ${number}`)
        assert.deepEqual(files, found.get(number), `${tag} ${number}`)
        found.delete(number)
      }
      assert.deepEqual([...found], [])
    })
  }

  test('every test of a race runs on every store', ({ assert }) => {
    for (const files of listed('## Tests by number').values()) {
      for (const file of files) assert.include(read(file), 'of await storesUnderTest(', file)
    }
  })
})
