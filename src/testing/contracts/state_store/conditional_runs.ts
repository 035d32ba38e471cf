/*
 * Contract: the compare-and-set write of a run. The status is judged by the write itself.
 */
import assert from 'node:assert/strict'
import { at, ids, makeRun, matches, oneWinner, type StoreCase } from './support.ts'

export const CONDITIONAL_RUN_CASES: StoreCase[] = [
  {
    name: 'updateRunIf applies when the status is expected',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'running' }))
      const patch = { status: 'completed', output: 1, updatedAt: at(4) } as const
      assert.equal(await store.updateRunIf('r', ['suspended', 'running'], patch), true)
      matches(await store.getRun('r'), patch)
    },
  },
  {
    name: 'updateRunIf leaves the row untouched when it is not',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'cancelled', error: { message: 'cancelled' } }))
      const patch = { status: 'completed', output: 1, error: undefined } as const
      assert.equal(await store.updateRunIf('r', ['running'], patch), false)
      matches(await store.getRun('r'), {
        status: 'cancelled',
        output: undefined,
        error: { message: 'cancelled' },
      })
    },
  },
  {
    name: 'of two conditional writes from one snapshot the second is refused',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'running' }))
      assert.equal(await store.updateRunIf('r', ['running'], { status: 'cancelled' }), true)
      assert.equal(await store.updateRunIf('r', ['running'], { status: 'completed' }), false)
      matches(await store.getRun('r'), { status: 'cancelled' })
    },
  },
  {
    name: 'of concurrent conditional writes exactly one applies',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'running' }))
      const answers = await Promise.all(
        [0, 1, 2, 3].map((output) =>
          store.updateRunIf('r', ['running'], { status: 'completed', output })
        )
      )
      oneWinner(answers)
      matches(await store.getRun('r'), { output: answers.indexOf(true) })
    },
  },
  {
    name: 'updateRunIf of an unknown run answers false',
    async run(store) {
      assert.equal(await store.updateRunIf('nobody', ['running'], { status: 'failed' }), false)
    },
  },
  {
    name: 'updateRunIf that expects nothing answers false',
    async run(store) {
      await store.createRun(makeRun('r'))
      assert.equal(await store.updateRunIf('r', [], { status: 'failed' }), false)
      matches(await store.getRun('r'), { status: 'pending' })
    },
  },
  {
    name: 'a refused conditional write does not re-index attributes',
    async run(store) {
      await store.createRun(makeRun('r', { searchAttributes: { region: 'eu' } }))
      await store.updateRunIf('r', ['running'], { searchAttributes: { region: 'us' } })
      const of = async (value: string) =>
        ids(await store.listRuns({ attributes: [{ key: 'region', op: 'eq', value }] }))
      assert.deepEqual([await of('eu'), await of('us')], [['r'], []])
    },
  },
  {
    name: 'an applied conditional write re-indexes attributes',
    async run(store) {
      await store.createRun(makeRun('r', { searchAttributes: { region: 'eu', size: 1 } }))
      await store.updateRunIf('r', ['pending'], { searchAttributes: { region: 'us' } })
      const of = async (key: string, value: string | number) =>
        ids(await store.listRuns({ attributes: [{ key, op: 'eq', value }] }))
      assert.deepEqual(
        [await of('region', 'eu'), await of('region', 'us'), await of('size', 1)],
        [[], ['r'], []]
      )
    },
  },
  {
    name: 'a patch equal to what is stored still answers true',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'running', priority: 3 }))
      const patch = { status: 'running', priority: 3 } as const
      assert.equal(await store.updateRunIf('r', ['running'], patch), true)
      assert.equal(await store.updateRunIf('r', ['running'], patch), true)
    },
  },
  {
    name: 'an empty patch answers whether the status is expected',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'running' }))
      assert.equal(await store.updateRunIf('r', ['running'], {}), true)
      assert.equal(await store.updateRunIf('r', ['pending'], {}), false)
    },
  },
]
