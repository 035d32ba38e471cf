/*
 * Contract: runs that a commit inserts, and the end of a turn.
 */
import assert from 'node:assert/strict'
import type { SeqRange } from '../../../foundation/control_flow.ts'
import { SINGLETON_ADMITTED, SINGLETON_TRACKED } from '../../../store/ports/singleton_rules.ts'
import {
  at,
  createHeldRun,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  pendingRow,
  same,
  T0,
  takeAllBuffered,
  type StoreCase,
} from './support.ts'
import { commit } from './turn_commits.ts'
import { expiry, wait } from './turn_waits.ts'

const RUNS: StoreCase[] = [
  {
    name: 'a commit inserts runs, ready to be found and queried',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const child = makeRun('child', { searchAttributes: { region: 'eu' }, awaited: true })
      const later = makeRun('later', { status: 'suspended', wakeAt: T0 + 5, namespace: 'acme' })
      matches(await commit(store, { runs: [child, later] }), { applied: true })
      matches(await store.getRun('child'), { ...child, namespace: 'default' })
      matches(await store.getRun('later'), later)
      assert.deepEqual(ids(await store.listPendingRuns(9)), ['child'])
      assert.deepEqual(ids(await store.listDueTimers(T0 + 5)), ['later'])
      const attributes = [{ key: 'region', op: 'eq', value: 'eu' } as const]
      assert.deepEqual(ids(await store.listRuns({ attributes })), ['child'])
    },
  },
  {
    name: 'a commit leaves a run whose id exists, and applies the rest',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const fields = { input: 'first', status: 'completed', searchAttributes: { n: 1 } } as const
      await createRuns(store, makeRun('child', fields))
      const runs = [makeRun('child', { searchAttributes: { n: 2 } }), makeRun('other')]
      const rows = [{ row: pendingRow('r', 0) }]
      matches(await commit(store, { runs, rows }), { applied: true })
      matches(await store.getRun('child'), fields)
      assert.ok(await store.getRun('other'))
      assert.ok(await store.getCheckpoint('r', 0))
      const found = (value: number) =>
        store.listRuns({ attributes: [{ key: 'n', op: 'eq', value }] })
      assert.deepEqual([ids(await found(1)), ids(await found(2))], [['child'], []])
    },
  },
  {
    name: 'the completion of a link and its successor are one act',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { wakeAt: T0 + 7 })
      const verdict = await commit(store, {
        runs: [makeRun('r~1', { input: 'next' })],
        settle: { status: 'completed', patch: { wakeAt: undefined, updatedAt: at(9) } },
      })
      matches(verdict, { applied: true, status: 'completed' })
      matches(await store.getRun('r'), {
        status: 'completed',
        lockedBy: undefined,
        wakeAt: undefined,
        updatedAt: at(9),
      })
      matches(await store.getRun('r~1'), { status: 'pending', input: 'next', wakeAt: undefined })
      assert.deepEqual(ids(await store.listPendingRuns(9)), ['r~1'])
    },
  },
  {
    name: 'a completion that is refused leaves no successor that runs',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { status: 'cancelled' })
      await commit(store, {
        runs: [makeRun('r~1')],
        settle: { status: 'completed', patch: {} },
      })
      assert.equal(await store.getRun('r~1'), null)
    },
  },
]

const SETTLES: StoreCase[] = [
  {
    name: 'a settle writes status and patch and releases the lease',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { awaited: true, error: { message: 'old' }, priority: 3 })
      const verdict = await commit(store, {
        settle: {
          status: 'suspended',
          patch: {
            wakeAt: T0 + 50,
            waitSeqs: { from: 1, to: 4 },
            error: undefined,
            recoveryAttempts: 0,
          },
        },
      })
      same(verdict, {
        applied: true,
        status: 'suspended',
        wakeRequested: false,
        cancelRequested: false,
        awaited: true,
        stored: [],
      })
      matches(await store.getRun('r'), {
        status: 'suspended',
        wakeAt: T0 + 50,
        waitSeqs: { from: 1, to: 4 },
        error: undefined,
        recoveryAttempts: 0,
        priority: 3,
        turns: 1,
        lockedBy: undefined,
        lockedUntil: undefined,
      })
      assert.equal(await store.tryLockRun('r', 'other', T0 + 99, T0), true)
    },
  },
  {
    name: 'a range that a settle writes is there until a claim or a later settle takes it',
    requires: ['commitTurn', 'claimRun'],
    async run(store) {
      await createHeldRun(store, 'r', { waitSeqs: { from: 0, to: 9 } })
      const park = (turn: number, waitSeqs: SeqRange | undefined) =>
        commit(store, { turn, settle: { status: 'suspended', patch: { waitSeqs } } })
      const claim = () =>
        store.claimRun({
          runId: 'r',
          owner: 'me',
          leaseUntilMs: T0 + 99,
          nowMs: T0,
          from: ['suspended'],
        })
      await park(1, { from: 2, to: 70_000 })
      matches(await store.getRun('r'), { waitSeqs: { from: 2, to: 70_000 } })
      const claimed = await claim()
      matches(claimed!.run, { waitSeqs: undefined, turns: 2 })
      matches(await store.getRun('r'), { waitSeqs: undefined })
      await store.updateRun('r', { waitSeqs: { from: 1, to: 1 } })
      await park(2, undefined)
      matches(await store.getRun('r'), { waitSeqs: undefined, status: 'suspended' })
    },
  },
  {
    name: 'settles and claims keep the intent of a cancel, how it is meant and who asked',
    requires: ['commitTurn', 'claimRun'],
    async run(store) {
      const intent = {
        cancelRequestedAt: T0 + 1,
        cancelRequestedBy: 'ops',
        cancelCompensates: true,
      }
      await createHeldRun(store, 'r', intent)
      const settle = { status: 'suspended', patch: {}, evenIfCancelRequested: true } as const
      matches(await commit(store, { settle }), { applied: true, cancelRequested: true })
      matches(await store.getRun('r'), intent)
      const from = ['suspended' as const]
      const claimed = await store.claimRun({
        runId: 'r',
        owner: 'me',
        leaseUntilMs: T0 + 99,
        nowMs: T0,
        from,
      })
      matches(claimed!.run, intent)
      const end = { status: 'cancelled', patch: { error: { message: 'cancelled' } } } as const
      matches(await commit(store, { turn: 2, settle: end }), { applied: true })
      matches(await store.getRun('r'), { ...intent, status: 'cancelled' })
    },
  },
  {
    name: 'a settle notes its instant unless the patch says another',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await createHeldRun(store, 's')
      const settle = { status: 'suspended', patch: { wakeAt: T0 + 50 } } as const
      await commit(store, { nowMs: T0 + 33, settle })
      matches(await store.getRun('r'), { updatedAt: at(33) })
      const patch = { wakeAt: T0 + 50, updatedAt: at(44) }
      await commit(store, { runId: 's', nowMs: T0 + 33, settle: { status: 'suspended', patch } })
      matches(await store.getRun('s'), { updatedAt: at(44) })
    },
  },
  {
    name: 'a settle keeps a wake request that came during the turn, and tells it',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.updateRun('r', { wakeRequestedAt: T0 + 3 })
      const settle = { status: 'suspended', patch: { wakeAt: undefined } } as const
      matches(await commit(store, { settle }), { applied: true, wakeRequested: true })
      matches(await store.getRun('r'), { status: 'suspended', wakeRequestedAt: T0 + 3 })
      assert.deepEqual(ids(await store.listDueTimers(T0 + 3)), ['r'])
    },
  },
  {
    name: 'a settle is refused under a cancel intent, and nothing of its commit applies',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 + 1 })
      await store.putSignalWaiter(makeWaiter('old', 'r', 3))
      await store.bufferSignal('early', 'kept')
      await store.saveCheckpoint(makeRow('r', 9))
      const verdict = await commit(store, {
        rows: [{ row: makeRow('r', 0) }],
        waits: [wait('early', 1), wait('new', 2)],
        expiries: [expiry('old', 3)],
        stamps: [{ seq: 9, order: 1 }],
        runs: [makeRun('r~1')],
        settle: { status: 'completed', patch: { output: 1 } },
      })
      matches(verdict, {
        applied: false,
        status: 'running',
        cancelRequested: true,
        stored: [],
      })
      same(await store.listCheckpoints('r'), [makeRow('r', 9)])
      same(await store.listSignalWaiters(''), [makeWaiter('old', 'r', 3)])
      assert.deepEqual(await takeAllBuffered(store, 'early'), ['kept'])
      assert.equal(await store.getRun('r~1'), null)
      matches(await store.getRun('r'), { status: 'running', lockedBy: 'me', output: undefined })
    },
  },
  {
    name: 'a settle as cancelled applies under a cancel intent, and may clear it',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 + 1, cancelRequestedBy: 'ops' })
      const patch = { error: { message: 'cancelled' } }
      const verdict = await commit(store, { settle: { status: 'cancelled', patch } })
      matches(verdict, { applied: true, status: 'cancelled', cancelRequested: true })
      matches(await store.getRun('r'), {
        status: 'cancelled',
        cancelRequestedAt: T0 + 1,
        lockedBy: undefined,
      })
      await createHeldRun(store, 's', { cancelRequestedAt: T0 + 1 })
      const clearing = { status: 'cancelled', patch: { cancelRequestedAt: undefined } } as const
      const cleared = await commit(store, { runId: 's', settle: clearing })
      matches(cleared, { applied: true, cancelRequested: false })
    },
  },
  {
    name: 'a settle that says so applies although the run carries a cancel intent, and tells it',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 + 1 })
      const verdict = await commit(store, {
        rows: [{ row: pendingRow('r', 0) }],
        settle: {
          status: 'suspended',
          patch: { wakeAt: T0 + 9 },
          evenIfCancelRequested: true,
        },
      })
      matches(verdict, { applied: true, status: 'suspended', cancelRequested: true })
      matches(await store.getRun('r'), { lockedBy: undefined, cancelRequestedAt: T0 + 1 })
      assert.ok(await store.getCheckpoint('r', 0))
    },
  },
  {
    name: 'a commit that does not settle applies under a cancel intent and tells it',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 + 1 })
      const verdict = await commit(store, { rows: [{ row: pendingRow('r', 0) }] })
      matches(verdict, { applied: true, cancelRequested: true })
      assert.ok(await store.getCheckpoint('r', 0))
    },
  },
  {
    name: 'a terminal settle takes the singleton marks and keeps the other tags',
    requires: ['commitTurn'],
    async run(store) {
      const tags = ['user', 'singleton:k', SINGLETON_ADMITTED, SINGLETON_TRACKED]
      await createHeldRun(store, 'r', { tags })
      await createHeldRun(store, 's', { tags })
      await commit(store, { settle: { status: 'completed', patch: { output: null } } })
      matches(await store.getRun('r'), { tags: ['user', 'singleton:k'], output: null })
      const parked = { status: 'suspended', patch: { wakeAt: T0 + 9 } } as const
      await commit(store, { runId: 's', settle: parked })
      matches(await store.getRun('s'), { tags })
    },
  },
  {
    name: 'a settle leaves the attributes that were upserted during the turn',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { searchAttributes: { step: 1 } })
      await store.updateRun('r', { searchAttributes: { step: 2 } })
      await commit(store, { settle: { status: 'completed', patch: { output: 1 } } })
      const attributes = [{ key: 'step', op: 'eq', value: 2 } as const]
      assert.deepEqual(ids(await store.listRuns({ attributes })), ['r'])
    },
  },
  {
    name: 'after a settle the turn is over: nothing more of it applies',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const settle = { status: 'suspended', patch: { wakeAt: T0 + 9 } } as const
      matches(await commit(store, { settle }), { applied: true })
      matches(await commit(store, { settle }), { applied: false, status: 'suspended' })
      const late = await commit(store, { rows: [{ row: pendingRow('r', 0) }] })
      matches(late, { applied: false, stored: [] })
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
]

export const TURN_SETTLE_CASES: StoreCase[] = [...RUNS, ...SETTLES]
