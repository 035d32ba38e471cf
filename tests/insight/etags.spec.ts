/*
 * ETags of run detail: what moves them, and how they are compared.
 */
import { test } from '@japa/runner'
import { etagMatches, fanPageEtag, runDetailEtag } from '../../src/insight/etags.ts'
import { aggregateRows, rowTimes } from '../../src/store/ports/checkpoint_rules.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import { failedStep, stepRow, T0 } from './rows.ts'

const run: WorkflowRun = {
  id: 'r',
  workflow: 'w',
  workflowVersion: '1',
  status: 'suspended',
  input: null,
  createdAt: new Date(T0),
  updatedAt: new Date(T0),
}
const stats = (...rows: StepCheckpoint[]) => aggregateRows(rows.map(rowTimes))
const group = 'all:0'
const open = stepRow(1, { status: 'pending', parallelGroup: group })

test.group('ETags', () => {
  test('a tag is weak, quoted, and the same for the same state', ({ assert }) => {
    const tag = runDetailEtag(run, stats(open), 50)
    assert.match(tag, /^W\/"[\w-]+"$/)
    assert.equal(runDetailEtag({ ...run }, stats({ ...open }), 50), tag)
  })

  test('whatever a reader would see moves the tag of a run', ({ assert }) => {
    const tags = [
      runDetailEtag(run, stats(open), 50),
      runDetailEtag(run, stats(open), 51),
      runDetailEtag({ ...run, status: 'running' }, stats(open), 50),
      runDetailEtag({ ...run, updatedAt: new Date(T0 + 1) }, stats(open), 50),
      runDetailEtag({ ...run, cancelRequestedAt: 5 }, stats(open), 50),
      runDetailEtag({ ...run, searchAttributes: { a: 1 } }, stats(open), 50),
      runDetailEtag(run, stats(open, stepRow(2)), 50),
      runDetailEtag(run, stats(stepRow(1, { parallelGroup: group })), 50),
      runDetailEtag(run, stats(failedStep(1, { parallelGroup: group })), 50),
      runDetailEtag(run, stats({ ...open, attempts: 2 }), 50),
      runDetailEtag(run, stats({ ...open, lastHeartbeatAt: new Date(T0) }), 50),
      runDetailEtag(run, stats({ ...open, lastHeartbeatAt: new Date(T0 + 1) }), 50),
    ]
    assert.equal(new Set(tags).size, tags.length)
  })

  test('a page has a tag of its own, which only its own fan moves', ({ assert }) => {
    const tag = fanPageEtag(run, stats(open), group)
    assert.equal(fanPageEtag(run, stats(open, stepRow(9)), group, { offset: 0, limit: 100 }), tag)
    const others = [
      fanPageEtag(run, stats(open), group, { offset: 1 }),
      fanPageEtag(run, stats(open), group, { limit: 5 }),
      fanPageEtag(run, stats(open), group, { failedOnly: true }),
      fanPageEtag(run, stats({ ...open, lastHeartbeatAt: new Date(T0) }), group),
      fanPageEtag({ ...run, id: 'other' }, stats(open), group),
    ]
    assert.equal(new Set([tag, ...others]).size, 6)
  })

  test('comparison is weak, over a list, and a star matches anything', ({ assert }) => {
    for (const header of ['W/"a"', '"a"', '"x", W/"a"', ' "x" ,"a" ', '*', '"x", *']) {
      assert.isTrue(etagMatches(header, 'W/"a"'), header)
      assert.isTrue(etagMatches(header, '"a"'), header)
    }
    for (const header of [undefined, '', '"b"', 'a', 'W/"A"', '"a', ',']) {
      assert.isFalse(etagMatches(header, 'W/"a"'), String(header))
    }
  })
})
