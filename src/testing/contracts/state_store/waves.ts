/*
 * Contract: deliveries into a range of positions that a run awaits as one.
 */
import assert from 'node:assert/strict'
import type { SignalDelivery, SignalOutcome } from '../../../store/ports/turn_commits.ts'
import type { WorkflowRun } from '../../../types/run.ts'
import {
  makeRun,
  makeWaiter,
  matches,
  range,
  same,
  T0,
  takeAllBuffered,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const WAVE = { from: 3, to: 5 }

const deliver = (store: StoreUnderTest, token: string, fields: Partial<SignalDelivery> = {}) =>
  store.deliverSignal({ token, payload: token, nowMs: T0 + 5, buffer: false, ...fields })

/** A run that awaits positions 3 to 5, with a waiter `t<seq>` at each of these positions. */
async function park(
  store: StoreUnderTest,
  waitersAt: number[],
  fields: { group?: string; run?: Partial<WorkflowRun> } = {}
): Promise<void> {
  const { group: parallelGroup, run } = fields
  await store.createRun(
    makeRun('r', { status: 'suspended', wakeAt: T0 + 99_999, turns: 1, waitSeqs: WAVE, ...run })
  )
  for (const seq of waitersAt) {
    const tag = parallelGroup === undefined ? {} : { parallelGroup }
    await store.putSignalWaiter(makeWaiter(`t${seq}`, 'r', seq, tag))
  }
}

const held = (seq: number): SignalOutcome => ({ delivered: true, runId: 'r', seq, wave: WAVE })
const woken = (seq: number): SignalOutcome => ({ delivered: true, runId: 'r', seq })

/** Whether the run was asked to wake since the last look. */
async function asked(store: StoreUnderTest): Promise<boolean> {
  const run = await store.getRun('r')
  await store.updateRun('r', { wakeRequestedAt: undefined })
  return run?.wakeRequestedAt !== undefined
}

const DELIVERIES: StoreCase[] = [
  {
    name: 'a delivery inside the awaited range completes its position, tells the range and wakes nobody',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [3, 4, 5], { group: 'all:3' })
      for (const seq of [4, 3, 5]) {
        same(await deliver(store, `t${seq}`), held(seq))
        assert.equal(await asked(store), false)
        matches(await store.getCheckpoint('r', seq), {
          status: 'completed',
          output: `t${seq}`,
          parallelGroup: 'all:3',
        })
      }
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await store.listDueTimers(T0 + 9), [])
      matches(await store.getRun('r'), { waitSeqs: WAVE, wakeAt: T0 + 99_999 })
    },
  },
  {
    name: 'a delivery one beside the awaited range wakes',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [2, 6])
      for (const seq of [2, 6]) {
        same(await deliver(store, `t${seq}`), woken(seq))
        assert.equal(await asked(store), true)
      }
    },
  },
  {
    name: 'a failure inside the awaited range of a fail-fast fan wakes, a success does not',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [3, 4, 5], { group: 'all:3:ff' })
      same(await deliver(store, 't3'), held(3))
      same(await deliver(store, 't4', { urgent: false }), held(4))
      assert.equal(await asked(store), false)
      same(await deliver(store, 't5', { urgent: true }), woken(5))
      assert.equal(await asked(store), true)
    },
  },
  ...[undefined, 'all:3', 'all:3:n9', 'all:3:ffx', 'ff'].map((group): StoreCase => ({
    name: `a failure inside the awaited range of group ${group ?? 'none'} does not wake`,
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [4], { group })
      same(await deliver(store, 't4', { urgent: true }), held(4))
      assert.equal(await asked(store), false)
    },
  })),
  {
    name: 'a failure of a fail-fast fan in waves wakes too',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [4], { group: 'all:0:n9:ff' })
      same(await deliver(store, 't4', { urgent: true }), woken(4))
      assert.equal(await asked(store), true)
    },
  },
  {
    name: 'a run that awaits no range is woken by every delivery',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [4], { group: 'all:3', run: { waitSeqs: undefined } })
      same(await deliver(store, 't4'), woken(4))
      assert.equal(await asked(store), true)
    },
  },
  {
    name: 'a range is that of the run which waits: a claim ends it',
    requires: ['deliverSignal', 'claimRun'],
    async run(store) {
      await park(store, [4], { group: 'all:3' })
      const from = ['suspended' as const]
      await store.claimRun({ runId: 'r', owner: 'me', leaseUntilMs: T0 + 99, nowMs: T0, from })
      same(await deliver(store, 't4'), woken(4))
      assert.equal(await asked(store), true)
    },
  },
  {
    name: 'a delivery that finds no open position inside the range tells no range',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store, [4], { run: { status: 'cancelled' } })
      same(await deliver(store, 't4', { buffer: true }), { delivered: false, buffered: true })
      assert.equal(await asked(store), false)
      assert.deepEqual(await takeAllBuffered(store, 't4'), ['t4'])
    },
  },
  {
    name: 'deliveries into one range at once: all settle, and nobody is woken',
    requires: ['deliverSignal'],
    async run(store) {
      const wave = { from: 0, to: 7 }
      await park(store, range(0, 7), { group: 'all:0', run: { waitSeqs: wave } })
      const outcomes = await Promise.all(range(0, 7).map((seq) => deliver(store, `t${seq}`)))
      for (const outcome of outcomes) matches(outcome, { delivered: true, wave })
      assert.equal(await asked(store), false)
      const rows = await store.listCheckpoints('r')
      assert.equal(rows.filter((row) => row.status === 'completed').length, 8)
    },
  },
]

const PAIRS: StoreCase[] = [
  {
    name: 'a second look inside the awaited range pairs, tells the range and wakes nobody',
    requires: ['pairSignal'],
    async run(store) {
      await park(store, [4], { group: 'all:3' })
      await store.bufferSignal('t4', 'first')
      await store.bufferSignal('t4', 'second')
      same(await store.pairSignal('t4', T0 + 5), held(4))
      assert.equal(await asked(store), false)
      matches(await store.getCheckpoint('r', 4), { output: 'first', parallelGroup: 'all:3' })
      assert.deepEqual(await takeAllBuffered(store, 't4'), ['second'])
    },
  },
  {
    name: 'a second look beside the awaited range wakes',
    requires: ['pairSignal'],
    async run(store) {
      await park(store, [6])
      await store.bufferSignal('t6', 1)
      same(await store.pairSignal('t6', T0 + 5), woken(6))
      assert.equal(await asked(store), true)
    },
  },
]

export const WAVE_CASES: StoreCase[] = [...DELIVERIES, ...PAIRS]
