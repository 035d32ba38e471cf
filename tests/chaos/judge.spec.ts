/*
 * The judge of the chaos test finds what it is there to find.
 */
import { test } from '@japa/runner'
import { KINDS } from './expectations.ts'
import { type Aftermath, type Asked, judge } from './judge.ts'
import { SINGLETON_LIMIT } from './workflows.ts'

const asked = (kind: string, n: number, key = 'k'): Asked => {
  const job = { n, pause: 0, key }
  const runId = `${kind}:${n}`
  const found = KINDS.find(({ name }) => name === kind)!
  return { runId, kind, job, expected: (version) => found.expected(job, runId, version) }
}

/** One run of every kind, done right. */
function right(): Aftermath {
  const all = KINDS.map(({ name }, n) => asked(name, n))
  const aftermath: Aftermath = { asked: all, runs: [], ledger: [], sums: { k: 3 } }
  const add = (id: string, workflow: string, one: ReturnType<Asked['expected']>) => {
    const { status, output, once, undone = [] } = one
    aftermath.runs.push({ id, workflow, workflowVersion: '1', status, output })
    for (const what of once) aftermath.ledger.push({ runId: id, what })
    for (const what of undone.toReversed()) {
      aftermath.ledger.push({ runId: id, what: `undo ${what}` })
    }
  }
  for (const { runId, kind, expected } of all) add(runId, kind, expected('1'))
  for (let i = 0; i < 5; i++)
    add(`member ${i}`, 'member', { status: 'completed', once: ['member'] })
  for (let i = 2; i <= 4; i++) {
    add(`chain~${i}`, 'chain', { status: 'completed', once: [`link ${i}`] })
  }
  for (const window of [7, 8, 9]) {
    add(`sched:window:${window}`, 'window', { status: 'completed', once: ['window'] })
  }
  return aftermath
}

const idOf = (kind: string) => right().asked.find((one) => one.kind === kind)!.runId
const WRONG: Record<string, (aftermath: Aftermath) => void> = {
  'is not there': ({ runs }) => void runs.shift(),
  'is failed, not completed': ({ runs }) => void (runs[0].status = 'failed'),
  'came to 1, not 0': ({ runs }) => void (runs[0].output = 1),
  'order:0 did charge, mail, mail, not charge, mail': ({ ledger }) =>
    void ledger.push({ runId: 'order:0', what: 'mail' }),
  'did charge, not charge, mail': (aftermath) =>
    void (aftermath.ledger = aftermath.ledger.filter(({ what }) => what !== 'mail')),
  'did undo reserve, undo pack, not undo pack, undo reserve': ({ ledger }) =>
    void ledger.unshift({ runId: idOf('saga'), what: 'undo reserve' }),
  'member 0 of member did member, member': ({ ledger }) =>
    void ledger.push({ runId: 'member 0', what: 'member' }),
  '2 runs of chain were started, not 3': ({ runs }) =>
    void runs.splice(
      runs.findIndex(({ id }) => id === 'chain~2'),
      1
    ),
  'are inside at once': (aftermath) => {
    const crowd = Array.from({ length: SINGLETON_LIMIT + 1 }, (_, i) =>
      asked('guest', 100 + i, 'x')
    )
    aftermath.asked.push(...crowd)
    for (const { runId } of crowd) aftermath.ledger.push({ runId, what: 'enter' })
  },
  'guest:9 is over and has durable:singleton:admitted': ({ runs }) => {
    runs.find(({ workflow }) => workflow === 'guest')!.tags = [
      'singleton:k',
      'durable:singleton:admitted',
    ]
  },
  'windows 8 were not started': ({ runs }) =>
    void runs.splice(
      runs.findIndex(({ id }) => id === 'sched:window:8'),
      1
    ),
  'account k holds 6, not 3': ({ sums }) => void (sums.k = 6),
}

test.group('Chaos judge', () => {
  test('finds nothing wrong with what is right', ({ assert }) => {
    assert.deepEqual(judge(right()), [])
  })

  test('finds: {$self}')
    .with(Object.keys(WRONG))
    .run(({ assert }, wrong) => {
      const aftermath = right()
      WRONG[wrong](aftermath)
      assert.include(judge(aftermath).join('\n'), wrong)
    })
})
