import { test } from '@japa/runner'
import { type Evidence, judge } from '../../scripts/demo/judge.ts'
import { ALL } from '../../scripts/demo/orders.ts'
import type { JournalLine, OrderReport } from '../../scripts/demo/report.ts'

/** What the shop tells after a demo in which everything went right. */
function perfect(): Evidence {
  const journal: JournalLine[] = []
  const orders = ALL.map(({ input, status, run, history, ledger }): OrderReport => {
    for (const { body, killed } of history) {
      if (!body) continue
      const line = { order: input.id, body, process: 'b' }
      if (killed) journal.push({ ...line, event: 'begin', process: 'a' })
      journal.push({ ...line, event: 'begin' }, { ...line, event: 'end' })
    }
    const steps = history.map(({ name, status: state }, index) => ({
      seq: name.startsWith('compensate:') ? -1 : index,
      name,
      kind: 'local',
      status: state,
    }))
    // The shop lists undos first.
    steps.sort((x, y) => x.seq - y.seq)
    return { id: input.id, status, run: { status: run }, steps, ledger: structuredClone(ledger) }
  })
  const report = { orders, runs: ALL.length, unfinished: 0 }
  return { report, journal, killed: 'a', survivor: 'b' }
}

const orderIn = ({ report }: Evidence, id: string) => report.orders.find((one) => one.id === id)!

const FAULTS: [what: string, spoil: (evidence: Evidence) => unknown, sentence: RegExp][] = [
  [
    'an order is charged twice',
    (e) => orderIn(e, 'boots-1').ledger.push({ kind: 'charge', cents: 12_900 }),
    /^boots-1: the ledger is "charge 12900, charge 12900" and should be "charge 12900"$/,
  ],
  [
    'the declined order is not refunded',
    (e) => orderIn(e, 'tent-3').ledger.pop(),
    /^tent-3: the ledger is "charge 24900" and should be/,
  ],
  [
    'the declined order is refunded twice',
    (e) => orderIn(e, 'tent-3').ledger.push({ kind: 'refund', cents: -24_900 }),
    /^tent-3: the ledger is/,
  ],
  [
    'an order has another status',
    (e) => (orderIn(e, 'wine-5').status = 'charged'),
    /^wine-5: the order is "charged" and should be "shipped"$/,
  ],
  [
    'a run has another status',
    (e) => (orderIn(e, 'wine-5').run!.status = 'suspended'),
    /^wine-5: the run is "suspended" and should be "completed"$/,
  ],
  [
    'a lease is left',
    (e) => (orderIn(e, 'vase-6').run!.lockedBy = 'somebody'),
    /^vase-6: the run is still leased to somebody$/,
  ],
  [
    'an order has no run',
    (e) => (orderIn(e, 'socks-2').run = null),
    /^socks-2: the run is "undefined"/,
  ],
  ['an order is missing', (e) => e.report.orders.shift(), /^boots-1: is not there$/],
  [
    'a position is missing',
    (e) => orderIn(e, 'wine-5').steps.splice(2, 1),
    /^wine-5: the history is/,
  ],
  [
    'a body ran twice',
    (e) => e.journal.push({ event: 'begin', order: 'boots-1', body: 'parcel:ship', process: 'b' }),
    /^boots-1: "parcel:ship" ran 2 times, not once$/,
  ],
  [
    'a body never ran',
    (e) => (e.journal = e.journal.filter(({ body }) => body !== 'payment:refund')),
    /^tent-3: "payment:refund" ran 0 times, not once$/,
  ],
  [
    'the killed body ran a third time',
    (e) => e.journal.push({ event: 'begin', order: 'vase-6', body: 'parcel:wrap', process: 'b' }),
    /^vase-6: "parcel:wrap" ran in "a, b, b" and should be "a, b"$/,
  ],
  [
    'the killed body was not killed',
    (e) => e.journal.push({ event: 'end', order: 'vase-6', body: 'parcel:wrap', process: 'a' }),
    /^vase-6: "parcel:wrap" ran to its end 2 times, not once$/,
  ],
  [
    'a body ran that should not have',
    (e) => e.journal.push({ event: 'begin', order: 'tent-3', body: 'parcel:ship', process: 'b' }),
    /^tent-3: "parcel:ship" ran, and should not have$/,
  ],
  ['an order has two runs', (e) => (e.report.runs = 7), /^there are 7 runs for 6 orders$/],
  ['a run is not at its end', (e) => (e.report.unfinished = 1), /^not at their end: 1 runs$/],
]

test.group('demo | the verdict', () => {
  test('is that nothing is wrong when everything went right', ({ assert }) => {
    assert.deepEqual(judge(ALL, perfect()), [])
  })

  for (const [what, spoil, sentence] of FAULTS) {
    test(`says so when ${what}`, ({ assert }) => {
      const evidence = perfect()
      spoil(evidence)
      assert.match(judge(ALL, evidence)[0], sentence)
    })
  }

  test('says so when a position is still open', ({ assert }) => {
    const evidence = perfect()
    orderIn(evidence, 'vase-6').steps[2].status = 'pending'
    assert.equal(judge(ALL, evidence)[0], 'vase-6: "parcel:wrap" is still pending')
  })
})
