/*
 * Summaries and pages of fans over a timeline that is at hand.
 */
import { test } from '@japa/runner'
import { pageFan, summarizeFan, summarizeTimeline } from '../../src/insight/fans.ts'
import { childIdsOf } from '../../src/insight/lineage.ts'
import { childRow, failedStep, foldRow, stepRow, T0 } from './rows.ts'

const group = 'all:1'
const fan = (size: number, from = 1) =>
  Array.from({ length: size }, (_, i) => stepRow(from + i, { parallelGroup: `all:${from}` }))

test.group('Summaries of fans', () => {
  test('a fan of steps is counted by status, with its times and failures', ({ assert }) => {
    const rows = [
      stepRow(3, { parallelGroup: group, status: 'pending' }),
      failedStep(2, { parallelGroup: group }),
      stepRow(1, { parallelGroup: group }),
    ]
    assert.deepEqual(summarizeFan(group, rows), {
      group,
      label: 'charge',
      firstSeq: 1,
      lastSeq: 3,
      size: 3,
      failFast: false,
      counts: { pending: 1, running: 0, completed: 1, failed: 1 },
      failures: [{ seq: 2, id: 'r:2', error: 'no 2', code: 'refused' }],
      startedAt: T0 + 1,
    })
  })

  test('a fan ends when its last member did, and not before', ({ assert }) => {
    assert.equal(summarizeFan(group, fan(3)).finishedAt, T0 + 203)
    const open = [...fan(3), stepRow(4, { parallelGroup: group, status: 'running' })]
    assert.notProperty(summarizeFan(group, open), 'finishedAt')
    const waves = 'all:1:n9'
    const started = fan(3).map((row) => ({ ...row, parallelGroup: waves }))
    assert.containsSubset(summarizeFan(waves, started), { total: 9, notStarted: 6 })
    assert.notProperty(summarizeFan(waves, started), 'finishedAt')
    assert.equal(summarizeFan('all:1:n3', started).finishedAt, T0 + 203)
  })

  test('the tag tells total and mode', ({ assert }) => {
    const told = (tag: string) => {
      const { total, notStarted, failFast } = summarizeFan(tag, fan(2))
      return [total, notStarted, failFast]
    }
    assert.deepEqual(told('all:1'), [undefined, undefined, false])
    assert.deepEqual(told('all:1:ff'), [undefined, undefined, true])
    assert.deepEqual(told('all:1:n5'), [5, 3, false])
    assert.deepEqual(told('all:1:n5:ff'), [5, 3, true])
  })

  test('a child that ended with a failure counts as failed, by its run id', ({ assert }) => {
    const rows = [
      childRow(1, 'r.all.1.0', { ok: true, value: 1 }),
      childRow(2, 'r.all.1.1', { ok: false, error: 'no', code: 'x' }),
      childRow(3, 'r.all.1.2', { ok: false, error: 'why' }),
      childRow(4, 'r.all.1.3'),
    ]
    assert.containsSubset(summarizeFan(group, rows), {
      label: 'r.all.1',
      counts: { pending: 0, running: 1, completed: 1, failed: 2 },
      failures: [
        { seq: 2, id: 'r.all.1.1', error: 'no', code: 'x' },
        { seq: 3, id: 'r.all.1.2', error: 'why' },
      ],
    })
  })

  test('a step whose output looks like a failed child is completed', ({ assert }) => {
    const rows = [stepRow(1, { output: { ok: false, error: 'mine' } })]
    assert.equal(summarizeFan(group, rows).counts.completed, 1)
  })

  test('a folded wave counts for its members', ({ assert }) => {
    const rows = [foldRow(1, 0, ['a', 'b', null]), childRow(4, 'r.all.1.3')]
    assert.containsSubset(summarizeFan(group, rows), {
      label: 'r.all.1',
      firstSeq: 1,
      lastSeq: 4,
      size: 4,
      counts: { completed: 3, running: 1 },
    })
    assert.equal(summarizeFan(group, [rows[0]]).lastSeq, 3)
  })

  test('at most 20 failures are listed, the first by position', ({ assert }) => {
    const rows = Array.from({ length: 30 }, (_, i) => failedStep(30 - i))
    const { failures, counts } = summarizeFan(group, rows)
    assert.deepEqual(
      failures.map(({ seq }) => seq),
      Array.from({ length: 20 }, (_, i) => i + 1)
    )
    assert.equal(counts.failed, 30)
  })
})

test.group('Summaries of timelines', () => {
  const rows = [
    stepRow(0),
    ...fan(3, 1),
    stepRow(4),
    ...fan(2, 5),
    stepRow(-1, { name: 'compensate:a' }),
  ]

  test('fans with more members than the limit leave, everything else stays in order', ({
    assert,
  }) => {
    const { timeline, fans } = summarizeTimeline(rows, 2)
    assert.deepEqual(
      timeline.map((row) => row.seq),
      [-1, 0, 4, 5, 6]
    )
    assert.deepEqual(
      fans.map((one) => [one.group, one.size]),
      [['all:1', 3]]
    )
    assert.lengthOf(summarizeTimeline(rows, 3).fans, 0)
    assert.lengthOf(summarizeTimeline(rows, 1).fans, 2)
  })

  test('no usable limit summarizes nothing', ({ assert }) => {
    for (const over of [0, -1, Number.NaN, undefined]) {
      const { timeline, fans } = summarizeTimeline(rows, over)
      assert.lengthOf(timeline, rows.length)
      assert.deepEqual(fans, [])
    }
  })

  test('a folded wave is as wide as its members are many', ({ assert }) => {
    const folded = [foldRow(1, 0, [1, 2, 3]), stepRow(4)]
    assert.deepEqual(
      summarizeTimeline(folded, 2).timeline.map((row) => row.seq),
      [4]
    )
    assert.lengthOf(summarizeTimeline(folded, 3).timeline, 2)
  })

  test('what is given is not changed', ({ assert }) => {
    const given = [stepRow(2), stepRow(1)]
    summarizeTimeline(given, 1)
    assert.deepEqual(
      given.map((row) => row.seq),
      [2, 1]
    )
  })
})

test.group('Pages of fans', () => {
  const seqs = (items: { seq: number }[]) => items.map(({ seq }) => seq)

  test('members come by position; offset and limit are clamped to whole numbers', ({ assert }) => {
    const rows = fan(600)
    const page = (query: object) => seqs(pageFan(rows, group, query).items)
    assert.deepEqual(page({ offset: 2, limit: 3 }), [3, 4, 5])
    assert.deepEqual(page({ offset: 1.9, limit: 2.9 }), [2, 3])
    assert.deepEqual(page({ offset: -7, limit: 0 }), [1])
    assert.deepEqual(page({ offset: Number.NaN, limit: -3 }), [1])
    assert.lengthOf(page({}), 100)
    assert.lengthOf(page({ limit: Number.NaN }), 100)
    assert.lengthOf(page({ limit: 9999 }), 500)
    assert.deepEqual(page({ offset: 600 }), [])
    assert.equal(pageFan(rows, group, { offset: 598 }).total, 600)
  })

  test('failures are filtered before the page is cut', ({ assert }) => {
    const rows = [
      ...fan(3),
      failedStep(4, { parallelGroup: group }),
      childRow(5, 'c', { ok: false, error: 'no' }, { parallelGroup: group }),
      failedStep(6, { parallelGroup: 'all:6' }),
    ]
    const page = pageFan(rows, group, { failedOnly: true, offset: 1, limit: 5 })
    assert.deepEqual([seqs(page.items), page.total], [[5], 2])
  })

  test('a folded wave is paged as the members it stands for', ({ assert }) => {
    const rows = [foldRow(1, 0, ['a', null, 'c']), childRow(4, 'r.all.1.3', undefined, {})]
    const { items, total } = pageFan(rows, group, { offset: 1, limit: 1 })
    assert.equal(total, 3)
    assert.containsSubset(items, [
      {
        seq: 2,
        name: 'signal:child:r.all.1.1',
        stepId: 'r:2',
        status: 'completed',
        output: { ok: true, value: null },
      },
    ])
  })

  test('an unknown group is an empty page', ({ assert }) => {
    assert.deepEqual(pageFan(fan(2), 'all:9'), { items: [], total: 0 })
  })
})

test.group('Children of a timeline', () => {
  test('awaited, started and folded ones, each once, in the order of the rows', ({ assert }) => {
    const rows = [
      stepRow(0),
      childRow(1, 'a', { ok: true, value: 1 }),
      stepRow(2, { name: 'spawn:b', kind: 'local', output: 'b' }),
      childRow(3, 'b'),
      foldRow(4, 0, [1, 2]),
    ]
    assert.deepEqual(childIdsOf(rows), ['a', 'b', 'r.all.4.0', 'r.all.4.1'])
  })

  test('a child that is merely called like a folded wave is a child', ({ assert }) => {
    const rows = [
      childRow(0, 'fold:x:0-1', { ok: true, value: { values: [1] } }),
      childRow(1, 'fold:y'),
    ]
    assert.deepEqual(childIdsOf(rows), ['fold:x:0-1', 'fold:y'])
  })
})
