/*
 * Contract: buffered events that a commit claims, and attributes that it merges.
 */
import assert from 'node:assert/strict'
import type { EventClaim } from '../../../store/ports/turn_commits.ts'
import {
  createHeldRun,
  makeRow,
  makeWaiter,
  matches,
  pendingRow,
  saveRows,
  same,
  sameRows,
  sizeOf,
  T0,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'
import { commit } from './turn_commits.ts'

const TOKEN = 'event:b3JkZXI=:e30=:r#3'

async function published(store: StoreUnderTest, id: string, payload: unknown, runId = 'r') {
  const event = { id, name: 'order', payload, publishedAt: T0 }
  await store.bufferEvent(event)
  return claimOf(event, runId)
}

const claimOf = (event: EventClaim['event'], runId = 'r'): EventClaim => ({
  event,
  waiter: makeWaiter(TOKEN, runId, 3),
  row: makeRow(runId, 3, { name: `signal:${TOKEN}`, kind: 'signal', output: event.payload }),
})

const buffered = async (store: StoreUnderTest): Promise<string[]> => {
  const events = await store.listBufferedEvents('order', 10)
  return events.map(({ id }) => id)
}

const CLAIMS: StoreCase[] = [
  {
    name: 'a claim takes its event, completes its row and removes the exact waiter',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const claim = await published(store, 'e1', { n: [1, null, 'x'] })
      await published(store, 'e2', 2)
      await store.putSignalWaiter(claim.waiter)
      await store.putSignalWaiter(makeWaiter('other', 'r', 3))
      const verdict = await commit(store, { claims: [claim] })
      matches(verdict, { applied: true })
      sameRows(verdict.stored, [claim.row])
      sameRows(await store.listCheckpoints('r'), [claim.row])
      assert.deepEqual(await buffered(store), ['e2'])
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['other'])
    },
  },
  {
    name: 'a claim of an event that is gone changes nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const claim = claimOf({ id: 'gone', name: 'order', payload: 1, publishedAt: T0 })
      await store.putSignalWaiter(claim.waiter)
      same(await commit(store, { claims: [claim] }), {
        applied: true,
        status: 'running',
        wakeRequested: false,
        cancelRequested: false,
        awaited: false,
        stored: [],
      })
      assert.deepEqual(await store.listCheckpoints('r'), [])
      assert.equal(sizeOf(await store.listSignalWaiters('')), 1)
    },
  },
  {
    name: 'a claim at a settled position leaves its event to others and tells what stands',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const claim = await published(store, 'e1', 1)
      const standing = { ...claim.row, output: 'before' }
      await saveRows(store, standing)
      const { stored } = await commit(store, { claims: [claim] })
      sameRows(stored, [standing])
      sameRows(await store.listCheckpoints('r'), [standing])
      assert.deepEqual(await buffered(store), ['e1'])
    },
  },
  {
    name: 'a claim replaces an open row of its position',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const claim = await published(store, 'e1', undefined)
      await saveRows(store, pendingRow('r', 3))
      await commit(store, { claims: [claim] })
      matches(await store.getCheckpoint('r', 3), { status: 'completed', output: undefined })
    },
  },
  {
    name: 'a refused commit claims nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const claim = await published(store, 'e1', 1)
      matches(await commit(store, { turn: 7, claims: [claim], searchAttributes: { a: 1 } }), {
        applied: false,
        stored: [],
      })
      assert.deepEqual(await buffered(store), ['e1'])
      assert.deepEqual(await store.listCheckpoints('r'), [])
      matches(await store.getRun('r'), { searchAttributes: undefined })
    },
  },
  {
    name: 'of concurrent claims of one event exactly one gets it',
    requires: ['commitTurn'],
    async run(store) {
      const runs = ['r', 'q', 'p', 'o']
      for (const id of runs) await createHeldRun(store, id)
      const claim = await published(store, 'e1', 'once')
      const verdicts = await Promise.all(
        runs.map((runId) => commit(store, { runId, claims: [claimOf(claim.event, runId)] }))
      )
      assert.equal(sizeOf(verdicts.filter(({ stored }) => stored.length > 0)), 1)
      assert.deepEqual(await buffered(store), [])
    },
  },
]

const ATTRIBUTES: StoreCase[] = [
  {
    name: 'attributes of a commit are merged key by key, and found by queries',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { searchAttributes: { kept: 'yes', changed: 1 } })
      const row = makeRow('r', 0, { name: 'searchAttributes', kind: 'local', output: null })
      const searchAttributes = { changed: 2.5, flag: true, text: 'é "q"' }
      matches(await commit(store, { rows: [{ row }], searchAttributes }), { applied: true })
      const merged = { kept: 'yes', ...searchAttributes }
      matches(await store.getRun('r'), { searchAttributes: merged })
      const found = async (key: string, value: string | number | boolean) =>
        sizeOf(await store.listRuns({ attributes: [{ key, op: 'eq', value }] }))
      assert.deepEqual(
        [await found('changed', 1), await found('changed', 2.5), await found('kept', 'yes')],
        [0, 1, 1]
      )
      assert.equal(await found('flag', true), 1)
    },
  },
  {
    name: 'attributes ride with the end of a turn',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const settle = { status: 'completed', patch: { output: 1 } } as const
      matches(await commit(store, { searchAttributes: { a: 'x' }, settle }), {
        applied: true,
        status: 'completed',
      })
      matches(await store.getRun('r'), { status: 'completed', searchAttributes: { a: 'x' } })
    },
  },
]

export const TURN_CLAIM_CASES: StoreCase[] = [...CLAIMS, ...ATTRIBUTES]
