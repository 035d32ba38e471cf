/*
 * Contract: counts, facets, bulk deletes, and the aggregates of a timeline. The answers are compared with
 * ones computed here from full listings.
 */
import assert from 'node:assert/strict'
import type {
  CheckpointQuery,
  CheckpointStats,
  RunFacetRow,
  RunFilter,
} from '../../../types/query.ts'
import type { StepCheckpoint } from '../../../types/checkpoint.ts'
import {
  at,
  byText,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  pendingRow,
  range,
  same,
  saveRows,
  seqs,
  sizeOf,
  T0,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const WIDE = 1200

async function createMixedRuns(store: StoreUnderTest): Promise<void> {
  await createRuns(
    store,
    makeRun('a', { status: 'failed', origin: '@x/a', tags: ['t', 'u'], namespace: 'acme' }),
    makeRun('b', { status: 'failed', origin: '@x/a', tags: ['t', 'durable:singleton:tracked'] }),
    makeRun('c', { status: 'failed', workflow: 'other', searchAttributes: { size: 3 } }),
    makeRun('d', { status: 'completed', workflowVersion: '2', createdAt: at(9), tags: ['t', 't'] }),
    makeRun('e', { status: 'suspended', wakeAt: T0, searchAttributes: { size: 9, vip: true } })
  )
}

const FILTERS: RunFilter[] = [
  {},
  { status: 'failed' },
  { statuses: ['failed', 'completed'] },
  { statuses: [] },
  { workflow: 'other' },
  { namespace: 'acme' },
  { origin: '@x/a' },
  { origin: null },
  { createdAfter: T0 },
  { wakeBefore: T0 },
  { attributes: [{ key: 'size', op: 'gt', value: 2 }], status: 'failed' },
]

const cellsOf = (rows: RunFacetRow[]) =>
  rows.map(({ status, origin, count }) => `${status} ${origin} ${count}`).sort()

const RUNS: StoreCase[] = [
  {
    name: 'a count equals the length of the listing, for every filter',
    requires: ['countRuns'],
    kit: true,
    async run(store) {
      await createMixedRuns(store)
      for (const filter of FILTERS) {
        const listed = await store.listRuns(filter)
        assert.equal(await store.countRuns(filter), listed.length, JSON.stringify(filter))
      }
    },
  },
  {
    name: 'a count by tag equals the length of the listing',
    requires: ['countRuns'],
    kit: true,
    needs: 'tagFilter',
    async run(store) {
      await createMixedRuns(store)
      assert.equal(await store.countRuns({ tag: 't' }), 3)
      assert.equal(await store.countRuns({ tag: 'u', status: 'failed' }), 1)
    },
  },
  {
    name: 'facets are cells of status and origin, one for no origin, none empty',
    requires: ['runFacets'],
    kit: true,
    async run(store) {
      await createMixedRuns(store)
      const cells = cellsOf(await store.runFacets({}))
      assert.deepEqual(cells, [
        'completed null 1',
        'failed @x/a 2',
        'failed null 1',
        'suspended null 1',
      ])
    },
  },
  {
    name: 'facets obey the predicates and ignore paging',
    requires: ['runFacets'],
    kit: true,
    async run(store) {
      await createMixedRuns(store)
      same(await store.runFacets({ namespace: 'acme' }), [
        { status: 'failed', origin: '@x/a', count: 1 },
      ])
      same(await store.runFacets({ workflow: 'nobody' }), [])
      const paged = { workflow: 'orders', page: 1, size: 1 }
      const rows = await store.runFacets(paged)
      assert.equal(
        rows.reduce((sum, row) => sum + row.count, 0),
        4
      )
    },
  },
  {
    name: 'value facets count the distinct values of each axis, highest first, then by value',
    requires: ['runValueFacets'],
    async run(store) {
      await createMixedRuns(store)
      same(await store.runValueFacets('workflow', {}), [
        { value: 'orders', count: 4 },
        { value: 'other', count: 1 },
      ])
      same(await store.runValueFacets('tag', {}), [
        { value: 't', count: 3 },
        { value: 'u', count: 1 },
      ])
      same(await store.runValueFacets('namespace', {}), [
        { value: 'default', count: 4 },
        { value: 'acme', count: 1 },
      ])
      same(await store.runValueFacets('origin', {}), [{ value: '@x/a', count: 2 }])
      same(await store.runValueFacets('workflowVersion', {}), [
        { value: '1', count: 4 },
        { value: '2', count: 1 },
      ])
      same(await store.runValueFacets('attributeKey', {}), [
        { value: 'size', count: 2 },
        { value: 'vip', count: 1 },
      ])
    },
  },
  {
    name: 'value facets obey predicates, search and limit',
    requires: ['runValueFacets'],
    async run(store) {
      await createMixedRuns(store)
      same(await store.runValueFacets('tag', { namespace: 'acme' }), [
        { value: 't', count: 1 },
        { value: 'u', count: 1 },
      ])
      same(await store.runValueFacets('workflow', {}, { limit: 1 }), [
        { value: 'orders', count: 4 },
      ])
      same(await store.runValueFacets('workflow', {}, { search: 'the' }), [
        { value: 'other', count: 1 },
      ])
      same(await store.runValueFacets('workflow', {}, { search: 'xyz' }), [])
    },
  },
  {
    name: 'deleting many runs removes what belongs to them and counts them',
    requires: ['deleteRuns'],
    kit: true,
    async run(store) {
      await createRuns(
        store,
        makeRun('a', { searchAttributes: { region: 'eu' } }),
        makeRun('b'),
        makeRun('keep', { searchAttributes: { region: 'eu' } })
      )
      await saveRows(store, makeRow('a', 0), makeRow('b', 0), makeRow('keep', 0))
      await store.putSignalWaiter(makeWaiter('ta', 'a', 1))
      await store.putSignalWaiter(makeWaiter('tk', 'keep', 1))
      assert.equal(await store.deleteRuns(['b', 'a']), 2)
      assert.deepEqual([await store.getRun('a'), await store.getRun('b')], [null, null])
      assert.deepEqual(await store.listCheckpoints('a'), [])
      assert.equal(sizeOf(await store.listCheckpoints('keep')), 1)
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['tk'])
      await store.createRun(makeRun('a'))
      const attributes = [{ key: 'region', op: 'eq', value: 'eu' } as const]
      assert.deepEqual(ids(await store.listRuns({ attributes })), ['keep'])
    },
  },
  {
    name: 'unknown and repeated ids count once or not at all',
    requires: ['deleteRuns'],
    kit: true,
    async run(store) {
      await createRuns(store, makeRun('a'), makeRun('b'))
      assert.equal(await store.deleteRuns(['a', 'nobody', 'a']), 1)
      assert.equal(await store.deleteRuns([]), 0)
      assert.ok(await store.getRun('b'))
    },
  },
  {
    name: 'more runs than fit one statement are deleted',
    requires: ['deleteRuns'],
    kit: true,
    async run(store) {
      const many = range(1, WIDE).map((n) => `r${n}`)
      await createRuns(store, ...many.map((id) => makeRun(id)), makeRun('keep'))
      assert.equal(await store.deleteRuns(many), WIDE)
      assert.deepEqual(ids(await store.listRuns({})), ['keep'])
    },
  },
]

const TIMELINE: StepCheckpoint[] = [
  makeRow('r', -1, { name: 'compensate:a' }),
  makeRow('r', 0, { name: 'a', attempts: 2, startedAt: at(10), finishedAt: at(15) }),
  makeRow('r', 1, { name: 'b', parallelGroup: 'all:1', startedAt: at(20), finishedAt: at(40) }),
  makeRow('r', 2, { name: 'b', parallelGroup: 'all:1', status: 'failed', finishedAt: at(60) }),
  pendingRow('r', 3, { name: 'b', parallelGroup: 'all:1', finishedAt: at(99) }),
  makeRow('r', 4, { name: 'c_1', parallelGroup: 'all:4', lastHeartbeatAt: at(70) }),
  makeRow('r', 5, { name: 'cX1', parallelGroup: 'all:4', status: 'running' }),
  makeRow('r', 6, { name: 'd' }),
]

const saveTimeline = (store: StoreUnderTest) =>
  saveRows(store, ...TIMELINE, makeRow('r2', 0, { parallelGroup: 'all:1' }))

/** The aggregates, computed the slow way. */
function expectedStats(rows: StepCheckpoint[]): CheckpointStats {
  const names = [...new Set(rows.map((row) => row.parallelGroup ?? null))]
  const max = (values: number[]) => (values.length > 0 ? Math.max(...values) : undefined)
  return {
    total: rows.length,
    maxSeq: max(seqs(rows)),
    groups: names.map((group) => {
      const own = rows.filter((row) => (row.parallelGroup ?? null) === group)
      const settled = own.filter((row) => row.status === 'completed' || row.status === 'failed')
      const counts: Record<string, number> = {}
      for (const row of own) counts[row.status] = (counts[row.status] ?? 0) + 1
      return {
        group,
        size: own.length,
        firstSeq: Math.min(...seqs(own)),
        lastSeq: Math.max(...seqs(own)),
        counts,
        attempts: own.reduce((sum, row) => sum + row.attempts, 0),
        enqueuedAt: Math.min(...own.map((row) => row.enqueuedAt.getTime())),
        startedAt: Math.min(...own.map((row) => row.startedAt.getTime())),
        finishedAt: max(settled.map((row) => row.finishedAt.getTime())),
        lastHeartbeatAt: max(own.flatMap((row) => row.lastHeartbeatAt?.getTime() ?? [])),
      }
    }),
  }
}

const byGroup = (stats: CheckpointStats): CheckpointStats => ({
  ...stats,
  groups: [...stats.groups].sort((a, b) => byText(a.group ?? '', b.group ?? '')),
})

/** Each query with the positions it selects. */
const QUERIES: [CheckpointQuery, number[]][] = [
  [{}, [-1, 0, 1, 2, 3, 4, 5, 6]],
  [{ fromSeq: 1, toSeq: 3 }, [1, 2, 3]],
  [{ group: 'all:1' }, [1, 2, 3]],
  [{ group: 'all:9' }, []],
  [{ excludeGroups: ['all:1'] }, [-1, 0, 4, 5, 6]],
  [{ excludeGroups: ['all:1', 'all:4'] }, [-1, 0, 6]],
  [{ excludeGroups: [] }, [-1, 0, 1, 2, 3, 4, 5, 6]],
  [{ statuses: ['failed', 'pending'] }, [2, 3]],
  [{ statuses: [] }, []],
  [{ namePrefixes: ['c_', 'd'] }, [4, 6]],
  [{ namePrefixes: [] }, []],
  [{ seqs: [5, 0, 77] }, [0, 5]],
  [{ seqs: [] }, []],
  [{ limit: 2 }, [-1, 0]],
  [{ limit: 0 }, []],
  [{ offset: 6 }, [5, 6]],
  [{ offset: 2, limit: 3 }, [1, 2, 3]],
  [{ descending: true, limit: 3 }, [6, 5, 4]],
  [{ descending: true, offset: 1, limit: 2, excludeGroups: ['all:4'] }, [3, 2]],
  [{ group: 'all:1', statuses: ['completed', 'failed'], descending: true }, [2, 1]],
  [{ fromSeq: 2, excludeGroups: ['all:1'], statuses: ['running', 'completed'] }, [4, 5, 6]],
]

const TIMELINES: StoreCase[] = [
  {
    name: 'timeline aggregates equal those of a full read',
    requires: ['checkpointStats', 'queryCheckpoints'],
    kit: true,
    async run(store) {
      await saveTimeline(store)
      same(byGroup(await store.checkpointStats('r')), byGroup(expectedStats(TIMELINE)))
      same(await store.checkpointStats('nobody'), { total: 0, groups: [] })
    },
  },
  {
    name: 'a timeline query equals the slice of a full read, for every filter',
    requires: ['checkpointStats', 'queryCheckpoints'],
    kit: true,
    async run(store) {
      await saveTimeline(store)
      for (const [query, expected] of QUERIES) {
        const rows = await store.queryCheckpoints('r', query)
        same(
          rows,
          expected.map((seq) => TIMELINE.find((row) => row.seq === seq)!)
        )
      }
    },
  },
  {
    name: 'excluding groups keeps the ungrouped rows',
    requires: ['checkpointStats', 'queryCheckpoints'],
    kit: true,
    async run(store) {
      await saveTimeline(store)
      const rows = await store.queryCheckpoints('r', { excludeGroups: ['all:1', 'all:4'] })
      assert.deepEqual(seqs(rows), [-1, 0, 6])
    },
  },
  {
    name: 'any save, settle or beat moves the aggregates',
    requires: ['checkpointStats', 'queryCheckpoints', 'saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      await saveTimeline(store)
      const seen = new Set<string>()
      const look = async () => seen.add(JSON.stringify(byGroup(await store.checkpointStats('r'))))
      await look()
      await store.saveCheckpoint(pendingRow('r', 7))
      await look()
      await store.saveCheckpoint(pendingRow('r', 7, { attempts: 2 }))
      await look()
      await store.saveCheckpointIfPending(makeRow('r', 7, { attempts: 2, finishedAt: at(500) }))
      await look()
      assert.equal(seen.size, 4)
    },
  },
  {
    name: 'a beat moves the aggregates',
    requires: ['checkpointStats', 'queryCheckpoints', 'recordStepHeartbeat'],
    async run(store) {
      await saveTimeline(store)
      const before = JSON.stringify(await store.checkpointStats('r'))
      await store.recordStepHeartbeat('r', 3, at(400))
      assert.notEqual(JSON.stringify(await store.checkpointStats('r')), before)
    },
  },
]

export const AGGREGATE_CASES: StoreCase[] = [...RUNS, ...TIMELINES]
