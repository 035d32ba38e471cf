/*
 * What the passes over all runs ask, a minute apart: retention, the pager, lost handlers, timeouts. Their
 * bound is the page: so many entries of an index, its rows, and as many again for the look whether there
 * are only a few.
 */
import { ACTIVE, type Case, ENDED, lengthOf, list, LIVE, LIVE_MUTEX } from './case.ts'
import { DAY, LONG_RUN, NOW } from './fill.ts'

type Query = Parameters<typeof list>[0]

const SIZE = 100
const TENANT = 'tenant-8'
/** Behind two fifths of the runs that are old enough. */
const FAR = NOW - 60 * DAY

/** A page of a walk: oldest first. */
const walk = (name: string, query: Query, times: number, plus = 20): Case => ({
  name,
  call: list({ size: SIZE, oldestFirst: true, ...query }),
  times,
  plus,
})

/** The same as a walk begins and far into it, for every namespace and for one. */
const walks = (name: string, query: Query, times: number): Case[] => [
  walk(name, query, times),
  walk(`${name}, deep`, { ...query, createdAfter: FAR }, times),
  walk(`${name}, namespace`, { ...query, namespace: TENANT }, times),
  walk(`${name}, namespace, deep`, { ...query, namespace: TENANT, createdAfter: FAR }, times),
]

const nothing = (one: Case): Case => ({ ...one, finds: 'nothing' })

const old = (ageMs: number): Query => ({ updatedBefore: NOW - ageMs, createdBefore: NOW - ageMs })

const MONTH = old(30 * DAY)
const YEAR = old(365 * DAY)

const retention: Case[] = [
  ...walks('retention', { statuses: ['completed'], ...MONTH }, 3),
  ...walks('retention, few', { statuses: ['cancelled'], ...MONTH }, 3),
  ...walks('retention, any end', { statuses: ENDED, ...MONTH }, 9),
  walk('retention, all of a namespace', { statuses: ENDED, ...MONTH, namespace: 'moved' }, 8),
  nothing(walk('retention, none', { statuses: ENDED, ...YEAR }, 1)),
  nothing(walk('retention, none, namespace', { statuses: ENDED, ...YEAR, namespace: TENANT }, 1)),
  walk('retention, second page', { statuses: ['completed'], ...MONTH, page: 2 }, 6),
  walk(
    'the newest that stay, 1000',
    { statuses: ['completed'], page: 1000, size: 1, oldestFirst: false },
    1,
    1010
  ),
]

const SILENT = NOW - 15 * 60_000

const FEW = NOW - 85 * DAY

const pager: Case[] = [
  ...walks('silent', { statuses: LIVE, updatedBefore: SILENT, createdBefore: SILENT }, 9),
  ...walks(
    'waiting',
    { statuses: ['suspended'], wakeBefore: NOW + 300_000, createdBefore: SILENT },
    25
  ),
  walk(
    'waiting, fewer than a page',
    { statuses: ['suspended'], wakeBefore: NOW - 89.5 * DAY },
    5,
    820
  ),
  // Most that are as old wait for something else.
  {
    ...walk('waiting, few', { statuses: ['suspended'], wakeBefore: FEW }, 3, 2 * 12 * SIZE),
    basis: { words: 'waiting', where: `status = 'suspended' AND wake_at <= ${FEW}` },
  },
  {
    name: 'open rows, last 100',
    call: (store) =>
      lengthOf(
        store.queryCheckpoints(LONG_RUN, { statuses: ['pending'], descending: true, limit: 100 })
      ),
    times: 1,
    plus: 1,
  },
]

const handlers = (name: string, query: Query): Case => ({
  name,
  call: list({ size: SIZE, ...query }),
  times: 3,
  plus: 20,
  basis: {
    words: 'failed, in the window',
    where: `status = 'failed' AND updated_at > ${query.updatedAfter}`,
  },
})

const HOURS = NOW - DAY

const others: Case[] = [
  handlers('lost handlers', { status: 'failed', updatedAfter: HOURS }),
  handlers('lost handlers, namespace', {
    status: 'failed',
    updatedAfter: HOURS,
    namespace: TENANT,
  }),
  handlers('lost handlers, next page', {
    status: 'failed',
    updatedAfter: HOURS,
    before: { createdAt: NOW - DAY / 4, id: 'run-x' },
  }),
  {
    name: 'age of a workflow',
    call: list({ workflow: 'order', statuses: LIVE, createdBefore: NOW - DAY, size: SIZE }),
    times: 5,
    plus: 20,
  },
  {
    name: 'age of a workflow, deep',
    call: list({
      workflow: 'order',
      statuses: LIVE,
      createdBefore: NOW - DAY,
      before: { createdAt: FAR, id: 'run-x' },
      size: SIZE,
    }),
    times: 5,
    plus: 20,
  },
  {
    name: 'age of a workflow, namespace',
    call: list({
      workflow: 'order',
      namespace: TENANT,
      statuses: LIVE,
      createdBefore: NOW - DAY,
      size: SIZE,
    }),
    times: 30,
    plus: 20,
  },
  {
    name: 'live run of a schedule',
    call: (store, { singleton: { tag } }) =>
      lengthOf(store.listRuns({ workflow: 'mutex', tag, statuses: ACTIVE, size: 1 })),
    times: 1,
    plus: 20,
    basis: LIVE_MUTEX,
  },
]

export const UPKEEP_CASES: readonly Case[] = [...retention, ...pager, ...others]
