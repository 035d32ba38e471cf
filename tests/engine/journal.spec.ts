/*
 * The journal of a turn: where the order of a result is written.
 */
import { test } from '@japa/runner'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import { Journal } from '../../src/turns/journal.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import { FakeTime, T0, turns } from '../helpers/fake_time.ts'

const at = new Date(T0)

const row = (fields: Partial<StepCheckpoint>): StepCheckpoint => ({
  runId: 'r',
  seq: 0,
  name: 's',
  kind: 'remote',
  stepId: 'r:0',
  status: 'completed',
  attempts: 1,
  enqueuedAt: at,
  startedAt: at,
  finishedAt: at,
  ...fields,
})

function open() {
  const commits: TurnCommit[] = []
  const time = new FakeTime()
  const journal = new Journal({
    store: {
      commitTurn: async (commit) => {
        commits.push(commit)
        return {
          applied: true,
          status: 'running',
          wakeRequested: false,
          cancelRequested: false,
          awaited: false,
          stored: [],
        }
      },
    },
    timers: time,
    clock: time.clock,
    lease: { runId: 'r', owner: 'me', turn: 1 },
    ring: () => {},
    landed: () => {},
  })
  return { journal, commits }
}

test.group('Journal', () => {
  test('the order of a row that waits here goes with the row', async ({ assert }) => {
    const { journal, commits } = open()
    const mine = row({ output: 'mine' })
    journal.append({ row: { row: mine } }, { urgent: true })
    journal.stamp({ seq: 0, order: 3 }, { at: () => mine })
    journal.flush()
    await turns(1)
    assert.equal(commits[0].rows?.[0].row.order, 3)
    assert.isUndefined(commits[0].stamps)
  })

  test('an order is not given to a row that lost against the one that the body saw', async ({
    assert,
  }) => {
    const { journal, commits } = open()
    const given = row({ status: 'failed', error: { message: 'no result within 5ms' } })
    const seen = row({ output: 'a result, just in time' })
    journal.append({ row: { row: given } }, { urgent: true })
    journal.stamp({ seq: 0, order: 3 }, { at: () => seen })
    journal.flush()
    await turns(1)
    assert.isUndefined(commits[0].rows?.[0].row.order)
    assert.deepEqual(commits[0].stamps, [{ seq: 0, order: 3 }])
  })
})
