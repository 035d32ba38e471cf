/*
 * Contract: waiters, buffered signals, buffered events.
 */
import assert from 'node:assert/strict'
import {
  at,
  ids,
  makeWaiter,
  oneWinner,
  range,
  same,
  sizeOf,
  T0,
  takeAllBuffered,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const buffer = (store: StoreUnderTest, id: string, name: string, publishedAt: number) =>
  store.bufferEvent({ id, name, payload: { id }, publishedAt })

const WAITERS: StoreCase[] = [
  {
    name: 'a waiter is listed by prefix and taken once',
    async run(store) {
      await store.putSignalWaiter(makeWaiter('pay:1', 'r', 3))
      await store.putSignalWaiter(makeWaiter('ship:1', 'r', 4))
      same(await store.listSignalWaiters('pay:'), [makeWaiter('pay:1', 'r', 3)])
      same(await store.takeSignalWaiter('pay:1'), makeWaiter('pay:1', 'r', 3))
      assert.equal(await store.takeSignalWaiter('pay:1'), null)
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['ship:1'])
    },
  },
  {
    name: 'of concurrent takers of a waiter one gets it',
    async run(store) {
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      const taken = await Promise.all(range(1, 6).map(() => store.takeSignalWaiter('t')))
      oneWinner(taken.map((waiter) => waiter !== null))
    },
  },
  {
    name: 'a later waiter replaces the earlier one of its token',
    async run(store) {
      await store.putSignalWaiter(makeWaiter('t', 'r', 3, { parallelGroup: 'all:3' }))
      await store.putSignalWaiter(makeWaiter('t', 'r2', 4))
      same(await store.listSignalWaiters('t'), [makeWaiter('t', 'r2', 4)])
    },
  },
  {
    name: 'removing a waiter needs the exact token, run and position',
    async run(store) {
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      await store.removeSignalWaiter(makeWaiter('t', 'r', 4))
      await store.removeSignalWaiter(makeWaiter('t', 'r2', 3))
      await store.removeSignalWaiter(makeWaiter('t2', 'r', 3))
      assert.equal(sizeOf(await store.listSignalWaiters('')), 1)
      await store.removeSignalWaiter(makeWaiter('t', 'r', 3))
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
  {
    name: "a waiter's group round-trips, and stays absent when absent",
    async run(store) {
      await store.putSignalWaiter(makeWaiter('a', 'r', 0, { parallelGroup: 'all:0' }))
      await store.putSignalWaiter(makeWaiter('b', 'r', 1))
      same(await store.takeSignalWaiter('a'), makeWaiter('a', 'r', 0, { parallelGroup: 'all:0' }))
      same(await store.takeSignalWaiter('b'), makeWaiter('b', 'r', 1))
    },
  },
  {
    name: 'when a waiter registered round-trips',
    requires: ['commitTurn'],
    async run(store) {
      const waiter = makeWaiter('t', 'r', 0, { createdAt: at(5) })
      await store.putSignalWaiter(waiter)
      same(await store.listSignalWaiters('t'), [waiter])
    },
  },
  {
    name: 'the empty prefix lists all; a prefix is literal and its case matters',
    async run(store) {
      const all = ['a%b', 'aXb', 'a_b', 'A_b', 'a\\b', 'ab']
      for (const [seq, token] of all.entries()) {
        await store.putSignalWaiter(makeWaiter(token, 'r', seq))
      }
      const listed = async (prefix: string) => tokens(await store.listSignalWaiters(prefix))
      assert.deepEqual(await listed(''), [...all].sort())
      assert.deepEqual(await listed('a%'), ['a%b'])
      assert.deepEqual(await listed('a_'), ['a_b'])
      assert.deepEqual(await listed('a\\'), ['a\\b'])
      assert.deepEqual(await listed('A'), ['A_b'])
    },
  },
  {
    name: 'tokens that differ in case only are two tokens',
    async run(store) {
      await store.putSignalWaiter(makeWaiter('Token', 'r', 1))
      await store.putSignalWaiter(makeWaiter('token', 'r', 2))
      same(await store.takeSignalWaiter('token'), makeWaiter('token', 'r', 2))
      same(await store.takeSignalWaiter('Token'), makeWaiter('Token', 'r', 1))
    },
  },
  {
    name: 'the existence of a waiter is exact and consumes nothing',
    requires: ['hasSignalWaiter'],
    async run(store) {
      await store.putSignalWaiter(makeWaiter('child:a', 'r', 0))
      assert.equal(await store.hasSignalWaiter('child:a'), true)
      assert.equal(await store.hasSignalWaiter('child:'), false)
      assert.equal(await store.hasSignalWaiter('child:ab'), false)
      assert.ok(await store.takeSignalWaiter('child:a'))
      assert.equal(await store.hasSignalWaiter('child:a'), false)
    },
  },
  {
    name: 'waiters of runs equal a filtered listing; no runs, no waiters',
    requires: ['listSignalWaitersByRunIds'],
    async run(store) {
      for (const [index, runId] of ['a', 'b', 'a', 'c'].entries()) {
        await store.putSignalWaiter(makeWaiter(`t${index}`, runId, index))
      }
      const found = await store.listSignalWaitersByRunIds(['a', 'c', 'nobody', 'a'])
      assert.deepEqual(tokens(found), ['t0', 't2', 't3'])
      assert.deepEqual(await store.listSignalWaitersByRunIds([]), [])
    },
  },
]

const BUFFERED: StoreCase[] = [
  {
    name: 'buffered signals come out first in, first out, a token',
    async run(store) {
      for (const payload of [1, 2, 3]) await store.bufferSignal('t', payload)
      await store.bufferSignal('other', 'x')
      assert.deepEqual(await takeAllBuffered(store, 't'), [1, 2, 3])
      assert.equal(await store.takeBufferedSignal('t'), null)
      assert.deepEqual(await takeAllBuffered(store, 'other'), ['x'])
    },
  },
  {
    name: 'undefined, null and falsy payloads are payloads',
    async run(store) {
      for (const payload of [undefined, null, 0, '', false]) await store.bufferSignal('t', payload)
      assert.deepEqual(await takeAllBuffered(store, 't'), [undefined, null, 0, '', false])
    },
  },
  {
    name: 'two concurrent takers of two payloads get one each',
    async run(store) {
      await store.bufferSignal('t', 'a')
      await store.bufferSignal('t', 'b')
      const taken = await Promise.all([
        store.takeBufferedSignal('t'),
        store.takeBufferedSignal('t'),
        store.takeBufferedSignal('t'),
      ])
      const payloads = taken.flatMap((each) => (each ? [each.payload] : []))
      assert.deepEqual(payloads.sort(), ['a', 'b'])
    },
  },
]

const EVENTS: StoreCase[] = [
  {
    name: 'events of a name come oldest first, ties by id, capped, and stay',
    async run(store) {
      await buffer(store, 'c', 'paid', T0 + 5)
      await buffer(store, 'b', 'paid', T0 + 1)
      await buffer(store, 'a', 'paid', T0 + 5)
      await buffer(store, 'x', 'other', T0)
      const listed = async (limit: number) => ids(await store.listBufferedEvents('paid', limit))
      assert.deepEqual(await listed(9), ['b', 'a', 'c'])
      assert.deepEqual(await listed(2), ['b', 'a'])
      assert.deepEqual(await listed(0), [])
      same(await store.listBufferedEvents('other', 1), [
        { id: 'x', payload: { id: 'x' }, publishedAt: T0 },
      ])
      assert.deepEqual(await store.listBufferedEvents('nobody', 9), [])
    },
  },
  {
    name: 'an event is claimed once; repeats and unknown ids answer false',
    async run(store) {
      await buffer(store, 'e', 'paid', T0)
      const claims = await Promise.all(range(1, 5).map(() => store.removeBufferedEvent('e')))
      oneWinner(claims)
      assert.equal(await store.removeBufferedEvent('e'), false)
      assert.equal(await store.removeBufferedEvent('nobody'), false)
      assert.deepEqual(await store.listBufferedEvents('paid', 9), [])
    },
  },
  {
    name: 'pruning removes events strictly older, of any name, and counts them',
    requires: ['pruneBufferedEvents'],
    kit: true,
    async run(store) {
      await buffer(store, 'a', 'x', T0 - 2)
      await buffer(store, 'b', 'y', T0 - 1)
      await buffer(store, 'c', 'x', T0)
      assert.equal(await store.pruneBufferedEvents(T0), 2)
      assert.equal(await store.pruneBufferedEvents(T0), 0)
      assert.equal(sizeOf(await store.listBufferedEvents('x', 9)), 1)
      assert.deepEqual(await store.listBufferedEvents('y', 9), [])
    },
  },
  {
    name: 'pruning up to a limit takes the oldest',
    requires: ['pruneBufferedEvents'],
    kit: true,
    async run(store) {
      for (const n of [3, 1, 2]) await buffer(store, `e${n}`, 'x', T0 + n)
      assert.equal(await store.pruneBufferedEvents(T0 + 9, 2), 2)
      assert.deepEqual(ids(await store.listBufferedEvents('x', 9)), ['e3'])
    },
  },
]

export const SIGNAL_CASES: StoreCase[] = [...WAITERS, ...BUFFERED, ...EVENTS]
