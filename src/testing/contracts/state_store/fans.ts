/*
 * Contract: registering the waits of a fan, and folding a finished one.
 */
import assert from 'node:assert/strict'
import {
  makeRow,
  makeWaiter,
  pendingRow,
  range,
  same,
  saveRows,
  seqs,
  sizeOf,
  tokens,
  type StoreCase,
} from './support.ts'

const wait = (seq: number) => ({
  waiter: makeWaiter(`child:r.child.${seq}`, 'r', seq, { parallelGroup: 'all:0' }),
  checkpoint: makeRow('r', seq, {
    name: `signal:child:r.child.${seq}`,
    kind: 'signal',
    status: 'running',
    parallelGroup: 'all:0',
  }),
})

export const FAN_CASES: StoreCase[] = [
  {
    name: 'registering a fan writes every waiter and every placeholder',
    requires: ['registerChildWaits'],
    async run(store) {
      const waits = range(0, 699).map(wait)
      await store.registerChildWaits(waits)
      same(
        await store.listCheckpoints('r'),
        waits.map((each) => each.checkpoint)
      )
      const registered = await store.listSignalWaiters('child:')
      assert.deepEqual(tokens(registered), tokens(waits.map((each) => each.waiter)))
      assert.ok(registered.every((each) => each.parallelGroup === 'all:0'))
      await store.registerChildWaits([])
    },
  },
  {
    name: 'registering a fan again changes nothing',
    requires: ['registerChildWaits'],
    async run(store) {
      const waits = [wait(0), wait(1)]
      await store.registerChildWaits(waits)
      await store.registerChildWaits(waits)
      assert.equal(sizeOf(await store.listCheckpoints('r')), 2)
      assert.equal(sizeOf(await store.listSignalWaiters('')), 2)
    },
  },
  {
    name: 'registering a fan leaves settled positions alone',
    requires: ['registerChildWaits'],
    async run(store) {
      const completed = makeRow('r', 0, { output: { ok: true, value: 1 } })
      const failed = makeRow('r', 1, { status: 'failed', error: { message: 'no' } })
      await saveRows(store, completed, failed, pendingRow('r', 2))
      await store.registerChildWaits([wait(0), wait(1), wait(2)])
      same(await store.listCheckpoints('r'), [completed, failed, wait(2).checkpoint])
    },
  },
  {
    name: 'a fan with a value that cannot be stored rejects and registers nothing',
    requires: ['registerChildWaits'],
    async run(store) {
      const odd = wait(1)
      const bad = { ...odd, checkpoint: { ...odd.checkpoint, input: 1n } }
      await assert.rejects(store.registerChildWaits([wait(0), bad]))
      assert.deepEqual(await store.listCheckpoints('r'), [])
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
  {
    name: 'a settled range folds into one row; rows outside it and other runs stay',
    requires: ['compactCheckpoints'],
    async run(store) {
      const outside = [makeRow('r', 0), makeRow('r', 4), makeRow('r2', 2)]
      await saveRows(
        store,
        ...outside,
        makeRow('r', 1),
        makeRow('r', 2, { status: 'failed', error: { message: 'no' } }),
        makeRow('r', 3)
      )
      const folded = makeRow('r', 1, { name: 'fold', output: { values: [1, 2, 3] }, order: 0 })
      assert.equal(await store.compactCheckpoints('r', { fromSeq: 1, toSeq: 3 }, folded), true)
      same(await store.listCheckpoints('r'), [outside[0], folded, outside[1]])
      same(await store.listCheckpoints('r2'), [outside[2]])
    },
  },
  ...(['pending', 'running'] as const).map((status): StoreCase => ({
    name: `a range with a ${status} row does not fold and nothing changes`,
    requires: ['compactCheckpoints'],
    async run(store) {
      const rows = [makeRow('r', 1), makeRow('r', 2, { status }), makeRow('r', 3)]
      await saveRows(store, ...rows)
      const folded = makeRow('r', 1, { name: 'fold' })
      assert.equal(await store.compactCheckpoints('r', { fromSeq: 1, toSeq: 3 }, folded), false)
      same(await store.listCheckpoints('r'), rows)
    },
  })),
  {
    name: 'an empty range does not fold',
    requires: ['compactCheckpoints'],
    async run(store) {
      await saveRows(store, makeRow('r', 0), makeRow('r2', 5))
      const folded = makeRow('r', 5, { name: 'fold' })
      assert.equal(await store.compactCheckpoints('r', { fromSeq: 5, toSeq: 9 }, folded), false)
      assert.deepEqual(seqs(await store.listCheckpoints('r')), [0])
    },
  },
]
