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
import { caseOf, testTeeth, verdictOfCase } from '../../helpers/teeth.ts'
import { DEFECTS } from './broken_transports.ts'
import { type Defect, open } from './defect.ts'
import { inMemory, sound } from './memory_queues.ts'

runTransportContract('transport contract | queues in memory', sound)

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

/** Nothing here holds the process: there is no connection, and no timer of a transport does. */
function keepAlive(): () => void {
  const holding = setInterval(() => {}, 60_000)
  return () => clearInterval(holding)
}

testTeeth({
  contract: 'transport contract',
  defects: DEFECTS,
  cases: transportCases.map(({ title }) => title),
  verdictOf: async (title, defect) => {
    const found = caseOf(transportCases, title)
    const made = opener(defect)
    const abilities = [...made.abilities!, 'fence', 'priority'] as const
    return verdictOfCase((note) => runTransportCase(found, { ...made, abilities }, note))
  },
  setup: keepAlive,
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
