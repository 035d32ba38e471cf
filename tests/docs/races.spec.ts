/*
 * The index of races against the tests: every number has tests on every store, and every test that
 * carries a number is listed.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { ROOT } from './markdown.ts'

/** How many races there are of each kind. A number without tests says why. */
const INDEXES = [
  { tag: 'race', heading: '## Tests by number', last: 62 },
  { tag: 'control', heading: '## Control by number', last: 60 },
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

/** The numbers of what does not exist yet, each with a reason. */
function withoutTests(tag: string): number[] {
  const [, section] = read('docs/internals/races.md').split('## Numbers without tests')
  const rows = section.matchAll(new RegExp(`^\\| *${tag} (\\d+) *\\| *[A-Z][^|]{10,}\\|$`, 'gm'))
  return Array.from(rows, ([, number]) => Number(number))
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
  for (const { tag, heading, last } of INDEXES) {
    test(`every ${tag} is in the index, in order, or it says why there is no test of it`, ({
      assert,
    }) => {
      const numbers = [...listed(heading).keys()]
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b)
      )
      assert.deepEqual(
        [...numbers, ...withoutTests(tag)].toSorted((a, b) => a - b),
        Array.from({ length: last }, (_, i) => i + 1)
      )
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
