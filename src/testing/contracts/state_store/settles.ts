/*
 * Contract: counts over a range, conditional checkpoint writes, reads in batches.
 */
import assert from 'node:assert/strict'
import type { CheckpointSettlement } from '../../../store/ports/pending_settles.ts'
import type { StepCheckpoint } from '../../../types/checkpoint.ts'
import {
  at,
  makeRow,
  matches,
  oneWinner,
  pendingRow,
  range,
  same,
  sameRows,
  saveRows,
  seqs,
  type StoreCase,
} from './support.ts'

/** More rows than one statement holds on any dialect's bind limit. */
const WIDE = 1200

const settle = (
  runId: string,
  seq: number,
  fields: Partial<CheckpointSettlement> = {}
): CheckpointSettlement => ({ runId, seq, status: 'completed', finishedAt: at(90), ...fields })

const FAN = [
  makeRow('r', 1),
  pendingRow('r', 2),
  makeRow('r', 3, { status: 'failed', error: { message: 'no' } }),
  pendingRow('r', 4, { status: 'running' }),
  pendingRow('r2', 2),
  pendingRow('r2', 9),
]

const COUNTS: StoreCase[] = [
  {
    name: 'a count includes both bounds',
    requires: ['countCheckpoints'],
    kit: true,
    async run(store) {
      await saveRows(store, ...FAN)
      assert.equal(await store.countCheckpoints('r', { fromSeq: 2, toSeq: 3 }), 2)
      assert.equal(await store.countCheckpoints('r', { fromSeq: 4 }), 1)
      assert.equal(await store.countCheckpoints('r', { toSeq: 1 }), 1)
    },
  },
  {
    name: 'a count filters by status; no statuses count nothing',
    requires: ['countCheckpoints'],
    kit: true,
    async run(store) {
      await saveRows(store, ...FAN)
      const count = (statuses: StepCheckpoint['status'][]) =>
        store.countCheckpoints('r', { fromSeq: 1, toSeq: 4, statuses })
      assert.equal(await count(['pending', 'running']), 2)
      assert.equal(await count(['failed']), 1)
      assert.equal(await count([]), 0)
    },
  },
  {
    name: 'a count covers only its run, and all of it without bounds',
    requires: ['countCheckpoints'],
    kit: true,
    async run(store) {
      await saveRows(store, ...FAN, makeRow('r', -1))
      assert.equal(await store.countCheckpoints('r', {}), 5)
      assert.equal(await store.countCheckpoints('r2', {}), 2)
      assert.equal(await store.countCheckpoints('nobody', {}), 0)
    },
  },
  {
    name: 'existence includes each bound and nothing one beside it',
    requires: ['hasCheckpoints'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 5))
      const has = (fromSeq: number, toSeq: number) =>
        store.hasCheckpoints('r', { fromSeq, toSeq, statuses: ['pending'] })
      assert.equal(await has(5, 8), true)
      assert.equal(await has(2, 5), true)
      assert.equal(await has(6, 8), false)
      assert.equal(await has(2, 4), false)
      assert.equal(await store.hasCheckpoints('r', {}), true)
    },
  },
  {
    name: "another run's rows do not exist for this one",
    requires: ['hasCheckpoints'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(pendingRow('r2', 5))
      assert.equal(await store.hasCheckpoints('r', { fromSeq: 0, toSeq: 9 }), false)
      assert.equal(await store.hasCheckpoints('r2', { statuses: [] }), false)
      assert.equal(await store.hasCheckpoints('r2', { statuses: ['completed'] }), false)
    },
  },
]

const SAVES: StoreCase[] = [
  {
    name: 'a conditional save settles a pending row',
    requires: ['saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      assert.equal(await store.saveCheckpointIfPending(makeRow('r', 0, { output: 1 })), true)
      same(await store.getCheckpoint('r', 0), makeRow('r', 0, { output: 1 }))
    },
  },
  ...(['completed', 'failed', 'running'] as const).map((status): StoreCase => ({
    name: `a conditional save on a ${status} row is refused and changes nothing`,
    requires: ['saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      const row = makeRow('r', 0, { status, output: 'kept', attempts: 3 })
      await store.saveCheckpoint(row)
      assert.equal(await store.saveCheckpointIfPending(makeRow('r', 0, { output: 1 })), false)
      assert.equal(await store.saveCheckpointIfPending(pendingRow('r', 0)), false)
      same(await store.getCheckpoint('r', 0), row)
    },
  })),
  {
    name: 'a conditional save never inserts',
    requires: ['saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      assert.equal(await store.saveCheckpointIfPending(makeRow('r', 0)), false)
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  {
    name: 'the settling save replaces the row whole, its deadline included',
    requires: ['saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(
        pendingRow('r', 0, { wakeAt: 77, workerGroup: 'g', parallelGroup: 'all:0' })
      )
      await store.saveCheckpointIfPending(makeRow('r', 0))
      same(await store.getCheckpoint('r', 0), makeRow('r', 0))
    },
  },
  {
    name: 'of concurrent settling saves exactly one is true',
    requires: ['saveCheckpointIfPending'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      const answers = await Promise.all(
        [0, 1, 2, 3].map((output) => store.saveCheckpointIfPending(makeRow('r', 0, { output })))
      )
      oneWinner(answers)
      matches(await store.getCheckpoint('r', 0), { output: answers.indexOf(true) })
    },
  },
  {
    name: 'a batch of conditional saves answers in input order, across runs, each by itself',
    requires: ['saveCheckpointsIfPending'],
    kit: true,
    async run(store) {
      await saveRows(store, ...FAN)
      const answers = await store.saveCheckpointsIfPending([
        makeRow('r2', 9, { output: 'a' }),
        makeRow('r', 1, { output: 'b' }),
        makeRow('r', 2, { output: 'c' }),
        makeRow('r', 8, { output: 'd' }),
        makeRow('r2', 2, { output: 'e' }),
      ])
      assert.deepEqual(answers, [true, false, true, false, true])
      matches(await store.getCheckpoint('r2', 9), { status: 'completed', output: 'a' })
      same(await store.getCheckpoint('r', 1), FAN[0])
      matches(await store.getCheckpoint('r', 2), { output: 'c' })
      assert.equal(await store.getCheckpoint('r', 8), null)
      matches(await store.getCheckpoint('r2', 2), { output: 'e' })
    },
  },
  {
    name: 'of two entries with one key in a batch the first wins',
    requires: ['saveCheckpointsIfPending'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      const answers = await store.saveCheckpointsIfPending([
        makeRow('r', 0, { output: 'first' }),
        makeRow('r', 0, { output: 'second' }),
      ])
      assert.deepEqual(answers, [true, false])
      matches(await store.getCheckpoint('r', 0), { output: 'first' })
      const open = pendingRow('r', 1)
      await store.saveCheckpoint(open)
      const again = [{ ...open, attempts: 2 }, makeRow('r', 1)]
      assert.deepEqual(await store.saveCheckpointsIfPending(again), [true, false])
      matches(await store.getCheckpoint('r', 1), { status: 'pending', attempts: 2 })
    },
  },
  {
    name: 'a batch of conditional saves may be wider than one statement, or empty',
    requires: ['saveCheckpointsIfPending'],
    kit: true,
    async run(store) {
      assert.deepEqual(await store.saveCheckpointsIfPending([]), [])
      await saveRows(store, ...range(0, WIDE - 1).map((seq) => pendingRow('r', seq)))
      const answers = await store.saveCheckpointsIfPending(
        range(0, WIDE).map((seq) => makeRow('r', seq, { output: seq }))
      )
      assert.equal(answers.filter(Boolean).length, WIDE)
      assert.equal(answers[WIDE], false)
      const rows = await store.listCheckpoints('r')
      assert.ok(rows.every((row) => row.status === 'completed' && row.output === row.seq))
    },
  },
]

const SETTLES: StoreCase[] = [
  {
    name: 'a settlement writes a result and leaves what it does not carry',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      const row = pendingRow('r', 0, {
        workerGroup: 'g',
        parallelGroup: 'all:0',
        wakeAt: 7,
        attempts: 2,
        events: [{ at: 1, level: 'info', message: 'kept' }],
      })
      await store.saveCheckpoint(row)
      assert.deepEqual(await store.settleCheckpointsIfPending([settle('r', 0)]), [true])
      same(await store.getCheckpoint('r', 0), { ...row, status: 'completed', finishedAt: at(90) })
    },
  },
  {
    name: 'a settlement writes output, error, events and start that it carries',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      await saveRows(store, pendingRow('r', 0), pendingRow('r', 1))
      const events = [{ at: 2, level: 'error', message: 'went wrong' } as const]
      await store.settleCheckpointsIfPending([
        settle('r', 0, { output: null, startedAt: at(80) }),
        settle('r', 1, { status: 'failed', error: { message: 'no' }, events }),
      ])
      matches(await store.getCheckpoint('r', 0), { output: null, startedAt: at(80) })
      matches(await store.getCheckpoint('r', 1), {
        status: 'failed',
        error: { message: 'no' },
        events,
      })
    },
  },
  {
    name: 'a settlement clears the deadline only when it says so',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      await saveRows(store, pendingRow('r', 0, { wakeAt: 7 }), pendingRow('r', 1, { wakeAt: 7 }))
      await store.settleCheckpointsIfPending([settle('r', 0, { wakeAt: null }), settle('r', 1)])
      matches(await store.getCheckpoint('r', 0), { wakeAt: undefined })
      matches(await store.getCheckpoint('r', 1), { wakeAt: 7 })
    },
  },
  {
    name: 'a refused settlement changes nothing; a duplicate in one call is refused',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      await saveRows(store, makeRow('r', 0, { output: 'kept' }), pendingRow('r', 1))
      const answers = await store.settleCheckpointsIfPending([
        settle('r', 0, { output: 'late' }),
        settle('r', 1, { output: 'first' }),
        settle('r', 1, { output: 'second' }),
        settle('r', 2),
      ])
      assert.deepEqual(answers, [false, true, false, false])
      same(await store.getCheckpoint('r', 0), makeRow('r', 0, { output: 'kept' }))
      matches(await store.getCheckpoint('r', 1), { output: 'first' })
      assert.equal(await store.getCheckpoint('r', 2), null)
    },
  },
  {
    name: 'a row that failed cannot be completed by a later settlement',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      const failed = settle('r', 0, { status: 'failed', error: { message: 'no' } })
      assert.deepEqual(await store.settleCheckpointsIfPending([failed]), [true])
      const late = settle('r', 0, { output: 1 })
      assert.deepEqual(await store.settleCheckpointsIfPending([late]), [false])
      matches(await store.getCheckpoint('r', 0), { status: 'failed', output: undefined })
    },
  },
  {
    name: 'overlapping batches of settlements settle each row once',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      await saveRows(store, ...range(0, 19).map((seq) => pendingRow('r', seq)))
      const batch = (output: string, order: number[]) =>
        store.settleCheckpointsIfPending(order.map((seq) => settle('r', seq, { output })))
      const forward = range(0, 19)
      const backward = [...forward].reverse()
      const [a, b] = await Promise.all([batch('a', forward), batch('b', backward)])
      for (const seq of forward) {
        oneWinner([a[seq], b[19 - seq]])
        matches(await store.getCheckpoint('r', seq), { output: a[seq] ? 'a' : 'b' })
      }
    },
  },
  {
    name: 'a batch of settlements may be wider than one statement, or empty',
    requires: ['settleCheckpointsIfPending'],
    async run(store) {
      assert.deepEqual(await store.settleCheckpointsIfPending([]), [])
      await saveRows(store, ...range(0, WIDE - 1).map((seq) => pendingRow('r', seq)))
      const answers = await store.settleCheckpointsIfPending(
        range(0, WIDE).map((seq) => settle('r', seq, { output: seq }))
      )
      assert.equal(answers.filter(Boolean).length, WIDE)
      assert.equal(answers[WIDE], false)
      const rows = await store.listCheckpoints('r')
      assert.ok(rows.every((row) => row.status === 'completed' && row.output === row.seq))
    },
  },
]

const READS: StoreCase[] = [
  {
    name: 'rows by keys equal single reads across runs; missing ones are absent, doubles collapse',
    requires: ['getCheckpoints'],
    async run(store) {
      await saveRows(store, ...FAN)
      const keys = [...FAN.slice(1), { runId: 'r', seq: 77 }, FAN[1]].map(({ runId, seq }) => ({
        runId,
        seq,
      }))
      sameRows(await store.getCheckpoints(keys), FAN.slice(1))
      assert.deepEqual(await store.getCheckpoints([]), [])
    },
  },
  {
    name: 'rows for a settle equal those, without any input',
    requires: ['getCheckpointsForSettle'],
    async run(store) {
      await saveRows(store, ...FAN)
      const keys = [...FAN, { runId: 'r', seq: 77 }].map(({ runId, seq }) => ({ runId, seq }))
      sameRows(
        await store.getCheckpointsForSettle(keys),
        FAN.map((row) => ({ ...row, input: undefined }))
      )
      assert.deepEqual(await store.getCheckpointsForSettle([]), [])
    },
  },
  {
    name: 'a replay listing is the listing, but completed rows have no input',
    requires: ['listCheckpointsForReplay'],
    async run(store) {
      const rows = (['completed', 'failed', 'pending', 'running'] as const).map((status, seq) =>
        makeRow('r', seq - 1, { status, input: { seq }, output: seq, wakeAt: seq, attempts: seq })
      )
      await saveRows(store, ...[...rows].reverse(), makeRow('r2', 0))
      same(
        await store.listCheckpointsForReplay('r'),
        rows.map((row) => (row.status === 'completed' ? { ...row, input: undefined } : row))
      )
    },
  },
  {
    name: 'rows at positions and from one on: each once, ascending, as a replay reads them',
    requires: ['listCheckpointsAt'],
    async run(store) {
      await saveRows(
        store,
        ...range(-1, 9).map((seq) => makeRow('r', seq, { input: { seq } })),
        pendingRow('r', 3),
        pendingRow('r', 11),
        makeRow('r2', 3)
      )
      const rows = await store.listCheckpointsAt('r', [3, 1, 8, 1, 100], 8)
      assert.deepEqual(seqs(rows), [1, 3, 8, 9, 11])
      matches(rows[0], { input: undefined, status: 'completed' })
      matches(rows[1], { input: { seq: 3 }, status: 'pending' })
      assert.deepEqual(seqs(await store.listCheckpointsAt('r', [], 9)), [9, 11])
      assert.deepEqual(seqs(await store.listCheckpointsAt('r', [-1], 50)), [-1])
      assert.deepEqual(await store.listCheckpointsAt('r', [], 50), [])
      const many = await store.listCheckpointsAt('r', range(0, WIDE), 0)
      assert.equal(many.length, 11)
    },
  },
]

const OF_ATTEMPTS: StoreCase = {
  name: 'a settlement of an earlier attempt changes nothing',
  requires: ['settleCheckpointsIfPending'],
  async run(store) {
    await saveRows(store, pendingRow('r', 1, { attempts: 2 }), pendingRow('r', 2, { attempts: 2 }))
    const some = [settle('r', 1, { upToAttempt: 1 }), settle('r', 2, { upToAttempt: 2 })]
    assert.deepEqual(await store.settleCheckpointsIfPending(some), [false, true])
  },
}

export const SETTLE_CASES: StoreCase[] = [...COUNTS, ...SAVES, ...SETTLES, OF_ATTEMPTS, ...READS]
