/*
 * Contract: run listings, their predicates, their order and their pages.
 */
import assert from 'node:assert/strict'
import { runPageWindow, type RunQuery } from '../../../types/query.ts'
import {
  at,
  createRuns,
  ids,
  makeRun,
  matches,
  range,
  sizeOf,
  T0,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

/** Ids that a query lists, in pieces of two, each continued by the cursor of the one before. */
async function walk(store: StoreUnderTest, query: RunQuery): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const runs = await store.listRuns({ ...query, size: 2 })
    if (runs.length === 0) return found
    found.push(...ids(runs))
    const last = runs[runs.length - 1]
    query = { ...query, before: { createdAt: last.createdAt.getTime(), id: last.id } }
  }
}

/** Ids that a query selects, sorted. */
const select = async (store: StoreUnderTest, query: RunQuery): Promise<string[]> =>
  ids(await store.listRuns(query)).sort()

const FILTERS: StoreCase[] = [
  {
    name: 'workflow and status filter, alone and together',
    async run(store) {
      await createRuns(
        store,
        makeRun('a', { workflow: 'w', status: 'failed' }),
        makeRun('b', { workflow: 'w' }),
        makeRun('c', { workflow: 'W', status: 'failed' })
      )
      assert.deepEqual(await select(store, { workflow: 'w' }), ['a', 'b'])
      assert.deepEqual(await select(store, { status: 'failed' }), ['a', 'c'])
      assert.deepEqual(await select(store, { workflow: 'w', status: 'failed' }), ['a'])
      assert.deepEqual(await select(store, {}), ['a', 'b', 'c'])
    },
  },
  {
    name: 'statuses match any of, together with status both, and none when empty',
    async run(store) {
      await createRuns(
        store,
        makeRun('a', { status: 'failed' }),
        makeRun('b', { status: 'dead' }),
        makeRun('c', { status: 'running' })
      )
      assert.deepEqual(await select(store, { statuses: ['failed', 'dead'] }), ['a', 'b'])
      assert.deepEqual(await select(store, { statuses: ['failed'], status: 'failed' }), ['a'])
      assert.deepEqual(await select(store, { statuses: ['failed'], status: 'dead' }), [])
      assert.deepEqual(await select(store, { statuses: [] }), [])
    },
  },
  {
    name: 'a tag matches an element exactly, never a part of one',
    needs: 'tagFilter',
    async run(store) {
      await createRuns(
        store,
        makeRun('a', { tags: ['vip', 'eu'] }),
        makeRun('b', { tags: ['vip-2'] }),
        makeRun('c')
      )
      assert.deepEqual(await select(store, { tag: 'vip' }), ['a'])
      assert.deepEqual(await select(store, { tag: 'vi' }), [])
      assert.deepEqual(await select(store, { tag: '' }), [])
      await store.updateRun('a', { tags: ['eu'] })
      assert.deepEqual(await select(store, { tag: 'vip' }), [])
      assert.deepEqual(await select(store, { tag: 'eu' }), ['a'])
    },
  },
  {
    name: 'tags with quotes, wildcards, backslashes and other case stay apart',
    needs: 'tagFilter',
    async run(store) {
      const tags = ['a"b', 'a%b', 'a_b', 'aXb', 'A_B', 'a\\b', 'b', '"b"', 'x","b']
      await createRuns(store, ...tags.map((tag, index) => makeRun(`r${index}`, { tags: [tag] })))
      for (const [index, tag] of tags.entries()) {
        assert.deepEqual(await select(store, { tag }), [`r${index}`], tag)
      }
    },
  },
  {
    name: 'an origin matches exactly; null selects runs without one, together with the rest',
    async run(store) {
      await createRuns(
        store,
        makeRun('a', { origin: '@acme/mail' }),
        makeRun('b', { origin: '@acme/mail2' }),
        makeRun('c'),
        makeRun('d', { workflow: 'other' })
      )
      assert.deepEqual(await select(store, { origin: '@acme/mail' }), ['a'])
      assert.deepEqual(await select(store, { origin: null }), ['c', 'd'])
      assert.deepEqual(await select(store, { origin: null, workflow: 'other' }), ['d'])
      assert.deepEqual(await select(store, { origin: '' }), [])
    },
  },
  {
    name: 'a namespace matches exactly; an empty one is none',
    async run(store) {
      await createRuns(store, makeRun('a', { namespace: 'acme' }), makeRun('b'))
      assert.deepEqual(await select(store, { namespace: 'acme' }), ['a'])
      assert.deepEqual(await select(store, { namespace: 'default' }), ['b'])
      assert.deepEqual(await select(store, { namespace: 'nobody' }), [])
      assert.deepEqual(await select(store, { namespace: '' }), ['a', 'b'])
    },
  },
  {
    name: 'created and updated ranges are strict, wakeBefore includes its bound',
    async run(store) {
      for (const ms of [10, 20, 30]) {
        await store.createRun(
          makeRun(`r${ms}`, { createdAt: at(ms), updatedAt: at(100 + ms), wakeAt: T0 + 200 + ms })
        )
      }
      await store.createRun(makeRun('no-wake', { createdAt: at(50), updatedAt: at(150) }))
      assert.deepEqual(await select(store, { createdBefore: T0 + 20 }), ['r10'])
      assert.deepEqual(await select(store, { createdAfter: T0 + 20, createdBefore: T0 + 50 }), [
        'r30',
      ])
      assert.deepEqual(await select(store, { updatedBefore: T0 + 120 }), ['r10'])
      assert.deepEqual(await select(store, { wakeBefore: T0 + 220 }), ['r10', 'r20'])
      assert.deepEqual(await select(store, { wakeBefore: T0 + 999 }), ['r10', 'r20', 'r30'])
    },
  },
  {
    name: 'updatedAfter is strict, an id prefix literal and its case matters',
    requires: ['commitTurn'],
    async run(store) {
      const names = ['a_1', 'aX1', 'A_1', 'a%1']
      for (const [ms, id] of names.entries())
        await store.createRun(makeRun(id, { updatedAt: at(ms) }))
      assert.deepEqual(await select(store, { updatedAfter: T0 + 1 }), ['A_1', 'a%1'])
      assert.deepEqual(await select(store, { idPrefix: 'a_' }), ['a_1'])
      assert.deepEqual(await select(store, { idPrefix: 'a%' }), ['a%1'])
      assert.deepEqual(await select(store, { idPrefix: 'a_1' }), ['a_1'])
      assert.deepEqual(await select(store, { idPrefix: '' }), [])
    },
  },
]

const PAGES: StoreCase[] = [
  {
    name: 'listings come newest first; a page is the window that runPageWindow gives',
    async run(store) {
      await createRuns(store, ...range(1, 7).map((n) => makeRun(`r${n}`, { createdAt: at(n) })))
      const all = range(1, 7)
        .reverse()
        .map((n) => `r${n}`)
      assert.deepEqual(ids(await store.listRuns({})), all)
      const pages: RunQuery[] = [
        { size: 3 },
        { page: 2, size: 3 },
        { page: 3, size: 3 },
        { page: 4, size: 3 },
        { page: 0, size: 2 },
        { page: 1.9, size: 2.9 },
        { size: 0 },
        { page: 2 },
      ]
      for (const page of pages) {
        const { limit, offset } = runPageWindow(page)
        const expected = all.slice(offset, limit === undefined ? undefined : offset + limit)
        assert.deepEqual(ids(await store.listRuns(page)), expected, JSON.stringify(page))
      }
    },
  },
  {
    name: 'no size returns everything',
    async run(store) {
      await createRuns(store, ...range(1, 130).map((n) => makeRun(`r${n}`)))
      assert.equal(sizeOf(await store.listRuns({})), 130)
    },
  },
  {
    name: 'pages over equal times neither repeat nor skip; ties come by id, descending',
    async run(store) {
      await createRuns(store, ...['c', 'a', 'e', 'b', 'D', 'd'].map((id) => makeRun(id)))
      const found: string[] = []
      for (const page of [1, 2, 3]) found.push(...ids(await store.listRuns({ page, size: 2 })))
      assert.deepEqual(found, ['e', 'd', 'c', 'b', 'a', 'D'])
    },
  },
  {
    name: 'a cursor continues after a run, over ties too, with filters',
    requires: ['commitTurn'],
    async run(store) {
      await createRuns(
        store,
        ...range(0, 9).map((n) =>
          makeRun(`r${n}`, { createdAt: at(Math.floor(n / 3)), workflow: n % 2 ? 'odd' : 'even' })
        )
      )
      assert.deepEqual(await walk(store, {}), ids(await store.listRuns({})))
      assert.deepEqual(await walk(store, { workflow: 'odd' }), ['r9', 'r7', 'r5', 'r3', 'r1'])
    },
  },
]

const eq = (key: string, value: string | number | boolean) => ({ key, op: 'eq', value }) as const

const ATTRIBUTES: StoreCase[] = [
  {
    name: 'attributes match by equality and by numeric range',
    async run(store) {
      for (const size of [2, 9, 10, -1, 2.5]) {
        await store.createRun(makeRun(`r${size}`, { searchAttributes: { size, region: 'eu' } }))
      }
      const by = (op: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte', value: number) =>
        select(store, { attributes: [{ key: 'size', op, value }] })
      assert.deepEqual(await by('eq', 9), ['r9'])
      assert.deepEqual(await by('gt', 9), ['r10'])
      assert.deepEqual(await by('gte', 9), ['r10', 'r9'])
      assert.deepEqual(await by('lt', 2.5), ['r-1', 'r2'])
      assert.deepEqual(await by('lte', 2.5), ['r-1', 'r2', 'r2.5'])
      assert.deepEqual(await by('ne', 9), ['r-1', 'r10', 'r2', 'r2.5'])
      assert.equal(sizeOf(await select(store, { attributes: [eq('region', 'eu')] })), 5)
      assert.deepEqual(await select(store, { attributes: [eq('region', 'EU')] }), [])
    },
  },
  {
    name: 'two attribute predicates must both hold, on one key too',
    async run(store) {
      for (const size of [1, 2, 3]) {
        await store.createRun(
          makeRun(`r${size}`, { searchAttributes: { size, region: size > 1 ? 'eu' : 'us' } })
        )
      }
      const above = { key: 'size', op: 'gt', value: 1 } as const
      const below = { key: 'size', op: 'lt', value: 3 } as const
      assert.deepEqual(await select(store, { attributes: [above, eq('region', 'eu')] }), [
        'r2',
        'r3',
      ])
      assert.deepEqual(await select(store, { attributes: [above, below] }), ['r2'])
      assert.deepEqual(await select(store, { attributes: [above, eq('region', 'us')] }), [])
    },
  },
  {
    name: 'booleans match as text',
    async run(store) {
      await createRuns(
        store,
        makeRun('yes', { searchAttributes: { vip: true } }),
        makeRun('no', { searchAttributes: { vip: false } })
      )
      assert.deepEqual(await select(store, { attributes: [eq('vip', true)] }), ['yes'])
      const not = { key: 'vip', op: 'ne', value: true } as const
      assert.deepEqual(await select(store, { attributes: [not] }), ['no'])
    },
  },
  {
    name: 'a missing key, or one of the other type, matches no operator',
    async run(store) {
      await createRuns(
        store,
        makeRun('number', { searchAttributes: { code: 5 } }),
        makeRun('text', { searchAttributes: { code: '5' } }),
        makeRun('none')
      )
      const by = (op: 'eq' | 'ne' | 'gt' | 'lte', value: string | number) =>
        select(store, { attributes: [{ key: 'code', op, value }] })
      assert.deepEqual(await by('eq', 5), ['number'])
      assert.deepEqual(await by('eq', '5'), ['text'])
      assert.deepEqual(await by('ne', 6), ['number'])
      assert.deepEqual(await by('ne', '6'), ['text'])
      assert.deepEqual(await by('gt', 4), ['number'])
      assert.deepEqual(await by('lte', '5'), ['text'])
    },
  },
  {
    name: 'text attributes compare by code unit, and long ones are found',
    async run(store) {
      const long = 'x'.repeat(300)
      await createRuns(
        store,
        makeRun('upper', { searchAttributes: { name: 'B' } }),
        makeRun('lower', { searchAttributes: { name: 'a' } }),
        makeRun('long', { searchAttributes: { name: long } })
      )
      const above = { key: 'name', op: 'gt', value: 'B' } as const
      assert.deepEqual(await select(store, { attributes: [above] }), ['long', 'lower'])
      assert.deepEqual(await select(store, { attributes: [eq('name', long)] }), ['long'])
      matches(await store.getRun('long'), { searchAttributes: { name: long } })
    },
  },
  {
    name: 'an update re-indexes attributes; old values stop matching',
    async run(store) {
      await store.createRun(makeRun('r', { searchAttributes: { region: 'eu', size: 1 } }))
      await store.updateRun('r', { searchAttributes: { region: 'us' } })
      assert.deepEqual(await select(store, { attributes: [eq('region', 'us')] }), ['r'])
      assert.deepEqual(await select(store, { attributes: [eq('region', 'eu')] }), [])
      assert.deepEqual(await select(store, { attributes: [eq('size', 1)] }), [])
      await store.updateRun('r', { priority: 1 })
      assert.deepEqual(await select(store, { attributes: [eq('region', 'us')] }), ['r'])
      await store.updateRun('r', { searchAttributes: undefined })
      assert.deepEqual(await select(store, { attributes: [eq('region', 'us')] }), [])
    },
  },
  {
    name: 'attributes, status and paging work together',
    async run(store) {
      await createRuns(
        store,
        ...range(0, 9).map((n) =>
          makeRun(`r${n}`, {
            createdAt: at(n),
            status: n % 2 ? 'failed' : 'completed',
            searchAttributes: { n },
          })
        )
      )
      const query: RunQuery = {
        status: 'failed',
        attributes: [{ key: 'n', op: 'gte', value: 3 }],
        size: 2,
      }
      assert.deepEqual(ids(await store.listRuns(query)), ['r9', 'r7'])
      assert.deepEqual(ids(await store.listRuns({ ...query, page: 2 })), ['r5', 'r3'])
    },
  },
  {
    name: 'the runs of an attribute value come in the order and the pages of every list',
    requires: ['commitTurn'],
    async run(store) {
      await createRuns(
        store,
        ...range(0, 11).map((n) =>
          makeRun(`r${n}`, {
            createdAt: at(Math.floor(n / 3)),
            status: n % 2 ? 'failed' : 'completed',
            searchAttributes: { region: n % 4 ? 'eu' : 'us', size: 1 },
          })
        )
      )
      // A value that came later, and a beginning that was corrected.
      await store.updateRun('r4', { searchAttributes: { region: 'eu', size: 1 } })
      await store.updateRun('r10', { createdAt: at(0) })
      await store.updateRunIf('r1', ['failed'], { createdAt: at(7), priority: 1 })
      const one = [eq('region', 'eu')]
      const both = [eq('size', 1), eq('region', 'eu')]
      const queries: RunQuery[] = [
        {},
        { status: 'failed' },
        { createdAfter: T0, createdBefore: T0 + 7 },
        { statuses: ['completed'], idPrefix: 'r' },
      ]
      for (const query of queries) {
        const every = ids(await store.listRuns(query))
        const wanted = every.filter((id) => id !== 'r0' && id !== 'r8')
        for (const attributes of [one, both]) {
          assert.deepEqual(ids(await store.listRuns({ ...query, attributes })), wanted)
          assert.deepEqual(await walk(store, { ...query, attributes }), wanted)
          const second = { ...query, attributes, page: 2, size: 3 }
          assert.deepEqual(ids(await store.listRuns(second)), wanted.slice(3, 6))
          const oldest = { ...query, attributes, oldestFirst: true, size: 3 }
          assert.deepEqual(ids(await store.listRuns(oldest)), wanted.slice(-3).reverse())
        }
      }
    },
  },
]

export const QUERY_CASES: StoreCase[] = [...FILTERS, ...PAGES, ...ATTRIBUTES]
