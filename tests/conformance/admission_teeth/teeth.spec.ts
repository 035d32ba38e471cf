/*
 * The admission contract notices: a backend that breaks a promise fails the case of that promise, and there is
 * such a backend for every case.
 */
import { test } from '@japa/runner'
import { runAdmissionBackendContract } from '../../../src/testing/conformance.ts'
import { ADMISSION_CASES } from '../../../src/testing/contracts/admission.ts'
import { runAdmissionCase } from '../../../src/testing/contracts/admission/bench.ts'
import { LEASES, TOGETHER } from './broken_fleets.ts'
import { CAPS, LINES, NEWS } from './broken_queues.ts'
import { type Defect, inMemory } from './defect.ts'

runAdmissionBackendContract('admission contract | a fleet in memory', (clock) => inMemory(clock))

const DEFECTS = [...CAPS, ...LINES, ...NEWS, ...TOGETHER, ...LEASES]
const TRIALS = DEFECTS.flatMap((defect) =>
  defect.noticedBy.map((title) => ({
    title,
    defect,
    name: `${title}: not by one that ${defect.what}`,
  }))
)

/** What the case says of a backend with the defect; undefined when it finds nothing wrong. */
async function verdictOf(title: string, defect: Defect): Promise<Error | undefined> {
  const found = ADMISSION_CASES.find((each) => each.title === title)
  if (!found) throw new Error(`no case has the title "${title}"`)
  const skipped: string[] = []
  const note = (line: string) => void skipped.push(line)
  try {
    await runAdmissionCase(found, (clock) => inMemory(clock, defect), note)
  } catch (error) {
    return error as Error
  }
  if (skipped.length > 0) throw new Error(skipped.join(', '))
  return undefined
}

test.group('admission contract | teeth', (group) => {
  /** Some of these only wait until the patience of a case is over: they wait together. */
  let verdicts: Map<string, Promise<Error | undefined>>
  group.setup(() => {
    verdicts = new Map(TRIALS.map(({ name, title, defect }) => [name, verdictOf(title, defect)]))
    for (const verdict of verdicts.values()) verdict.catch(() => {})
    return async () => void (await Promise.allSettled(verdicts.values()))
  })
  group.tap((each) => each.timeout(60_000))

  for (const { name } of TRIALS) {
    test(`is not kept: ${name}`, async ({ assert }) => {
      const verdict = await verdicts.get(name)
      assert.isDefined(verdict, 'the case finds nothing wrong')
      // The case said so, and the test itself is not broken.
      assert.notInstanceOf(verdict, TypeError, verdict?.stack)
    })
  }

  test('there is a broken backend for every case', ({ assert }) => {
    const noticed = new Set(DEFECTS.flatMap(({ noticedBy }) => noticedBy))
    assert.deepEqual(
      ADMISSION_CASES.map(({ title }) => title).filter((title) => !noticed.has(title)),
      []
    )
  })
})
