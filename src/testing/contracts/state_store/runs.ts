/*
 * Contract: run rows. What is created, patched and deleted, and what a caller can never change by
 * accident.
 */
import assert from 'node:assert/strict'
import type { WorkflowRun } from '../../../types/run.ts'
import {
  at,
  byText,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  range,
  runOf,
  same,
  saveRows,
  sizeOf,
  T0,
  type StoreCase,
} from './support.ts'

export const RUN_CASES: StoreCase[] = [
  {
    name: 'a created run reads back with its JSON input',
    async run(store) {
      const input = { list: [1, 'two', null, { deep: true }], text: 'ü' }
      await store.createRun(makeRun('r', { input }))
      matches(await store.getRun('r'), makeRun('r', { input }))
    },
  },
  {
    name: 'an unknown run id reads null',
    async run(store) {
      assert.equal(await store.getRun('nobody'), null)
    },
  },
  {
    name: 'a second create of an id rejects and leaves the first run intact',
    async run(store) {
      await store.createRun(makeRun('r', { input: 'first' }))
      await assert.rejects(store.createRun(makeRun('r', { input: 'second', status: 'running' })))
      matches(await store.getRun('r'), { input: 'first', status: 'pending' })
    },
  },
  {
    name: 'of concurrent creates of one id exactly one resolves',
    async run(store) {
      const inputs = [0, 1, 2, 3, 4]
      const answers = await Promise.allSettled(
        inputs.map((input) => store.createRun(makeRun('r', { input })))
      )
      const winners = inputs.filter((input) => answers[input].status === 'fulfilled')
      assert.equal(winners.length, 1)
      matches(await store.getRun('r'), { input: winners[0] })
    },
  },
  {
    name: 'a create that lost leaves no attribute rows behind',
    async run(store) {
      await store.createRun(makeRun('r', { searchAttributes: { region: 'eu' } }))
      await assert.rejects(store.createRun(makeRun('r', { searchAttributes: { region: 'us' } })))
      const of = (value: string) =>
        store.listRuns({ attributes: [{ key: 'region', op: 'eq', value }] })
      assert.deepEqual([ids(await of('eu')), ids(await of('us'))], [['r'], []])
    },
  },
  {
    name: 'status, output and recovery attempts persist',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.updateRun('r', { status: 'completed', output: { total: 3 }, updatedAt: at(9) })
      matches(await store.getRun('r'), {
        status: 'completed',
        output: { total: 3 },
        updatedAt: at(9),
      })
      await store.updateRun('r', { status: 'dead', recoveryAttempts: 4 })
      matches(await store.getRun('r'), { status: 'dead', recoveryAttempts: 4 })
    },
  },
  {
    name: 'every published field persists in one patch',
    async run(store) {
      await store.createRun(makeRun('r'))
      const patch: Partial<WorkflowRun> = {
        status: 'failed',
        output: [1],
        error: { message: 'no', code: 'x', retryable: false, stack: 's', details: { a: 1 } },
        wakeAt: T0 + 1,
        wakeRequestedAt: T0 + 2,
        lockedBy: 'me',
        lockedUntil: T0 + 3,
        recoveryAttempts: 2,
        tags: ['a', 'b'],
        searchAttributes: { region: 'eu', size: 3, vip: true },
        priority: 7,
        updatedAt: at(5),
      }
      await store.updateRun('r', patch)
      matches(await store.getRun('r'), { ...makeRun('r'), ...patch })
    },
  },
  {
    name: 'every field of turns, waves, deadlines and cancels persists in one patch and clears',
    requires: ['commitTurn', 'claimRun'],
    async run(store) {
      await store.createRun(makeRun('r', { status: 'suspended', awaited: true }))
      matches(await store.getRun('r'), { awaited: true, turns: undefined, claimedAt: undefined })
      const patch: Partial<WorkflowRun> = {
        waitSeqs: { from: 0, to: 12 },
        cancelRequestedAt: T0 + 4,
        cancelRequestedBy: 'ops',
        cancelCompensates: true,
        deadlineAt: T0 + 5,
        turns: 3,
        claimedAt: at(6),
      }
      await store.updateRun('r', patch)
      matches(await store.getRun('r'), patch)
      const cleared: Partial<WorkflowRun> = {
        waitSeqs: undefined,
        cancelRequestedAt: undefined,
        cancelRequestedBy: undefined,
        cancelCompensates: undefined,
        deadlineAt: undefined,
      }
      await store.updateRun('r', cleared)
      matches(await store.getRun('r'), { ...cleared, turns: 3, claimedAt: at(6) })
    },
  },
  {
    name: 'a run is born with its fields of turns, waves, deadlines and cancels',
    requires: ['commitTurn', 'claimRun'],
    async run(store) {
      const run = makeRun('r', {
        status: 'suspended',
        waitSeqs: { from: 0, to: 0 },
        cancelRequestedAt: T0 + 4,
        cancelRequestedBy: 'ops',
        cancelCompensates: true,
        deadlineAt: T0 + 5,
        turns: 3,
        claimedAt: at(6),
        awaited: true,
      })
      await createRuns(store, run, makeRun('s'))
      matches(await store.getRun('r'), run)
      matches(await store.getRun('s'), {
        waitSeqs: undefined,
        cancelRequestedAt: undefined,
        cancelCompensates: undefined,
        deadlineAt: undefined,
        awaited: undefined,
      })
    },
  },
  {
    name: 'a key that is undefined clears, an absent key is left alone',
    async run(store) {
      await store.createRun(makeRun('r', { error: { message: 'old' }, tags: ['t'], priority: 1 }))
      await store.updateRun('r', { error: undefined })
      matches(await store.getRun('r'), { error: undefined, tags: ['t'], priority: 1 })
    },
  },
  {
    name: 'lease and wake clear with undefined',
    async run(store) {
      await store.createRun(makeRun('r', { lockedBy: 'me', lockedUntil: T0 + 9, wakeAt: T0 + 8 }))
      await store.updateRun('r', { lockedBy: undefined, lockedUntil: undefined, wakeAt: undefined })
      matches(await store.getRun('r'), {
        lockedBy: undefined,
        lockedUntil: undefined,
        wakeAt: undefined,
      })
    },
  },
  {
    name: 'undefined leaves alone what a run cannot be without',
    async run(store) {
      await store.createRun(makeRun('r', { createdAt: at(1), updatedAt: at(2) }))
      await store.updateRun('r', { createdAt: undefined, updatedAt: undefined, priority: 2 })
      matches(await store.getRun('r'), { createdAt: at(1), updatedAt: at(2), priority: 2 })
    },
  },
  {
    name: 'an empty patch changes nothing',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.updateRun('r', {})
      matches(await store.getRun('r'), makeRun('r'))
    },
  },
  {
    name: 'priority and origin round-trip, and stay absent when absent',
    async run(store) {
      await createRuns(store, makeRun('r', { priority: 0, origin: '@acme/mail' }), makeRun('s'))
      matches(await store.getRun('r'), { priority: 0, origin: '@acme/mail' })
      matches(await store.getRun('s'), { priority: undefined, origin: undefined })
    },
  },
  {
    name: 'a wake request round-trips and clears',
    async run(store) {
      await store.createRun(makeRun('r', { status: 'suspended' }))
      await store.updateRun('r', { wakeRequestedAt: T0 + 7 })
      matches(await store.getRun('r'), { wakeRequestedAt: T0 + 7 })
      await store.updateRun('r', { wakeRequestedAt: undefined })
      matches(await store.getRun('r'), { wakeRequestedAt: undefined })
    },
  },
  {
    name: 'an awaited decision round-trips and clears',
    async run(store) {
      await store.createRun(makeRun('r', { awaitingDecisionTaskId: 'r:turn:1' }))
      matches(await store.getRun('r'), { awaitingDecisionTaskId: 'r:turn:1' })
      await store.updateRun('r', { awaitingDecisionTaskId: undefined })
      matches(await store.getRun('r'), { awaitingDecisionTaskId: undefined })
    },
  },
  {
    name: 'an absent namespace reads "default", and clearing one writes it',
    async run(store) {
      await createRuns(store, makeRun('r'), makeRun('s', { namespace: 'acme' }))
      matches(await store.getRun('r'), { namespace: 'default' })
      await store.updateRun('s', { namespace: undefined })
      matches(await store.getRun('s'), { namespace: 'default' })
      assert.deepEqual(ids(await store.listRuns({ namespace: 'default' })), ['s', 'r'])
    },
  },
  {
    name: 'an unrelated patch keeps namespace and origin',
    async run(store) {
      await store.createRun(makeRun('r', { namespace: 'acme', origin: '@acme/mail' }))
      await store.updateRun('r', { status: 'running' })
      matches(await store.getRun('r'), { namespace: 'acme', origin: '@acme/mail' })
    },
  },
  {
    name: 'null, 0, "" and false survive as payloads, undefined stays absent',
    async run(store) {
      for (const [index, value] of [null, 0, '', false].entries()) {
        const id = `r${index}`
        await store.createRun(makeRun(id, { input: value, output: value }))
        matches(await store.getRun(id), { input: value, output: value })
        await store.saveCheckpoint(makeRow(id, 0, { input: value, output: value }))
        matches(await store.getCheckpoint(id, 0), { input: value, output: value })
      }
      await store.createRun(makeRun('u', { input: undefined }))
      matches(await store.getRun('u'), { input: undefined, output: undefined })
    },
  },
  {
    name: 'text of any language, NUL, lone surrogates and a mebibyte round-trip',
    async run(store) {
      const text = '日本語 🙂 \u0000 "\\ \n \ud800 Ω'
      const large = 'ä'.repeat(512 * 1024)
      await createRuns(store, makeRun('r', { input: { [text]: text }, output: large }))
      matches(await store.getRun('r'), { input: { [text]: text }, output: large })
      await store.saveCheckpoint(makeRow('r', 0, { output: [text, large] }))
      matches(await store.getCheckpoint('r', 0), { output: [text, large] })
    },
  },
  {
    name: 'what a caller does to a run it gave or got changes nothing stored',
    async run(store) {
      const given = makeRun('r', { tags: ['t'] })
      await store.createRun(given)
      given.status = 'dead'
      const got = await runOf(store, 'r')
      got.status = 'failed'
      got.workflow = 'other'
      matches(await store.getRun('r'), { status: 'pending', workflow: 'orders', tags: ['t'] })
    },
  },
  {
    name: 'runs by ids equal single reads; missing ones are absent, doubles collapse',
    requires: ['getRuns'],
    async run(store) {
      const run = makeRun('a', { output: [1], tags: ['t'], waitSeqs: { from: 1, to: 2 } })
      await createRuns(store, run, makeRun('A', { namespace: 'acme' }), makeRun('z'))
      const found = await store.getRuns(['A', 'nobody', 'a', 'A'])
      same(
        found.sort((x, y) => byText(x.id, y.id)),
        [await runOf(store, 'A'), await runOf(store, 'a')]
      )
      assert.deepEqual(await store.getRuns(['nobody']), [])
      assert.deepEqual(await store.getRuns([]), [])
    },
  },
  {
    name: 'runs by ids may be more than one statement holds',
    requires: ['getRuns'],
    async run(store) {
      const all = range(1000, 2199).map((n) => `r${n}`)
      await Promise.all(
        [0, 1, 2, 3].map(async (quarter) => {
          for (let i = quarter; i < all.length; i += 4) await store.createRun(makeRun(all[i]))
        })
      )
      const found = await store.getRuns([...all, 'nobody', ...all])
      assert.deepEqual(ids(found).sort(), all)
    },
  },
  {
    name: 'deleting a run removes its checkpoints, waiters and attribute rows',
    async run(store) {
      await store.createRun(makeRun('r', { searchAttributes: { region: 'eu' } }))
      await saveRows(store, makeRow('r', -1), makeRow('r', 0))
      await store.putSignalWaiter(makeWaiter('token', 'r', 1))
      await store.deleteRun('r')
      assert.equal(await store.getRun('r'), null)
      assert.deepEqual(await store.listCheckpoints('r'), [])
      assert.deepEqual(await store.listSignalWaiters(''), [])
      await store.createRun(makeRun('r'))
      const attributes = [{ key: 'region', op: 'eq', value: 'eu' } as const]
      assert.deepEqual(await store.listRuns({ attributes }), [])
    },
  },
  {
    name: "deleting a run leaves other runs' rows and the buffers",
    async run(store) {
      await createRuns(store, makeRun('r'), makeRun('r2'))
      await saveRows(store, makeRow('r', 0), makeRow('r2', 0))
      await store.putSignalWaiter(makeWaiter('token', 'r2', 1))
      await store.bufferSignal('early', 1)
      await store.bufferEvent({ id: 'e', name: 'n', payload: 1, publishedAt: T0 })
      await store.deleteRun('r')
      assert.ok(await store.getRun('r2'))
      assert.equal(sizeOf(await store.listCheckpoints('r2')), 1)
      assert.equal(sizeOf(await store.listSignalWaiters('token')), 1)
      assert.deepEqual(await store.takeBufferedSignal('early'), { payload: 1 })
      assert.equal(sizeOf(await store.listBufferedEvents('n', 9)), 1)
    },
  },
  {
    name: 'deleting an unknown run resolves',
    async run(store) {
      await store.deleteRun('nobody')
    },
  },
]
