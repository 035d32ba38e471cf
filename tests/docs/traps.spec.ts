/*
 * The index of traps against the tests: every number has tests or says why it has none, each listed test
 * is there under its title, and the cases of contracts are played over every broker.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { ADMISSION_CASES } from '../../src/testing/contracts/admission.ts'
import { RUN_QUEUE_CASES } from '../../src/testing/contracts/run_queue.ts'
import { transportCases } from '../../src/testing/contracts/transport.ts'
import { pages, ROOT } from './markdown.ts'
import { listedIn, testsIn } from './titles.ts'

/** How many traps there are. */
const LAST = 64

const page = pages().find(({ file }) => file === 'docs/internals/traps.md')!
const [LISTED, WITHOUT] = page.tables.map(({ rows }) => rows.slice(1))
const CASES = new Set([...transportCases, ...RUN_QUEUE_CASES, ...ADMISSION_CASES].map(({ title }) => title)) // prettier-ignore

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

test.group('documentation | traps', () => {
  test('every trap is in the index, in order, or it says why there is no test of it', ({
    assert,
  }) => {
    for (const rows of [LISTED, WITHOUT]) {
      const numbers = rows.map(([number]) => Number(number))
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b)
      )
    }
    assert.deepEqual(
      [...LISTED, ...WITHOUT].map(([number]) => Number(number)).toSorted((a, b) => a - b),
      Array.from({ length: LAST }, (_, i) => i + 1)
    )
    for (const [number, why] of WITHOUT) assert.match(why, /^[A-Z].{10,}\.$/, `trap ${number}`)
  })

  for (const [number, , cell] of LISTED) {
    test(`tests play trap ${number}`, ({ assert }) => {
      const tests = listedIn(cell)
      assert.isNotEmpty(tests)
      assert.lengthOf(tests, cell.split('<br>').length, cell)
      for (const { file, title } of tests) {
        assert.isTrue(existsSync(join(ROOT, file)), file)
        if (file.endsWith('.spec.ts')) {
          const titles = testsIn(read(file)).map((each) => each.title)
          assert.include(titles, title, file)
        } else {
          assert.match(file, /^src\/testing\/contracts\//)
          assert.isTrue(CASES.has(title), title)
          assert.include(read(file), `'${title}'`, file)
        }
      }
    })
  }

  test('the cases of contracts are played over every broker', ({ assert }) => {
    for (const broker of ['bullmq', 'db', 'queue']) {
      const source = read(`tests/transport/${broker}/conformance.spec.ts`)
      for (const contract of ['runTransportContract(', 'runRunDispatchContract(']) {
        assert.include(source, contract, broker)
      }
    }
  })
})
