/*
 * Contract: deleting runs on a condition, and dropping what is left in the signal buffer.
 */
import assert from 'node:assert/strict'
import {
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  range,
  saveRows,
  sizeOf,
  tokens,
  type StoreCase,
} from './support.ts'

const WIDE = 1200

const CONDITIONAL_DELETES: StoreCase[] = [
  {
    name: 'a conditional delete takes runs of the given statuses, with what belongs to them, and no other',
    requires: ['deleteRunsIf'],
    async run(store) {
      await createRuns(
        store,
        makeRun('done', { status: 'completed', searchAttributes: { region: 'eu' } }),
        makeRun('bad', { status: 'failed' }),
        makeRun('live', { status: 'suspended', searchAttributes: { region: 'eu' } })
      )
      await saveRows(store, makeRow('done', 0), makeRow('live', 0))
      await store.putSignalWaiter(makeWaiter('td', 'done', 1))
      await store.putSignalWaiter(makeWaiter('tl', 'live', 1))
      const gone = await store.deleteRunsIf(
        ['live', 'done', 'done', 'bad', 'nobody'],
        ['completed', 'failed']
      )
      assert.deepEqual(gone.sort(), ['bad', 'done'])
      assert.deepEqual(ids(await store.listRuns({})), ['live'])
      assert.equal(sizeOf(await store.listCheckpoints('live')), 1)
      assert.deepEqual(await store.listCheckpoints('done'), [])
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['tl'])
      const attributes = [{ key: 'region', op: 'eq', value: 'eu' } as const]
      assert.deepEqual(ids(await store.listRuns({ attributes })), ['live'])
      assert.deepEqual(await store.deleteRunsIf(['live'], []), [])
      assert.deepEqual(await store.deleteRunsIf([], ['suspended']), [])
    },
  },
  {
    name: 'a conditional delete of more runs than fit one statement answers all of them',
    requires: ['deleteRunsIf'],
    async run(store) {
      const many = range(1, WIDE).map((n) => `r${n}`)
      await createRuns(store, ...many.map((id) => makeRun(id, { status: 'completed' })))
      const gone = await store.deleteRunsIf(many, ['completed'])
      assert.deepEqual(gone.sort(), [...many].sort())
    },
  },
]

const BUFFERS: StoreCase[] = [
  {
    name: 'buffered tokens are listed by literal prefix, each once',
    requires: ['listBufferedTokens'],
    async run(store) {
      for (const token of ['wh:a:1', 'wh:a:1', 'wh:ab:1', 'wh:a_:2', 'wh:A:1', 'other']) {
        await store.bufferSignal(token, 1)
      }
      const listed = async (...prefixes: string[]) => {
        const found = await store.listBufferedTokens(prefixes)
        return found.sort()
      }
      assert.deepEqual(await listed('wh:a:'), ['wh:a:1'])
      assert.deepEqual(await listed('wh:a_', 'wh:A', 'wh:A:'), ['wh:A:1', 'wh:a_:2'])
      assert.deepEqual(await listed('%', 'nothing'), [])
      assert.deepEqual(await listed(), [])
    },
  },
  {
    name: 'dropping buffered signals takes every payload of exactly these tokens',
    requires: ['dropBufferedSignals'],
    async run(store) {
      for (const token of ['a', 'a', 'b', 'ab']) await store.bufferSignal(token, token)
      await store.dropBufferedSignals(['a', 'a', 'b', 'nobody'])
      await store.dropBufferedSignals([])
      assert.equal(await store.takeBufferedSignal('a'), null)
      assert.equal(await store.takeBufferedSignal('b'), null)
      assert.deepEqual(await store.takeBufferedSignal('ab'), { payload: 'ab' })
    },
  },
]

export const DELETE_CASES: StoreCase[] = [...CONDITIONAL_DELETES, ...BUFFERS]
