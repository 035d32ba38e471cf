/*
 * Walks from the oldest run that another time bounds: whichever way a page is found, by age or by the time,
 * it is the page. The data have dense and sparse stretches, ties, and runs that wait for nothing.
 */
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import type { RunQuery } from '../../../src/types/query.ts'
import type { RunStatus, WorkflowRun } from '../../../src/types/run.ts'
import { at, makeRun, ms, onEachDialect } from './support.ts'

const RUNS = 400
const STATUSES: RunStatus[] = [
  'suspended',
  'suspended',
  'suspended',
  'completed',
  'failed',
  'pending',
]

function runs(): WorkflowRun[] {
  return Array.from({ length: RUNS }, (_, n) => ({
    ...makeRun(`run-${(n * 7919) % RUNS}`),
    status: STATUSES[n % STATUSES.length],
    namespace: n % 3 === 0 ? 'acme' : 'default',
    workflow: n % 2 === 0 ? 'order' : 'invoice',
    tags: n % 5 === 0 ? ['vip'] : undefined,
    // Three begin at a time. The first half changed at once; of the second, one in ten.
    createdAt: at(Math.floor(n / 3)),
    updatedAt: at(Math.floor(n / 3) + (n < RUNS / 2 || n % 10 === 0 ? 1 : 5000)),
    // The oldest wait longest, but for some.
    wakeAt: n % 4 === 0 ? undefined : ms(n % 37 === 1 ? n : 9000 - n),
  }))
}

const BOUNDS: RunQuery[] = [
  { updatedBefore: ms(20) },
  { updatedBefore: ms(130) },
  { updatedBefore: ms(9999) },
  { wakeBefore: ms(0) },
  { wakeBefore: ms(100) },
  { wakeBefore: ms(8700) },
  { wakeBefore: ms(8800), updatedBefore: ms(120) },
]

const SCOPES: RunQuery[] = [
  {},
  { status: 'suspended' },
  { statuses: ['suspended', 'completed', 'failed'] },
  { statuses: ['suspended', 'pending'], namespace: 'acme' },
  { status: 'suspended', workflow: 'order', tag: 'vip' },
  { statuses: [] },
  { status: 'failed', statuses: ['suspended'] },
]

const PLACES: RunQuery[] = [
  {},
  { createdAfter: ms(60) },
  { createdAfter: ms(10), createdBefore: ms(90) },
]
const PAGES = [
  { page: 1, size: 1 },
  { page: 3, size: 4 },
  { page: 2, size: 100 },
]

function* queries(): Generator<RunQuery> {
  for (const bound of BOUNDS)
    for (const scope of SCOPES)
      for (const place of PLACES)
        for (const page of PAGES) yield { ...bound, ...scope, ...place, ...page, oldestFirst: true }
}

const idsOf = (found: WorkflowRun[]): string[] => found.map(({ id }) => id)

await onEachDialect(
  'a walk that another time bounds gives the page that a store in memory gives',
  async ({ store }, assert) => {
    const model = new InMemoryStateStore()
    for (const run of runs()) {
      await store.createRun(run)
      await model.createRun(run)
    }
    let filled = 0
    for (const query of queries()) {
      const expected = idsOf(await model.listRuns(query))
      assert.deepEqual(idsOf(await store.listRuns(query)), expected, JSON.stringify(query))
      filled += expected.length === query.size ? 1 : 0
    }
    assert.isAbove(filled, 100)
  }
)
