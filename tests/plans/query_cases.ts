/*
 * What people, purges and retention ask: lists, counts and removals.
 */
import type { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { type Call, type Case, count, ENDED, lengthOf, list, LIVE, LIVE_MUTEX } from './case.ts'
import { DAY, NOW } from './fill.ts'

const total = (cells: { count: number }[]): number =>
  cells.reduce((sum, { count: n }) => sum + n, 0)

const facets =
  (query: Parameters<LucidStateStore['runFacets']>[0]): Call =>
  async (store) =>
    total(await store.runFacets(query))

const values =
  (...args: Parameters<LucidStateStore['runValueFacets']>): Call =>
  async (store) =>
    total(await store.runValueFacets(...args))

/** Cursors: half of all runs come before the first, nine tenths before the second. */
const middle = { createdAt: NOW - 45 * DAY, id: 'run-x' }
const deep = { createdAt: NOW - 80 * DAY, id: 'run-x' }

const page = (
  name: string,
  query: Parameters<LucidStateStore['listRuns']>[0],
  times = 1,
  plus = 50
): Case => ({
  name,
  call: list(query),
  times,
  plus,
})

/** By an attribute: as many as have the value. */
const valued = (
  name: string,
  query: Parameters<LucidStateStore['listRuns']>[0],
  where: string,
  plus = 50
): Case => ({
  name,
  call: list(query),
  times: 4,
  plus,
  basis: {
    words: 'with the value',
    where: `id IN (SELECT run_id FROM durable_run_attributes WHERE ${where})`,
  },
})

const CUSTOMER = { key: 'customer', op: 'eq', value: 'c-78' } as const
/** An eighth and a thirtieth of all runs have these. */
const REGION = { key: 'region', op: 'eq', value: 'us' } as const
const TIER = { key: 'tier', op: 'eq', value: 20 } as const
/** Half of those that have it, and they are every other run. */
const ABOVE = { key: 'amount', op: 'gte', value: 5000 } as const
const OF_CUSTOMER = `str_value = 'c-78'`

const lists: Case[] = [
  page('runs, newest', {}),
  page('runs, cursor in the middle', { before: middle }),
  page('status', { status: 'completed' }),
  page('status, cursor deep', { status: 'completed', before: deep }),
  page('few of a status', { status: 'dead' }),
  // Each status is a range of its own.
  page('live', { statuses: LIVE }, 5),
  page('live, cursor deep', { statuses: LIVE, before: deep }, 5),
  page('workflow', { workflow: 'order' }, 9),
  page('workflow, cursor deep', { workflow: 'order', before: deep }, 9),
  page('workflow, rare', { workflow: 'rare' }, 9),
  page('workflow, old', { workflow: 'retired' }, 9),
  { ...page('workflow that no run has', { workflow: 'none' }), finds: 'nothing' },
  page('workflow and status', { workflow: 'order', status: 'failed' }),
  page('workflow and status, cursor deep', { workflow: 'order', status: 'failed', before: deep }),
  page('namespace', { namespace: 'tenant-8' }, 9),
  page('namespace, old', { namespace: 'moved' }, 9),
  page('namespace, cursor deep', { namespace: 'tenant-8', before: deep }, 9),
  page('namespace and status', { namespace: 'tenant-8', status: 'failed' }),
  page('id prefix', { idPrefix: 'run-0000001' }),
  valued('attribute', { attributes: [CUSTOMER] }, OF_CUSTOMER),
  valued('attribute, cursor deep', { attributes: [CUSTOMER], before: deep }, OF_CUSTOMER),
  page('attribute that many have', { attributes: [REGION] }, 2),
  page('attribute that many have, deep', { attributes: [REGION], before: deep }, 2),
  page('number that many have, deep', { attributes: [TIER], before: deep }, 2),
  page('attribute of many, oldest first', { attributes: [REGION], oldestFirst: true }, 2),
  // Most of what has the value, and a fifth of it.
  page('attribute of many, status', { status: 'completed', attributes: [REGION] }, 3),
  page('attribute of many, namespace', { namespace: 'tenant-8', attributes: [REGION] }, 12),
  // A thousand of its values are counted, and 5000 runs looked at before it reads all that have one.
  page('range that many have', { attributes: [ABOVE] }, 1, 13_000),
  page('range that many have, deep', { attributes: [ABOVE], before: deep }, 1, 13_000),
  page('range and status', { status: 'failed', attributes: [ABOVE] }, 1, 13_000),
  page('another value', { attributes: [{ ...REGION, op: 'ne' }] }, 1, 12_000),
  valued(
    'attribute range',
    { attributes: [{ key: 'amount', op: 'gte', value: 9998 }] },
    'num_value >= 9998',
    1000
  ),
  valued(
    'two attributes',
    { attributes: [CUSTOMER, { key: 'amount', op: 'lt', value: 5000 }] },
    OF_CUSTOMER
  ),
  valued('attribute and status', { status: 'completed', attributes: [CUSTOMER] }, OF_CUSTOMER),
  valued('attribute and workflow', { workflow: 'order', attributes: [CUSTOMER] }, OF_CUSTOMER),
  {
    name: 'tag',
    call: (store, { singleton: { tag } }) =>
      lengthOf(store.listRuns({ workflow: 'mutex', tag, statuses: LIVE, size: 25 })),
    times: 1,
    plus: 50,
    basis: LIVE_MUTEX,
  },
  page('purge page', { statuses: ENDED, size: 100 }, 5),
  page('purge page, cursor deep', { statuses: ENDED, size: 100, before: deep }, 5),
  page('purge of a workflow', { workflow: 'retired', statuses: ENDED, size: 100 }, 5),
]

const counts: Case[] = [
  { name: 'count of a status', call: count({ status: 'failed' }), times: 1, plus: 20 },
  { name: 'count of a workflow', call: count({ workflow: 'rare' }), times: 1, plus: 20 },
  { name: 'count of a namespace', call: count({ namespace: 'tenant-8' }), times: 1, plus: 20 },
  {
    name: 'count of a workflow and status',
    call: count({ workflow: 'order', status: 'dead' }),
    times: 1,
    plus: 20,
  },
  { name: 'count of an attribute', call: count({ attributes: [CUSTOMER] }), times: 2, plus: 20 },
  { name: 'status facets', call: facets({}), times: 2, plus: 20 },
  { name: 'status facets of a workflow', call: facets({ workflow: 'rare' }), times: 1, plus: 20 },
  {
    name: 'status facets of a namespace',
    call: facets({ namespace: 'tenant-8' }),
    times: 1,
    plus: 20,
  },
  {
    name: 'workflow facets of a namespace',
    call: values('workflow', { namespace: 'tenant-8' }),
    times: 1,
    plus: 20,
  },
  { name: 'workflow facets', call: values('workflow', {}), times: 1, ofAll: true, plus: 20 },
  {
    name: 'tag facets of a workflow',
    call: values('tag', { workflow: 'order' }),
    times: 1,
    // It looks at 5000 runs, newest first.
    plus: 8 * 5000,
  },
]

const removals: Case[] = [
  {
    // The run, its attributes, its waiters and three rows each; MySQL looks before it deletes.
    name: 'delete runs, 100',
    call: (store, { ended }) => store.deleteRuns(ended),
    times: 10,
    plus: 0,
  },
  {
    name: 'delete ended runs, 100',
    call: (store, { ended }) => lengthOf(store.deleteRunsIf(ended, ENDED)),
    times: 10,
    plus: 0,
  },
]

export const QUERY_CASES: readonly Case[] = [...lists, ...counts, ...removals]
