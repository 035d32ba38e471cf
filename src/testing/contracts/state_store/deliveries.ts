/*
 * Contract: delivery of a payload, the deliverer's second look, and the targets of results.
 */
import assert from 'node:assert/strict'
import { deliveredRow, type SignalOutcome } from '../../../store/ports/turn_commits.ts'
import { TERMINAL_RUN_STATUSES } from '../../../types/run.ts'
import {
  at,
  byText,
  createRuns,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  pendingRow,
  same,
  saveRows,
  sizeOf,
  T0,
  takeAllBuffered,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const deliver = (store: StoreUnderTest, payload: unknown, buffer = true) =>
  store.deliverSignal({ token: 't', payload, nowMs: T0 + 5, buffer })

const park = (store: StoreUnderTest, id = 'r') =>
  store.createRun(makeRun(id, { status: 'suspended', wakeAt: T0 + 99_999, turns: 1 }))

const DELIVERED: SignalOutcome = { delivered: true, runId: 'r', seq: 3 }
const BUFFERED: SignalOutcome = { delivered: false, buffered: true }

const DELIVERIES: StoreCase[] = [
  {
    name: 'a delivery completes the waiting position, takes the waiter and asks for a wake',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store)
      const waiter = makeWaiter('t', 'r', 3, { parallelGroup: 'all:3', createdAt: at(2) })
      await store.putSignalWaiter(waiter)
      same(await deliver(store, { paid: true }), DELIVERED)
      same(await store.getCheckpoint('r', 3), deliveredRow(waiter, { paid: true }, T0 + 5))
      matches(await store.getCheckpoint('r', 3), { name: 'signal:t', kind: 'signal' })
      assert.deepEqual(await store.listSignalWaiters(''), [])
      matches(await store.getRun('r'), {
        status: 'suspended',
        wakeRequestedAt: T0 + 5,
        wakeAt: T0 + 99_999,
      })
      assert.deepEqual(await takeAllBuffered(store, 't'), [])
    },
  },
  {
    name: 'a delivery completes a running run as well, without touching its lease',
    requires: ['deliverSignal'],
    async run(store) {
      await store.createRun(
        makeRun('r', { status: 'running', lockedBy: 'me', lockedUntil: T0 + 9, turns: 1 })
      )
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      same(await deliver(store, 1), DELIVERED)
      matches(await store.getRun('r'), {
        status: 'running',
        lockedBy: 'me',
        wakeRequestedAt: T0 + 5,
      })
    },
  },
  {
    name: 'a delivery replaces the open row of the waiting position',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store)
      await store.saveCheckpoint(pendingRow('r', 3, { status: 'running', kind: 'signal' }))
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      await deliver(store, undefined)
      same(
        await store.getCheckpoint('r', 3),
        deliveredRow(makeWaiter('t', 'r', 3), undefined, T0 + 5)
      )
    },
  },
  {
    name: 'a payload nobody waits for is buffered when asked, in order',
    requires: ['deliverSignal'],
    async run(store) {
      same(await deliver(store, 1), BUFFERED)
      same(await deliver(store, undefined), BUFFERED)
      same(await deliver(store, 3, false), { delivered: false, buffered: false })
      assert.deepEqual(await takeAllBuffered(store, 't'), [1, undefined])
    },
  },
  {
    name: 'a token is matched exactly',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store)
      await store.putSignalWaiter(makeWaiter('T', 'r', 3))
      await store.putSignalWaiter(makeWaiter('t2', 'r', 4))
      same(await deliver(store, 1), BUFFERED)
      assert.equal(sizeOf(await store.listSignalWaiters('')), 2)
    },
  },
  ...TERMINAL_RUN_STATUSES.map((status): StoreCase => ({
    name: `a waiter of a ${status} run is removed and the payload buffered`,
    requires: ['deliverSignal'],
    async run(store) {
      await store.createRun(makeRun('r', { status }))
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      same(await deliver(store, 1), BUFFERED)
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await store.listCheckpoints('r'), [])
      matches(await store.getRun('r'), { status, wakeRequestedAt: undefined })
      assert.deepEqual(await takeAllBuffered(store, 't'), [1])
    },
  })),
  {
    name: 'a waiter of a run that is gone is removed and the payload buffered',
    requires: ['deliverSignal'],
    async run(store) {
      await store.putSignalWaiter(makeWaiter('t', 'nobody', 3))
      same(await deliver(store, 1), BUFFERED)
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await store.listCheckpoints('nobody'), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), [1])
    },
  },
  ...(['completed', 'failed'] as const).map((status): StoreCase => ({
    name: `a waiter whose position is ${status} goes, and the payload is kept`,
    requires: ['deliverSignal'],
    async run(store) {
      await park(store)
      const standing = makeRow('r', 3, { status, output: 'kept' })
      await store.saveCheckpoint(standing)
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      same(await deliver(store, 1), BUFFERED)
      same(await store.getCheckpoint('r', 3), standing)
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), [1])
    },
  })),
  {
    name: 'a delivery that fails keeps waiter and buffer',
    requires: ['deliverSignal'],
    async run(store) {
      await park(store)
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      await store.bufferSignal('t', 'earlier')
      await assert.rejects(deliver(store, 10n))
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'r', 3)])
      assert.deepEqual(await store.listCheckpoints('r'), [])
      matches(await store.getRun('r'), { wakeRequestedAt: undefined })
      assert.deepEqual(await takeAllBuffered(store, 't'), ['earlier'])
    },
  },
]

const PAIRS: StoreCase[] = [
  {
    name: 'a second look pairs a waiter with the oldest buffered payload',
    requires: ['pairSignal'],
    async run(store) {
      await park(store)
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      await store.bufferSignal('t', 'first')
      await store.bufferSignal('t', 'second')
      same(await store.pairSignal('t', T0 + 5), DELIVERED)
      same(
        await store.getCheckpoint('r', 3),
        deliveredRow(makeWaiter('t', 'r', 3), 'first', T0 + 5)
      )
      matches(await store.getRun('r'), { wakeRequestedAt: T0 + 5 })
      assert.deepEqual(await store.listSignalWaiters(''), [])
      assert.deepEqual(await takeAllBuffered(store, 't'), ['second'])
    },
  },
  {
    name: 'a second look without a waiter, or without a payload, changes nothing',
    requires: ['pairSignal'],
    async run(store) {
      await park(store)
      await store.putSignalWaiter(makeWaiter('t', 'r', 3))
      matches(await store.pairSignal('t', T0), { delivered: false })
      same(await store.listSignalWaiters(''), [makeWaiter('t', 'r', 3)])
      matches(await store.getRun('r'), { wakeRequestedAt: undefined })
      await store.bufferSignal('u', 1)
      matches(await store.pairSignal('u', T0), { delivered: false })
      assert.deepEqual(await takeAllBuffered(store, 'u'), [1])
    },
  },
  {
    name: 'a second look keeps the payload when the waiter is dead or its position settled',
    requires: ['pairSignal'],
    async run(store) {
      await createRuns(store, makeRun('dead', { status: 'completed' }))
      await park(store)
      const standing = makeRow('r', 3, { output: 'kept' })
      await store.saveCheckpoint(standing)
      for (const [token, runId] of [
        ['a', 'dead'],
        ['b', 'r'],
        ['c', 'nobody'],
      ]) {
        await store.putSignalWaiter(makeWaiter(token, runId, 3))
        await store.bufferSignal(token, token)
        matches(await store.pairSignal(token, T0), { delivered: false })
        assert.deepEqual(await takeAllBuffered(store, token), [token])
      }
      same(await store.getCheckpoint('r', 3), standing)
      assert.deepEqual(await store.listCheckpoints('dead'), [])
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
]

const TARGETS: StoreCase[] = [
  {
    name: 'targets are the rows of results without input, with what is needed of their runs',
    requires: ['settleTargets'],
    async run(store) {
      const fields = { status: 'suspended', workflow: 'w', workflowVersion: '2' } as const
      await createRuns(
        store,
        makeRun('a', { ...fields, namespace: 'acme', waitSeqs: { from: 0, to: 4 } }),
        makeRun('b', { status: 'cancelled' })
      )
      await saveRows(store, pendingRow('a', 0), makeRow('a', 1), pendingRow('b', 0))
      const targets = await store.settleTargets([
        { runId: 'b', seq: 0 },
        { runId: 'a', seq: 0 },
        { runId: 'a', seq: 1 },
        { runId: 'a', seq: 0 },
      ])
      const run = {
        runStatus: 'suspended' as const,
        workflow: 'w',
        workflowVersion: '2',
        namespace: 'acme',
        waitSeqs: { from: 0, to: 4 },
      }
      same(
        targets.sort((x, y) => byText(x.checkpoint.stepId, y.checkpoint.stepId)),
        [
          { checkpoint: { ...pendingRow('a', 0), input: undefined }, ...run },
          { checkpoint: makeRow('a', 1), ...run },
          {
            checkpoint: { ...pendingRow('b', 0), input: undefined },
            runStatus: 'cancelled',
            workflow: 'orders',
            workflowVersion: '1',
            namespace: 'default',
          },
        ]
      )
    },
  },
  {
    name: 'a row or a run that is gone is no target',
    requires: ['settleTargets'],
    async run(store) {
      await createRuns(store, makeRun('a'))
      await saveRows(store, pendingRow('a', 0), pendingRow('nobody', 0))
      const targets = await store.settleTargets([
        { runId: 'a', seq: 7 },
        { runId: 'nobody', seq: 0 },
      ])
      assert.deepEqual(targets, [])
      assert.deepEqual(await store.settleTargets([]), [])
    },
  },
]

export const DELIVERY_CASES: StoreCase[] = [...DELIVERIES, ...PAIRS, ...TARGETS]
