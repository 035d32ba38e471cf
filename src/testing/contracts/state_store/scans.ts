/*
 * Contract: the scans that feed dispatch, timers and recovery.
 */
import assert from 'node:assert/strict'
import type { WorkflowRun } from '../../../types/run.ts'
import { at, createRuns, ids, makeRun, matches, sizeOf, T0, type StoreCase } from './support.ts'

const parked = (id: string, wakeAt: number | undefined, fields: Partial<WorkflowRun> = {}) =>
  makeRun(id, { status: 'suspended', wakeAt, ...fields })

const cancelled = (
  id: string,
  cancelRequestedAt: number | undefined,
  fields: Partial<WorkflowRun> = {}
) => makeRun(id, { status: 'cancelled', cancelRequestedAt, ...fields })

const ALL_STATUSES = [
  'pending',
  'running',
  'suspended',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'dead',
] as const

export const SCAN_CASES: StoreCase[] = [
  {
    name: 'incomplete runs are exactly the running ones, leased or not',
    async run(store) {
      await createRuns(
        store,
        ...ALL_STATUSES.map((status) => makeRun(status, { status })),
        makeRun('leased', { status: 'running', lockedBy: 'x', lockedUntil: T0 + 999_999 })
      )
      assert.deepEqual(ids(await store.listIncompleteRuns()).sort(), ['leased', 'running'])
    },
  },
  {
    name: 'pending runs come oldest first, equal times by id, capped',
    async run(store) {
      await createRuns(
        store,
        makeRun('d', { createdAt: at(5) }),
        makeRun('c', { createdAt: at(2) }),
        makeRun('B', { createdAt: at(2) }),
        makeRun('b', { createdAt: at(2) }),
        makeRun('a', { createdAt: at(9) }),
        makeRun('x', { status: 'running', createdAt: at(0) })
      )
      assert.deepEqual(ids(await store.listPendingRuns(99)), ['B', 'b', 'c', 'd', 'a'])
      assert.deepEqual(ids(await store.listPendingRuns(2)), ['B', 'b'])
      assert.deepEqual(await store.listPendingRuns(0), [])
    },
  },
  {
    name: 'a namespace filters all three scans; none spans all',
    async run(store) {
      for (const namespace of ['acme', 'globex', undefined]) {
        const name = namespace ?? 'default'
        await createRuns(
          store,
          makeRun(`${name}-p`, { namespace }),
          makeRun(`${name}-r`, { namespace, status: 'running' }),
          parked(`${name}-s`, T0, { namespace })
        )
      }
      const scans = async (namespace?: string) => [
        ids(await store.listPendingRuns(9, namespace)).sort(),
        ids(await store.listIncompleteRuns(namespace)).sort(),
        ids(await store.listDueTimers(T0, namespace)).sort(),
      ]
      for (const name of ['acme', 'globex', 'default']) {
        assert.deepEqual(await scans(name), [[`${name}-p`], [`${name}-r`], [`${name}-s`]])
      }
      assert.deepEqual(await scans('nobody'), [[], [], []])
      const all = await scans()
      assert.deepEqual(
        all.map((found) => found.length),
        [3, 3, 3]
      )
    },
  },
  {
    name: 'older runs of another namespace do not consume the limit',
    async run(store) {
      for (const index of [0, 1, 2, 3]) {
        await createRuns(
          store,
          makeRun(`old-${index}`, { namespace: 'globex' }),
          parked(`due-${index}`, T0 - 100 + index, { namespace: 'globex' })
        )
      }
      await createRuns(
        store,
        makeRun('mine', { namespace: 'acme', createdAt: at(50) }),
        parked('my-timer', T0, { namespace: 'acme' })
      )
      assert.deepEqual(ids(await store.listPendingRuns(1, 'acme')), ['mine'])
      assert.deepEqual(ids(await store.listDueTimers(T0, 'acme', 1)), ['my-timer'])
    },
  },
  {
    name: 'a timer is due at its time, not before',
    async run(store) {
      await createRuns(
        store,
        parked('now', T0),
        parked('later', T0 + 1),
        parked('never', undefined)
      )
      assert.deepEqual(ids(await store.listDueTimers(T0)), ['now'])
      assert.deepEqual(ids(await store.listDueTimers(T0 - 1)), [])
    },
  },
  {
    name: 'due timers come most overdue first, with and without a limit',
    async run(store) {
      await createRuns(
        store,
        parked('c', T0 - 10),
        parked('a', T0 - 30),
        parked('d', T0 - 5),
        parked('b', T0 - 20)
      )
      assert.deepEqual(ids(await store.listDueTimers(T0)), ['a', 'b', 'c', 'd'])
      const capped = ids(await store.listDueTimers(T0, undefined, 2))
      assert.deepEqual(capped.slice(0, 2), ['a', 'b'])
    },
  },
  {
    name: 'a wake request makes a run due whatever its deadline, in its place among the others',
    async run(store) {
      await createRuns(
        store,
        parked('overdue', T0 - 30),
        parked('asked', T0 + 99_999, { wakeRequestedAt: T0 - 20 }),
        parked('asked-without-deadline', undefined, { wakeRequestedAt: T0 - 10 }),
        parked('both', T0 - 25, { wakeRequestedAt: T0 - 1 }),
        parked('sleeping', T0 + 99_999)
      )
      assert.deepEqual(ids(await store.listDueTimers(T0)), [
        'overdue',
        'both',
        'asked',
        'asked-without-deadline',
      ])
    },
  },
  {
    name: 'a run that is not suspended is never a due timer',
    async run(store) {
      await createRuns(
        store,
        ...ALL_STATUSES.map((status) =>
          makeRun(status, { status, wakeAt: T0 - 1, wakeRequestedAt: T0 - 1 })
        )
      )
      assert.deepEqual(ids(await store.listDueTimers(T0)), ['suspended'])
    },
  },
  {
    name: 'a run is found by the scan of its present status only',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.updateRun('r', { status: 'suspended', wakeAt: T0 })
      assert.deepEqual(ids(await store.listPendingRuns(9)), [])
      assert.deepEqual(ids(await store.listDueTimers(T0)), ['r'])
      await store.updateRun('r', { wakeAt: T0 + 10 })
      assert.deepEqual(ids(await store.listDueTimers(T0)), [])
      await store.updateRun('r', { wakeRequestedAt: T0 })
      assert.deepEqual(ids(await store.listDueTimers(T0)), ['r'])
      await store.updateRun('r', { status: 'running', wakeRequestedAt: undefined })
      assert.deepEqual(ids(await store.listDueTimers(T0 + 10)), [])
      await store.deleteRun('r')
      assert.deepEqual(ids(await store.listIncompleteRuns()), [])
    },
  },
  {
    name: 'orphaned runs are running without a live lease, oldest lease first, capped',
    requires: ['listOrphanedRuns'],
    async run(store) {
      const running = (id: string, lockedUntil?: number) =>
        makeRun(id, { status: 'running', lockedBy: lockedUntil ? 'x' : undefined, lockedUntil })
      await createRuns(
        store,
        running('live', T0 + 1),
        running('just-expired', T0),
        running('expired', T0 - 50),
        running('unleased'),
        makeRun('suspended', { status: 'suspended' })
      )
      const found = ids(await store.listOrphanedRuns(T0))
      assert.deepEqual([...found].sort(), ['expired', 'just-expired', 'unleased'])
      assert.ok(found.indexOf('expired') < found.indexOf('just-expired'))
      assert.deepEqual(ids(await store.listOrphanedRuns(T0, undefined, 2)), found.slice(0, 2))
    },
  },
  {
    name: 'orphaned runs respect the namespace before the limit',
    requires: ['listOrphanedRuns'],
    async run(store) {
      await createRuns(
        store,
        makeRun('theirs', { status: 'running', namespace: 'globex' }),
        makeRun('mine', {
          status: 'running',
          namespace: 'acme',
          lockedBy: 'x',
          lockedUntil: T0 - 1,
        })
      )
      assert.deepEqual(ids(await store.listOrphanedRuns(T0, 'acme', 1)), ['mine'])
      assert.equal(sizeOf(await store.listOrphanedRuns(T0)), 2)
    },
  },
  {
    name: 'unfinished cancels are cancelled runs that carry the mark, oldest mark first, capped',
    requires: ['listUnfinishedCancels'],
    async run(store) {
      await createRuns(
        store,
        ...ALL_STATUSES.map((status) => makeRun(status, { status, cancelRequestedAt: T0 + 5 })),
        ...['b', 'B', 'a'].map((id) => cancelled(id, T0 + 7)),
        cancelled('first', T0 - 3, { createdAt: at(99), cancelCompensates: true }),
        cancelled('told', undefined)
      )
      const listed = async (limit?: number) =>
        ids(await store.listUnfinishedCancels(undefined, limit))
      assert.deepEqual(await listed(), ['first', 'cancelled', 'B', 'a', 'b'])
      assert.deepEqual(await listed(2), ['first', 'cancelled'])
      assert.deepEqual(await listed(0), [])
      const [run] = await store.listUnfinishedCancels()
      matches(run, cancelled('first', T0 - 3, { createdAt: at(99), cancelCompensates: true }))
      await store.updateRunIf('first', ['cancelled'], { cancelRequestedAt: undefined })
      await store.updateRun('told', { cancelRequestedAt: T0 })
      await store.deleteRun('b')
      assert.deepEqual(await listed(), ['told', 'cancelled', 'B', 'a'])
    },
  },
  {
    name: 'unfinished cancels respect the namespace before the limit',
    requires: ['listUnfinishedCancels'],
    async run(store) {
      await createRuns(
        store,
        cancelled('theirs', T0, { namespace: 'globex' }),
        cancelled('mine', T0 + 1, { namespace: 'acme' }),
        cancelled('ours', T0 + 2)
      )
      assert.deepEqual(ids(await store.listUnfinishedCancels('acme', 1)), ['mine'])
      assert.deepEqual(ids(await store.listUnfinishedCancels('default')), ['ours'])
      assert.deepEqual(await store.listUnfinishedCancels('nobody'), [])
      assert.equal(sizeOf(await store.listUnfinishedCancels()), 3)
    },
  },
  {
    name: 'overdue runs are live ones at or past their deadline, earliest deadline first, capped',
    requires: ['listOverdueRuns'],
    async run(store) {
      await createRuns(
        store,
        ...ALL_STATUSES.map((status) => makeRun(status, { status, deadlineAt: T0 - 5 })),
        ...['b', 'B', 'a'].map((id) => parked(id, undefined, { deadlineAt: T0 })),
        makeRun('first', { deadlineAt: T0 - 99, createdAt: at(99) }),
        makeRun('early', { deadlineAt: T0 + 1 }),
        makeRun('timeless'),
        parked('undone', T0, { deadlineAt: T0 - 7, cancelRequestedAt: T0, cancelCompensates: true })
      )
      const listed = async (limit?: number) =>
        ids(await store.listOverdueRuns(T0, undefined, limit))
      const live = ['blocked', 'pending', 'running', 'suspended']
      assert.deepEqual(await listed(), ['first', ...live, 'B', 'a', 'b'])
      assert.deepEqual(await listed(2), ['first', 'blocked'])
      assert.deepEqual(await listed(0), [])
      const [run] = await store.listOverdueRuns(T0)
      matches(run, makeRun('first', { deadlineAt: T0 - 99, createdAt: at(99) }))
      await store.updateRunIf('first', ['pending'], { status: 'cancelled' })
      await store.updateRun('blocked', { deadlineAt: T0 + 1 })
      await store.updateRun('timeless', { deadlineAt: T0 - 50 })
      await store.updateRun('undone', { cancelRequestedAt: undefined })
      await store.deleteRun('pending')
      const rest = ['timeless', 'undone', 'running', 'suspended', 'B', 'a', 'b']
      assert.deepEqual(await listed(), rest)
    },
  },
  {
    name: 'overdue runs respect the namespace before the limit',
    requires: ['listOverdueRuns'],
    async run(store) {
      await createRuns(
        store,
        makeRun('theirs', { deadlineAt: T0 - 9, namespace: 'globex' }),
        makeRun('mine', { deadlineAt: T0 - 8, namespace: 'acme' }),
        makeRun('ours', { deadlineAt: T0 - 7 })
      )
      assert.deepEqual(ids(await store.listOverdueRuns(T0, 'acme', 1)), ['mine'])
      assert.deepEqual(ids(await store.listOverdueRuns(T0, 'default')), ['ours'])
      assert.deepEqual(await store.listOverdueRuns(T0, 'nobody'), [])
      assert.equal(sizeOf(await store.listOverdueRuns(T0)), 3)
    },
  },
]
