/*
 * Whether a contract notices: something that breaks a promise must fail the case of that promise, and there
 * must be such a defect for every case.
 */
import { test } from '@japa/runner'

interface Broken {
  /** What stands under contract here, as one that … */
  what: string
  /** Titles of the cases that notice. */
  noticedBy: string[]
}

interface Trials<Defect extends Broken> {
  contract: string
  defects: readonly Defect[]
  /** Titles of all cases. */
  cases: readonly string[]
  /** What a case says of the defect; undefined when it finds nothing wrong. Throws when it did not apply. */
  verdictOf(title: string, defect: Defect): Promise<Error | undefined>
  setup?: () => () => void
}

/** Runs a case; `run` is given where to note why it did not apply. */
export async function verdictOfCase(
  run: (note: (line: string) => void) => Promise<void>
): Promise<Error | undefined> {
  const skipped: string[] = []
  try {
    await run((line) => void skipped.push(line))
  } catch (error) {
    return error as Error
  }
  if (skipped.length > 0) throw new Error(skipped.join(', '))
  return undefined
}

/** The case of a title; throws for one that no case has. */
export function caseOf<Case extends { title: string }>(
  cases: readonly Case[],
  title: string
): Case {
  const found = cases.find((each) => each.title === title)
  if (!found) throw new Error(`no case has the title "${title}"`)
  return found
}

export function testTeeth<Defect extends Broken>({
  contract,
  defects,
  cases,
  verdictOf,
  setup,
}: Trials<Defect>): void {
  const trials = defects.flatMap((defect) =>
    defect.noticedBy.map((title) => ({
      title,
      defect,
      name: `${title}: not by one that ${defect.what}`,
    }))
  )

  test.group(`${contract} | teeth`, (group) => {
    /** Many of these only wait until the patience of a case is over: they wait together. */
    let verdicts: Map<string, Promise<Error | undefined>>
    group.setup(() => {
      verdicts = new Map(trials.map(({ name, title, defect }) => [name, verdictOf(title, defect)]))
      for (const verdict of verdicts.values()) verdict.catch(() => {})
      return async () => void (await Promise.allSettled(verdicts.values()))
    })
    if (setup) group.setup(setup)
    group.tap((each) => each.timeout(60_000))

    for (const { name } of trials) {
      test(`is not kept: ${name}`, async ({ assert }) => {
        const verdict = await verdicts.get(name)
        assert.isDefined(verdict, 'the case finds nothing wrong')
        // The case said so, and the test itself is not broken.
        assert.notInstanceOf(verdict, TypeError, verdict?.stack)
      })
    }

    test('there is a defect for every case', ({ assert }) => {
      const noticed = new Set(defects.flatMap(({ noticedBy }) => noticedBy))
      assert.deepEqual(
        cases.filter((title) => !noticed.has(title)),
        []
      )
    })
  })
}
