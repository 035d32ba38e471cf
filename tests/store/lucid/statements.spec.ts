/*
 * What each call sends, exactly, BEGIN and COMMIT included: the number of statements is the speed. On
 * MariaDB, whose compound statements are one each; MySQL is sent their parts.
 */
import { test } from '@japa/runner'
import type { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { countStatements, reachableDialects } from '../../helpers/databases.ts'
import { type Budget, ROLE_BUDGETS } from './role_budgets.ts'
import { asTurn, at, heldRun, makeRow, makeRun, makeWait, ms, provisionedStore } from './support.ts'

const rows = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ row: makeRow('r', from + i) }))
const pending = (seq: number) => makeRow('r', seq, { status: 'pending', input: 1 })
const held = (store: LucidStateStore) => store.createRun(heldRun('r'))
const claim = { owner: 'me', leaseUntilMs: ms(99), nowMs: ms(10) }

const heldWith =
  (...seqs: number[]) =>
  async (store: LucidStateStore) => {
    await held(store)
    for (const seq of seqs) await store.saveCheckpoint(pending(seq))
  }
const waiting = async (store: LucidStateStore) => {
  await held(store)
  await store.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] })
}

const BUDGETS: Budget[] = [
  { name: 'createRun', statements: 1, call: (s) => s.createRun(makeRun('r')) },
  {
    name: 'createRun with search attributes',
    statements: { postgres: 1, sqlite: 4, mysql: 4 },
    call: (s) => s.createRun(makeRun('r', { searchAttributes: { a: 1, b: 'x' } })),
  },
  { name: 'getRun', statements: 1, call: (s) => s.getRun('r') },
  {
    name: 'updateRun',
    statements: 1,
    prepare: held,
    call: (s) => s.updateRun('r', { priority: 1 }),
  },
  { name: 'updateRun of nothing', statements: 0, prepare: held, call: (s) => s.updateRun('r', {}) },
  {
    name: 'updateRun with search attributes',
    statements: { postgres: 1, sqlite: 5, mysql: 5 },
    prepare: held,
    call: (s) => s.updateRun('r', { searchAttributes: { a: 2 } }),
  },
  {
    name: 'updateRunIf',
    statements: 1,
    prepare: held,
    call: (s) => s.updateRunIf('r', ['running'], { status: 'completed', output: 1 }),
  },
  {
    name: 'updateRunIf, refused',
    statements: 1,
    prepare: held,
    call: (s) => s.updateRunIf('r', ['failed'], { status: 'pending' }),
  },
  { name: 'listRuns', statements: 1, call: (s) => s.listRuns({ status: 'running', size: 5 }) },
  { name: 'countRuns', statements: 1, call: (s) => s.countRuns({ tag: 'x' }) },
  {
    name: 'deleteRun',
    statements: { postgres: 6, sqlite: 6, mysql: 7 },
    prepare: held,
    call: (s) => s.deleteRun('r'),
  },
  {
    name: 'deleteRuns',
    statements: { postgres: 6, sqlite: 6, mysql: 7 },
    prepare: held,
    call: (s) => s.deleteRuns(['r', 'x', 'r']),
  },
  { name: 'deleteRuns of none', statements: 0, call: (s) => s.deleteRuns([]) },
  { name: 'tryLockRun', statements: 1, call: (s) => s.tryLockRun('r', 'me', ms(9), ms(1)) },
  { name: 'renewRunLock', statements: 1, call: (s) => s.renewRunLock('r', 'me', ms(9)) },
  { name: 'releaseRunLock', statements: 1, call: (s) => s.releaseRunLock('r', 'me') },
  {
    name: 'claimRun',
    statements: { postgres: 1, sqlite: 2, mysql: 2 },
    prepare: (s) => s.createRun(makeRun('r')),
    call: (s) => s.claimRun({ ...claim, runId: 'r', from: ['pending', 'suspended'] }),
  },
  {
    name: 'claimRun, refused',
    statements: 1,
    prepare: held,
    call: (s) => s.claimRun({ ...claim, runId: 'r', from: ['pending', 'suspended'] }),
  },
  ...(['pending', 'due'] as const).flatMap((kind): Budget[] => [
    {
      name: `claimDueRuns, ${kind}`,
      statements: { postgres: 1, sqlite: 2, mysql: 5 },
      prepare: async (s) => {
        for (const id of ['a', 'b', 'c']) {
          await s.createRun(
            makeRun(id, kind === 'due' ? { status: 'suspended', wakeAt: ms(1) } : {})
          )
        }
      },
      call: (s) => s.claimDueRuns({ ...claim, kind, limit: 10, exclude: ['b'] }),
    },
    {
      name: `claimDueRuns, nothing ${kind}`,
      statements: 1,
      call: (s) => s.claimDueRuns({ ...claim, kind, limit: 10 }),
    },
  ]),
  { name: 'listIncompleteRuns', statements: 1, call: (s) => s.listIncompleteRuns('x') },
  { name: 'listPendingRuns', statements: 1, call: (s) => s.listPendingRuns(5) },
  { name: 'listDueTimers', statements: 1, call: (s) => s.listDueTimers(ms(1), undefined, 5) },
  { name: 'listOrphanedRuns', statements: 1, call: (s) => s.listOrphanedRuns(ms(1)) },
  { name: 'listOverdueRuns', statements: 1, call: (s) => s.listOverdueRuns(ms(1)) },

  { name: 'saveCheckpoint', statements: 1, call: (s) => s.saveCheckpoint(makeRow('r', 1)) },
  { name: 'getCheckpoint', statements: 1, call: (s) => s.getCheckpoint('r', 1) },
  { name: 'listCheckpoints', statements: 1, call: (s) => s.listCheckpoints('r') },
  { name: 'listCheckpointsForReplay', statements: 1, call: (s) => s.listCheckpointsForReplay('r') },
  { name: 'listCheckpointsAt', statements: 1, call: (s) => s.listCheckpointsAt('r', [1, 2], 5) },
  {
    name: 'getCheckpoints',
    statements: 1,
    call: (s) => s.getCheckpoints([{ runId: 'r', seq: 1 }]),
  },
  { name: 'getCheckpoints of none', statements: 0, call: (s) => s.getCheckpoints([]) },
  { name: 'hasCheckpoints', statements: 1, call: (s) => s.hasCheckpoints('r', { fromSeq: 1 }) },
  { name: 'countCheckpoints', statements: 1, call: (s) => s.countCheckpoints('r', {}) },
  {
    name: 'getLatestCheckpointByName',
    statements: 1,
    call: (s) => s.getLatestCheckpointByName('r', 'x'),
  },
  {
    name: 'listCheckpointsByNamePrefix',
    statements: 1,
    call: (s) => s.listCheckpointsByNamePrefix('r', ['a', 'b']),
  },
  { name: 'recordStepHeartbeat', statements: 1, call: (s) => s.recordStepHeartbeat('r', 1, at(1)) },
  {
    name: 'saveCheckpointIfPending',
    statements: 1,
    prepare: heldWith(1),
    call: (s) => s.saveCheckpointIfPending(makeRow('r', 1)),
  },
  {
    name: 'saveCheckpointsIfPending',
    statements: { postgres: 1, sqlite: 1, mysql: 4 },
    prepare: heldWith(1, 2),
    call: (s) => s.saveCheckpointsIfPending([makeRow('r', 2), makeRow('r', 1), makeRow('r', 1)]),
  },
  {
    name: 'settleCheckpointsIfPending',
    statements: { postgres: 1, sqlite: 1, mysql: 4 },
    prepare: heldWith(1, 2),
    call: (s) =>
      s.settleCheckpointsIfPending(
        [2, 1, 1, 7].map((seq) => ({ runId: 'r', seq, status: 'completed', finishedAt: at(9) }))
      ),
  },
  {
    name: 'settleCheckpointsIfPending, more than one statement takes',
    statements: 4,
    call: (s) =>
      s.settleCheckpointsIfPending(
        rows(501).map(({ row }) => ({ ...row, status: 'completed', wakeAt: null }))
      ),
  },
  {
    name: 'settleTargets',
    statements: 1,
    prepare: heldWith(1, 2),
    call: (s) => s.settleTargets([1, 2, 3].map((seq) => ({ runId: 'r', seq }))),
  },

  {
    name: 'commitTurn, one row',
    statements: 1,
    prepare: held,
    call: (s) => s.commitTurn({ ...asTurn('r'), rows: rows(1) }),
  },
  {
    name: 'commitTurn, a retried row',
    statements: 1,
    prepare: async (s) => {
      await held(s)
      await s.saveCheckpoint(makeRow('r', 1, { status: 'failed' }))
    },
    call: (s) =>
      s.commitTurn({
        ...asTurn('r'),
        rows: [{ row: makeRow('r', 1, { attempts: 2 }), retryOf: 1 }],
      }),
  },
  {
    name: 'commitTurn, many rows',
    statements: { postgres: 1, sqlite: 4, mysql: 1 },
    prepare: held,
    call: (s) => s.commitTurn({ ...asTurn('r'), rows: rows(700) }),
  },
  {
    name: 'commitTurn, a row that loses to a settled one',
    statements: { postgres: 2, sqlite: 6, mysql: 6 },
    prepare: async (s) => {
      await held(s)
      await s.saveCheckpoint(makeRow('r', 1))
    },
    call: (s) => s.commitTurn({ ...asTurn('r'), rows: [{ row: makeRow('r', 1) }] }),
  },
  {
    name: 'commitTurn, refused',
    statements: { postgres: 1, sqlite: 4, mysql: 1 },
    prepare: held,
    call: (s) => s.commitTurn({ ...asTurn('r'), turn: 2, rows: rows(1) }),
  },
  {
    name: 'commitTurn, a wait that registers',
    statements: { postgres: 1, sqlite: 5, mysql: 1 },
    prepare: held,
    call: (s) => s.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] }),
  },
  {
    name: 'commitTurn, a wait that takes',
    statements: { postgres: 1, sqlite: 7, mysql: 3 },
    prepare: async (s) => {
      await held(s)
      await s.bufferSignal('t', 'x')
    },
    call: (s) => s.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] }),
  },
  {
    name: 'commitTurn, an expiry',
    statements: { postgres: 1, sqlite: 5, mysql: 1 },
    prepare: waiting,
    call: (s) => {
      const { waiter, row } = makeWait('r', 1, 't')
      return s.commitTurn({
        ...asTurn('r'),
        expiries: [{ waiter, row: { ...row, status: 'failed' } }],
      })
    },
  },
  {
    name: 'commitTurn, stamps',
    statements: { postgres: 1, sqlite: 4, mysql: 1 },
    prepare: heldWith(1, 2),
    call: (s) =>
      s.commitTurn({
        ...asTurn('r'),
        stamps: [
          { seq: 1, order: 1 },
          { seq: 2, order: 2 },
        ],
      }),
  },
  {
    name: 'commitTurn, children',
    statements: { postgres: 1, sqlite: 5, mysql: 1 },
    prepare: held,
    call: (s) =>
      s.commitTurn({
        ...asTurn('r'),
        runs: [makeRun('r.1', { searchAttributes: { a: 1 } }), makeRun('r.2')],
      }),
  },
  {
    name: 'commitTurn, a bare settle',
    statements: 1,
    prepare: held,
    call: (s) =>
      s.commitTurn({ ...asTurn('r'), settle: { status: 'suspended', patch: { wakeAt: ms(99) } } }),
  },
  {
    name: 'commitTurn, everything at once',
    statements: { postgres: 1, sqlite: 17, mysql: 3 },
    prepare: async (s) => {
      await waiting(s)
      await s.bufferSignal('t', 'x')
      await s.saveCheckpoint(pending(8))
    },
    call: (s) =>
      s.commitTurn({
        ...asTurn('r'),
        rows: rows(3, 20),
        waits: [makeWait('r', 30, 'u')],
        expiries: [makeWait('r', 31, 'v')],
        stamps: [{ seq: 8, order: 1 }],
        runs: [makeRun('r~1')],
        settle: {
          status: 'completed',
          patch: { output: 1, searchAttributes: { a: 1 } },
          looks: [makeWait('r', 1, 't')],
        },
      }),
  },

  {
    name: 'deliverSignal to a waiter',
    statements: { postgres: 1, sqlite: 7, mysql: 2 },
    prepare: waiting,
    call: (s) => s.deliverSignal({ token: 't', payload: 1, nowMs: ms(20), buffer: true }),
  },
  {
    name: 'deliverSignal, nobody waits',
    statements: { postgres: 1, sqlite: 1, mysql: 2 },
    call: (s) => s.deliverSignal({ token: 't', payload: 1, nowMs: ms(20), buffer: true }),
  },
  {
    name: 'deliverSignal, nobody waits and nothing is kept',
    statements: 1,
    call: (s) => s.deliverSignal({ token: 't', payload: 1, nowMs: ms(20), buffer: false }),
  },
  {
    name: 'pairSignal',
    statements: { postgres: 1, sqlite: 8, mysql: 12 },
    prepare: async (s) => {
      await waiting(s)
      await s.bufferSignal('t', 'x')
    },
    call: (s) => s.pairSignal('t', ms(20)),
  },
  {
    name: 'pairSignal of nothing',
    statements: 1,
    call: (s) => s.pairSignal('t', ms(20)),
  },
  {
    name: 'putSignalWaiter',
    statements: 1,
    call: (s) => s.putSignalWaiter({ token: 't', runId: 'r', seq: 1 }),
  },
  { name: 'takeSignalWaiter', statements: 1, call: (s) => s.takeSignalWaiter('t') },
  { name: 'listSignalWaiters', statements: 1, call: (s) => s.listSignalWaiters('t') },
  {
    name: 'removeSignalWaiter',
    statements: 1,
    call: (s) => s.removeSignalWaiter({ token: 't', runId: 'r', seq: 1 }),
  },
  { name: 'hasSignalWaiter', statements: 1, call: (s) => s.hasSignalWaiter('t') },
  {
    name: 'listSignalWaitersByRunIds',
    statements: 1,
    call: (s) => s.listSignalWaitersByRunIds(['a', 'b']),
  },
  { name: 'bufferSignal', statements: 1, call: (s) => s.bufferSignal('t', 1) },
  { name: 'takeBufferedSignal', statements: 1, call: (s) => s.takeBufferedSignal('t') },
  {
    name: 'bufferEvent',
    statements: 1,
    call: (s) => s.bufferEvent({ id: 'e', name: 'n', payload: 1, publishedAt: ms(1) }),
  },
  { name: 'listBufferedEvents', statements: 1, call: (s) => s.listBufferedEvents('n', 5) },
  { name: 'removeBufferedEvent', statements: 1, call: (s) => s.removeBufferedEvent('e') },
  { name: 'pruneBufferedEvents', statements: 1, call: (s) => s.pruneBufferedEvents(ms(1), 5) },
  {
    name: 'transaction with one fenced checkpoint',
    statements: { postgres: 3, sqlite: 4, mysql: 4 },
    prepare: held,
    call: (s) =>
      s.transaction((tx) => tx.saveCheckpoint(makeRow('r', 1), { owner: 'me', turn: 1 })),
  },
  ...ROLE_BUDGETS,
]

for (const dialect of await reachableDialects()) {
  test(`statements of every call (${dialect})`, async ({ assert, cleanup }) => {
    const { db, store } = await provisionedStore(dialect, cleanup)
    const counter = countStatements(db)
    cleanup(() => counter.stop())
    for (const { name, statements, prepare, call } of BUDGETS) {
      await empty(store)
      await prepare?.(store)
      counter.reset()
      await call(store)
      const budget = typeof statements === 'number' ? statements : statements[dialect]
      assert.equal(counter.count, budget, `${name}\n${counter.texts.join('\n')}`)
    }
  }).timeout(60_000)
}

async function empty(store: LucidStateStore): Promise<void> {
  const runs = await store.listRuns({})
  await store.deleteRuns([...runs.map(({ id }) => id), 'r'])
  while (await store.takeBufferedSignal('t')) continue
}
