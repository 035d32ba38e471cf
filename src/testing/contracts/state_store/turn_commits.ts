/*
 * Contract: one commit of a turn, its fence, its rows and its order stamps.
 */
import assert from 'node:assert/strict'
import type { TurnCommit, TurnVerdict } from '../../../store/ports/turn_commits.ts'
import { LIVE_RUN_STATUSES, TERMINAL_RUN_STATUSES } from '../../../types/run.ts'
import {
  at,
  createHeldRun,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  pendingRow,
  range,
  same,
  sameRows,
  saveRows,
  seqs,
  T0,
  takeAllBuffered,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

export const commit = (
  store: StoreUnderTest,
  fields: Partial<TurnCommit> = {}
): Promise<TurnVerdict> =>
  store.commitTurn({ runId: 'r', owner: 'me', turn: 1, nowMs: T0, ...fields })

/** One of everything that a commit can carry. */
const everything = (): Partial<TurnCommit> => ({
  rows: [{ row: pendingRow('r', 0) }],
  stamps: [{ seq: 9, order: 0 }],
  waits: [
    { waiter: makeWaiter('new', 'r', 1), row: makeRow('r', 1) },
    { waiter: makeWaiter('early', 'r', 2), row: makeRow('r', 2) },
  ],
  expiries: [{ waiter: makeWaiter('old', 'r', 3), row: makeRow('r', 3, { status: 'failed' }) }],
  runs: [makeRun('child')],
  children: [makeRun('kid', { awaited: true }), makeRun('standing', { awaited: true })],
  settle: { status: 'suspended', patch: { wakeAt: T0 + 5 } },
})

/** What `everything` would touch, as it is before. */
async function prepare(store: StoreUnderTest): Promise<void> {
  await store.saveCheckpoint(makeRow('r', 9))
  await store.createRun(makeRun('standing'))
  await store.bufferSignal('early', 'payload')
  await store.putSignalWaiter(makeWaiter('old', 'r', 3))
}

async function nothingChanged(store: StoreUnderTest): Promise<void> {
  same(await store.listCheckpoints('r'), [makeRow('r', 9)])
  assert.deepEqual(tokens(await store.listSignalWaiters('')), ['old'])
  assert.deepEqual(await takeAllBuffered(store, 'early'), ['payload'])
  assert.equal(await store.getRun('child'), null)
  assert.equal(await store.getRun('kid'), null)
  matches(await store.getRun('standing'), { awaited: undefined })
}

const REFUSED = { applied: false, stored: [] }

const FENCE: StoreCase[] = [
  {
    name: 'a commit of another owner applies nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { wakeRequestedAt: T0, awaited: true })
      await prepare(store)
      matches(await commit(store, { ...everything(), owner: 'other' }), {
        ...REFUSED,
        status: 'running',
        wakeRequested: true,
        cancelRequested: false,
        awaited: true,
      })
      await nothingChanged(store)
      matches(await store.getRun('r'), { status: 'running', lockedBy: 'me', wakeAt: undefined })
    },
  },
  {
    name: 'a commit of an earlier turn of the same owner applies nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { turns: 2 })
      await prepare(store)
      matches(await commit(store, everything()), { ...REFUSED, status: 'running' })
      await nothingChanged(store)
      matches(await store.getRun('r'), { lockedBy: 'me', turns: 2 })
      matches(await commit(store, { turn: 3 }), REFUSED)
      matches(await commit(store, { turn: 2 }), { applied: true })
    },
  },
  ...TERMINAL_RUN_STATUSES.map((status): StoreCase => ({
    name: `a commit on a ${status} run applies nothing`,
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { status })
      await prepare(store)
      matches(await commit(store, everything()), { ...REFUSED, status })
      await nothingChanged(store)
      matches(await store.getRun('r'), { status, lockedBy: 'me' })
    },
  })),
  {
    name: 'a commit on a released lease, or on a run that is gone, applies nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.releaseRunLock('r', 'me')
      await prepare(store)
      matches(await commit(store, everything()), { ...REFUSED, status: 'running' })
      await nothingChanged(store)
      await store.deleteRun('r')
      matches(await commit(store, { rows: [{ row: pendingRow('r', 0) }] }), {
        ...REFUSED,
        status: null,
        wakeRequested: false,
        cancelRequested: false,
        awaited: false,
      })
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  ...LIVE_RUN_STATUSES.map((status): StoreCase => ({
    name: `a commit of the holder applies to a ${status} run, also when its lease has lapsed`,
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { status, lockedUntil: T0 - 5 })
      const verdict = await commit(store, { rows: [{ row: pendingRow('r', 0) }] })
      same(verdict, {
        applied: true,
        status,
        wakeRequested: false,
        cancelRequested: false,
        awaited: false,
        stored: [],
      })
      same(await store.listCheckpoints('r'), [pendingRow('r', 0)])
    },
  })),
  {
    name: 'an empty commit tells whether the turn may still write',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 })
      matches(await commit(store), { applied: true, cancelRequested: true })
    },
  },
]

const ROWS: StoreCase[] = [
  {
    name: 'a commit writes rows, new ones and over unsettled ones, whole',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await saveRows(
        store,
        pendingRow('r', 0, { wakeAt: 7, parallelGroup: 'all:0', order: 4 }),
        pendingRow('r', 1, { status: 'running' })
      )
      const rows = [
        makeRow('r', 0, { output: { a: 1 } }),
        makeRow('r', 1, { status: 'failed', error: { message: 'no' } }),
        pendingRow('r', 2, { order: 3, maxAttempts: 5, timeoutMs: 9 }),
        makeRow('r', -1, { status: 'running', name: 'compensate:x' }),
      ]
      matches(await commit(store, { rows: rows.map((row) => ({ row })) }), {
        applied: true,
        stored: [],
      })
      sameRows(await store.listCheckpoints('r'), rows)
    },
  },
  {
    name: 'a commit keeps the beat of a row it replaces',
    requires: ['commitTurn', 'recordStepHeartbeat'],
    async run(store) {
      await createHeldRun(store, 'r')
      const before = pendingRow('r', 0)
      await store.saveCheckpoint(before)
      await store.recordStepHeartbeat('r', 0, at(40), 'half')
      await commit(store, { rows: [{ row: pendingRow('r', 0, { attempts: 2 }) }] })
      matches(await store.getCheckpoint('r', 0), {
        attempts: 2,
        lastHeartbeatAt: at(40),
        heartbeatProgress: 'half',
      })
    },
  },
  {
    name: 'a settled row is never replaced, and the loser is told what stands',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const completed = makeRow('r', 0, { output: 'theirs', order: 0 })
      const failed = makeRow('r', 1, { status: 'failed', error: { message: 'theirs' } })
      await saveRows(store, completed, failed)
      const verdict = await commit(store, {
        rows: [
          { row: makeRow('r', 0, { output: 'mine' }) },
          { row: pendingRow('r', 1) },
          { row: makeRow('r', 2, { output: 'mine' }) },
        ],
      })
      matches(verdict, { applied: true })
      sameRows(verdict.stored, [completed, failed])
      sameRows(await store.listCheckpoints('r'), [
        completed,
        failed,
        makeRow('r', 2, { output: 'mine' }),
      ])
    },
  },
  {
    name: 'a failed row is replaced by the retry of exactly that attempt',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await saveRows(
        store,
        ...[0, 1, 2].map((seq) =>
          makeRow('r', seq, { status: seq === 2 ? 'completed' : 'failed', attempts: 2, order: seq })
        )
      )
      const verdict = await commit(store, {
        rows: [
          { row: pendingRow('r', 0, { attempts: 3 }), retryOf: 2 },
          { row: pendingRow('r', 1, { attempts: 2 }), retryOf: 1 },
          { row: pendingRow('r', 2, { attempts: 3 }), retryOf: 2 },
          { row: pendingRow('r', 3, { attempts: 3 }), retryOf: 2 },
        ],
      })
      assert.deepEqual(seqs(verdict.stored).sort(), [1, 2])
      same(await store.getCheckpoint('r', 0), pendingRow('r', 0, { attempts: 3 }))
      matches(await store.getCheckpoint('r', 1), { status: 'failed', attempts: 2, order: 1 })
      matches(await store.getCheckpoint('r', 2), { status: 'completed', attempts: 2, order: 2 })
      same(await store.getCheckpoint('r', 3), pendingRow('r', 3, { attempts: 3 }))
    },
  },
  {
    name: 'a commit sent twice changes nothing the second time',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await saveRows(store, makeRow('r', 5, { status: 'failed' }), makeRow('r', 9))
      await store.bufferSignal('early', 'first')
      await store.bufferSignal('early', 'second')
      await store.createRun(makeRun('standing', { status: 'completed', output: 1 }))
      const { settle, ...fields } = everything()
      const rows = [
        { row: makeRow('r', 0, { output: 'mine', order: 1 }) },
        { row: pendingRow('r', 5, { attempts: 2 }), retryOf: 1 },
      ]
      matches(await commit(store, { ...fields, rows }), { applied: true })
      const before = await store.listCheckpoints('r')
      await store.updateRun('child', { priority: 5 })
      await store.updateRun('kid', { priority: 6 })
      matches(await commit(store, { ...fields, rows }), { applied: true })
      same(await store.listCheckpoints('r'), before)
      matches(await store.getRun('child'), { priority: 5 })
      matches(await store.getRun('kid'), { priority: 6, awaited: true })
      matches(await store.getRun('standing'), { output: 1, awaited: true })
      assert.deepEqual(await takeAllBuffered(store, 'early'), ['second'])
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['new'])
    },
  },
  {
    name: 'a commit sent again leaves a result that landed in between',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const rows = [{ row: pendingRow('r', 0) }]
      await commit(store, { rows })
      const result = makeRow('r', 0, { output: 'result' })
      await store.saveCheckpoint(result)
      const again = await commit(store, { rows })
      sameRows(again.stored, [result])
      same(await store.getCheckpoint('r', 0), result)
    },
  },
  {
    name: 'a commit with a value that cannot be stored rejects and applies nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await prepare(store)
      const rows = [{ row: pendingRow('r', 0) }, { row: makeRow('r', 1, { output: 10n }) }]
      await assert.rejects(commit(store, { ...everything(), rows }))
      await nothingChanged(store)
      matches(await store.getRun('r'), { status: 'running', lockedBy: 'me' })
    },
  },
  {
    name: 'a commit may carry more rows than one statement holds',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const many = range(0, 1199)
      await saveRows(store, makeRow('r', 600, { output: 'theirs' }))
      const verdict = await commit(store, {
        rows: many.map((seq) => ({ row: pendingRow('r', seq, { parallelGroup: 'all:0' }) })),
      })
      assert.deepEqual(seqs(verdict.stored), [600])
      const stored = await store.listCheckpoints('r')
      assert.deepEqual(seqs(stored), many)
      same(stored[77], pendingRow('r', 77, { parallelGroup: 'all:0' }))
    },
  },
]

const STAMPS: StoreCase[] = [
  {
    name: 'a stamp orders a row that has no order and changes nothing else of it',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const rows = [
        makeRow('r', 0, { input: { kept: true }, output: [1] }),
        makeRow('r', 1, { order: 0 }),
        pendingRow('r', 2),
      ]
      await saveRows(store, ...rows)
      const stamps = [
        { seq: 0, order: 3 },
        { seq: 1, order: 4 },
        { seq: 2, order: 0 },
        { seq: 8, order: 5 },
      ]
      matches(await commit(store, { stamps }), { applied: true })
      same(await store.listCheckpoints('r'), [
        { ...rows[0], order: 3 },
        rows[1],
        { ...rows[2], order: 0 },
      ])
    },
  },
  {
    name: 'a stamp is given once',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.saveCheckpoint(makeRow('r', 0))
      await commit(store, { stamps: [{ seq: 0, order: 0 }] })
      await commit(store, { stamps: [{ seq: 0, order: 7 }] })
      matches(await store.getCheckpoint('r', 0), { order: 0 })
    },
  },
]

export const TURN_COMMIT_CASES: StoreCase[] = [...FENCE, ...ROWS, ...STAMPS]
