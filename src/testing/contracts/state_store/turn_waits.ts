/*
 * Contract: what a commit does about waits. Take or register, bounded waits that end, second looks.
 */
import assert from 'node:assert/strict'
import type { SignalWait, WaitExpiry } from '../../../store/ports/turn_commits.ts'
import {
  createHeldRun,
  createRuns,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  pendingRow,
  same,
  sameRows,
  T0,
  takeAllBuffered,
  type StoreCase,
} from './support.ts'
import { commit } from './turn_commits.ts'

export const wait = (token: string, seq: number, runId = 'r'): SignalWait => ({
  waiter: makeWaiter(token, runId, seq),
  row: makeRow(runId, seq, { name: `signal:${token}`, kind: 'signal' }),
})

export const expiry = (token: string, seq: number, runId = 'r'): WaitExpiry => ({
  waiter: makeWaiter(token, runId, seq),
  row: makeRow(runId, seq, {
    name: `signal:${token}`,
    kind: 'signal',
    status: 'failed',
    error: { message: 'timeout', code: 'signal_timeout' },
  }),
})

const WAITS: StoreCase[] = [
  {
    name: 'a wait without a payload registers its waiter and leaves its position open',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const { waiter, row } = wait('t', 0)
      const tagged = { ...waiter, parallelGroup: 'all:0' }
      matches(await commit(store, { waits: [{ waiter: tagged, row }] }), {
        applied: true,
        stored: [],
      })
      same(await store.listSignalWaiters('t'), [tagged])
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  {
    name: 'a wait takes the oldest buffered payload, completes its row and is told',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.bufferSignal('t', { n: 1 })
      await store.bufferSignal('t', { n: 2 })
      const completed = { ...wait('t', 0).row, output: { n: 1 } }
      const verdict = await commit(store, { waits: [wait('t', 0)] })
      sameRows(verdict.stored, [completed])
      same(await store.listCheckpoints('r'), [completed])
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), [{ n: 2 }])
    },
  },
  {
    name: 'an undefined or null payload is a payload to a wait',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.bufferSignal('u', undefined)
      await store.bufferSignal('n', null)
      await commit(store, { waits: [wait('u', 0), wait('n', 1)] })
      matches(await store.getCheckpoint('r', 0), { status: 'completed', output: undefined })
      matches(await store.getCheckpoint('r', 1), { status: 'completed', output: null })
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
  {
    name: 'a wait that takes removes its own waiter and no other',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'r', 0))
      await store.putSignalWaiter(makeWaiter('u', 'other', 0))
      await store.bufferSignal('t', 1)
      await store.bufferSignal('u', 2)
      await commit(store, { waits: [wait('t', 0), wait('u', 1)] })
      same(await store.listSignalWaiters(''), [makeWaiter('u', 'other', 0)])
    },
  },
  {
    name: 'a wait replaces a pending row of its position with the payload',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.saveCheckpoint(pendingRow('r', 0, { kind: 'signal' }))
      await store.bufferSignal('t', 1)
      await commit(store, { waits: [wait('t', 0)] })
      same(await store.getCheckpoint('r', 0), { ...wait('t', 0).row, output: 1 })
    },
  },
  {
    name: 'a wait whose position is settled neither takes nor registers',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const standing = makeRow('r', 0, { output: 'delivered' })
      await store.saveCheckpoint(standing)
      await store.bufferSignal('t', 'kept')
      const verdict = await commit(store, { waits: [wait('t', 0)] })
      sameRows(verdict.stored, [standing])
      same(await store.getCheckpoint('r', 0), standing)
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), ['kept'])
    },
  },
  {
    name: "a wait that registers replaces another run's waiter of its token",
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'other', 4))
      await commit(store, { waits: [wait('t', 0)] })
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'r', 0)])
    },
  },
  {
    name: 'two waits of one token in one commit take one payload each, in order',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      for (const payload of ['a', 'b', 'c']) await store.bufferSignal('t', payload)
      await commit(store, { waits: [wait('t', 0), wait('t', 1)] })
      matches(await store.getCheckpoint('r', 0), { output: 'a' })
      matches(await store.getCheckpoint('r', 1), { output: 'b' })
      await commit(store, { waits: [wait('t', 2), wait('t', 3)] })
      matches(await store.getCheckpoint('r', 2), { output: 'c' })
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'r', 3)])
    },
  },
]

const EXPIRIES: StoreCase[] = [
  {
    name: 'a wait that ends writes its failure and removes its waiter',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'r', 0))
      matches(await commit(store, { expiries: [expiry('t', 0)] }), { applied: true, stored: [] })
      same(await store.getCheckpoint('r', 0), expiry('t', 0).row)
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
  {
    name: 'a wait that ends after its delivery keeps what was delivered and is told',
    requires: ['commitTurn', 'deliverSignal'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'r', 0))
      await store.deliverSignal({ token: 't', payload: 'paid', nowMs: T0, buffer: true })
      const verdict = await commit(store, { expiries: [expiry('t', 0)] })
      assert.equal(verdict.stored.length, 1)
      matches(verdict.stored[0], { seq: 0, status: 'completed', output: 'paid' })
      matches(await store.getCheckpoint('r', 0), { status: 'completed', output: 'paid' })
      assert.deepEqual(await takeAllBuffered(store, 't'), [])
    },
  },
  {
    name: "a wait that ends leaves another run's waiter and the buffer alone",
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'other', 0))
      await store.bufferSignal('t', 'kept')
      await commit(store, { expiries: [expiry('t', 0)] })
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'other', 0)])
      assert.deepEqual(await takeAllBuffered(store, 't'), ['kept'])
    },
  },
  {
    name: 'a payload for a wait that ended is buffered',
    requires: ['commitTurn', 'deliverSignal'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(makeWaiter('t', 'r', 0))
      await commit(store, { expiries: [expiry('t', 0)] })
      const outcome = await store.deliverSignal({
        token: 't',
        payload: 1,
        nowMs: T0,
        buffer: true,
      })
      same(outcome, { delivered: false, buffered: true })
      matches(await store.getCheckpoint('r', 0), { status: 'failed' })
      assert.deepEqual(await takeAllBuffered(store, 't'), [1])
    },
  },
]

const suspend = (...looks: SignalWait[]) => ({
  status: 'suspended' as const,
  patch: { wakeAt: T0 + 99 },
  looks,
})

const LOOKS: StoreCase[] = [
  {
    name: 'a second look that finds a payload takes it and asks for a wake',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await commit(store, { waits: [wait('t', 0)] })
      await store.bufferSignal('t', 'missed')
      const verdict = await commit(store, { settle: suspend(wait('t', 0)) })
      matches(verdict, { applied: true, status: 'suspended', wakeRequested: true })
      sameRows(verdict.stored, [{ ...wait('t', 0).row, output: 'missed' }])
      same(await store.getCheckpoint('r', 0), { ...wait('t', 0).row, output: 'missed' })
      matches(await store.getRun('r'), { wakeRequestedAt: T0, lockedBy: undefined })
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), [])
    },
  },
  {
    name: 'a second look that finds nothing changes nothing and never registers',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const verdict = await commit(store, { settle: suspend(wait('t', 0)) })
      matches(verdict, { applied: true, wakeRequested: false, stored: [] })
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  {
    name: 'a second look at a settled position leaves the payload in the buffer',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const standing = makeRow('r', 0, { output: 'delivered' })
      await store.saveCheckpoint(standing)
      await store.bufferSignal('t', 'kept')
      await commit(store, { settle: suspend(wait('t', 0)) })
      same(await store.getCheckpoint('r', 0), standing)
      assert.deepEqual(await takeAllBuffered(store, 't'), ['kept'])
    },
  },
  {
    name: 'a second look leaves a payload to the waiter that replaced its own',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await createRuns(store, makeRun('other', { status: 'suspended' }))
      await store.putSignalWaiter(makeWaiter('t', 'other', 0))
      await store.bufferSignal('t', 'theirs')
      const verdict = await commit(store, { settle: suspend(wait('t', 0)) })
      matches(verdict, { applied: true, wakeRequested: false, stored: [] })
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'other', 0)])
      assert.deepEqual(await takeAllBuffered(store, 't'), ['theirs'])
    },
  },
]

export const TURN_WAIT_CASES: StoreCase[] = [...WAITS, ...EXPIRIES, ...LOOKS]
