/*
 * The transport contract notices: a transport that breaks a promise fails the case of that promise, and
 * there is such a transport for every case.
 */
import { test } from '@japa/runner'
import { runTransportContract } from '../../../src/testing/conformance.ts'
import { RUN_QUEUE_CASES, type RunQueueSettings } from '../../../src/testing/contracts/run_queue.ts'
import { transportCases } from '../../../src/testing/contracts/transport.ts'
import { runTransportCase } from '../../../src/testing/contracts/transport/bench.ts'
import type { RunQueue, Transport } from '../../../src/transport/ports.ts'
import { DEFECTS } from './broken_transports.ts'
import { type Defect, open } from './defect.ts'
import { inMemory, sound } from './memory_queues.ts'

runTransportContract('transport contract | queues in memory', sound)

const TRIALS = DEFECTS.flatMap((defect) =>
  defect.noticedBy.map((title) => ({
    title,
    defect,
    name: `${title}: not by one that ${defect.what}`,
  }))
)

/** Those of the run queue that need leases; tests/testing/run_queue_contract.spec.ts has the others. */
const RUN_QUEUE_TRIALS = [
  ['looks for no silent workers', 'a message whose consumer stands still goes to another one'],
  ['renews nothing', 'a handler that takes longer than the lease keeps its message'],
  [
    'has no bound for deaths',
    'a message that silenced too many consumers is dropped, and reported',
  ],
] as const

const opener = (defect: Defect) =>
  inMemory(open(defect, { served: new Set(), sent: new Set(), undead: new Map() }))

/** What the case says of a transport with the defect; undefined when it finds nothing wrong. */
async function verdictOf(title: string, defect: Defect): Promise<Error | undefined> {
  const found = transportCases.find((each) => each.title === title)
  if (!found) throw new Error(`no case has the title "${title}"`)
  const made = opener(defect)
  const abilities = [...made.abilities!, 'fence', 'priority'] as const
  const skipped: string[] = []
  try {
    await runTransportCase(found, { ...made, abilities }, (line) => void skipped.push(line))
  } catch (error) {
    return error as Error
  }
  if (skipped.length > 0) throw new Error(skipped.join(', '))
  return undefined
}

/** Nothing here holds the process: there is no connection, and no timer of a transport does. */
function keepAlive(): () => void {
  const holding = setInterval(() => {}, 60_000)
  return () => clearInterval(holding)
}

test.group('transport contract | teeth', (group) => {
  /** Many of these only wait until the patience of a case is over: they wait together. */
  let verdicts: Map<string, Promise<Error | undefined>>
  group.setup(() => {
    verdicts = new Map(TRIALS.map(({ name, title, defect }) => [name, verdictOf(title, defect)]))
    for (const verdict of verdicts.values()) verdict.catch(() => {})
    return async () => void (await Promise.allSettled(verdicts.values()))
  })
  group.setup(keepAlive)
  group.tap((each) => each.timeout(60_000))

  for (const { name } of TRIALS) {
    test(`is not kept: ${name}`, async ({ assert }) => {
      const verdict = await verdicts.get(name)
      assert.isDefined(verdict, 'the case finds nothing wrong')
      // The case said so, and the test itself is not broken.
      assert.notInstanceOf(verdict, TypeError, verdict?.stack)
    })
  }

  test('there is a broken transport for every case', ({ assert }) => {
    const noticed = new Set(DEFECTS.flatMap(({ noticedBy }) => noticedBy))
    assert.deepEqual(
      transportCases.map(({ title }) => title).filter((title) => !noticed.has(title)),
      []
    )
  })
})

async function runQueueVerdictOf(title: string, what: string): Promise<Error | undefined> {
  const { run } = RUN_QUEUE_CASES.find((each) => each.title === title)!
  const made = opener(DEFECTS.find((defect) => defect.what === what)!)
  const opened: Transport[] = []
  const openOne = async ({ onError = () => {}, ...settings }: RunQueueSettings = {}) => {
    const transport = await made.open({ ...settings, onError })
    opened.push(transport)
    return transport as Transport & RunQueue
  }
  const verdict = await run({ open: openOne }).then(
    () => undefined,
    (error: Error) => error
  )
  await Promise.all(opened.map((transport) => transport.close?.()))
  return verdict
}

test.group('run-queue contract | teeth', (group) => {
  let verdicts: Map<string, Promise<Error | undefined>>
  group.setup(keepAlive)
  group.setup(() => {
    verdicts = new Map(
      RUN_QUEUE_TRIALS.map(([what, title]) => [title, runQueueVerdictOf(title, what)])
    )
  })
  group.tap((each) => each.timeout(60_000))

  for (const [what, title] of RUN_QUEUE_TRIALS) {
    test(`is not kept: ${title}: not by one that ${what}`, async ({ assert }) => {
      assert.isDefined(await verdicts.get(title), 'the case finds nothing wrong')
    })
  }
})
