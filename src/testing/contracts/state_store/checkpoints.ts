/*
 * Contract: checkpoint rows and the reads by name.
 */
import assert from 'node:assert/strict'
import {
  at,
  makeRow,
  matches,
  pendingRow,
  same,
  saveRows,
  seqs,
  sizeOf,
  type StoreCase,
} from './support.ts'

export const CHECKPOINT_CASES: StoreCase[] = [
  {
    name: 'saving twice at one key keeps one row, the last one whole',
    async run(store) {
      await saveRows(
        store,
        pendingRow('r', 0, { parallelGroup: 'all:0', wakeAt: 5, workerGroup: 'g' }),
        makeRow('r', 0, { output: 'second', attempts: 2 })
      )
      same(await store.listCheckpoints('r'), [makeRow('r', 0, { output: 'second', attempts: 2 })])
    },
  },
  {
    name: 'a timeline lists its own rows by position, undos first',
    async run(store) {
      await saveRows(store, ...[10, 2, -1, 0, -2, 1].map((seq) => makeRow('r', seq)))
      await saveRows(store, makeRow('r2', 0), makeRow('R', 0))
      assert.deepEqual(seqs(await store.listCheckpoints('r')), [-2, -1, 0, 1, 2, 10])
      assert.deepEqual(await store.listCheckpoints('nobody'), [])
    },
  },
  {
    name: 'a missing checkpoint reads null',
    async run(store) {
      await store.saveCheckpoint(makeRow('r', 0))
      assert.equal(await store.getCheckpoint('r', 1), null)
      assert.equal(await store.getCheckpoint('nobody', 0), null)
    },
  },
  {
    name: 'events and error details round-trip',
    async run(store) {
      const row = makeRow('r', 0, {
        status: 'failed',
        error: { message: 'no', code: 'x', retryable: false, details: { at: [1, null] } },
        events: [
          { at: 5, level: 'info', message: 'hello', data: { n: 1 } },
          { at: 6, level: 'warn', message: 'sub', subId: 's', name: 'n', status: 'skipped' },
        ],
      })
      await store.saveCheckpoint(row)
      same(await store.getCheckpoint('r', 0), row)
    },
  },
  {
    name: 'every time, the group and the routing of a row round-trip',
    async run(store) {
      const row = makeRow('r', 3, {
        kind: 'sleep',
        parallelGroup: 'all:3',
        workerGroup: 'mail@acme',
        wakeAt: at(50).getTime(),
        enqueuedAt: at(10),
        startedAt: at(20),
        finishedAt: at(30),
        lastHeartbeatAt: at(25),
        heartbeatProgress: { done: 3 },
      })
      await store.saveCheckpoint(row)
      same(await store.getCheckpoint('r', 3), row)
    },
  },
  {
    name: 'delivery order, attempt limit and liveness window round-trip, 0 included',
    requires: ['commitTurn'],
    async run(store) {
      const row = makeRow('r', 0, { order: 0, maxAttempts: 3, timeoutMs: 5000 })
      await store.saveCheckpoint(row)
      same(await store.getCheckpoint('r', 0), row)
      await store.saveCheckpoint(makeRow('r', 0))
      matches(await store.getCheckpoint('r', 0), { order: undefined, maxAttempts: undefined })
    },
  },
  {
    name: 'a name of 512 characters is kept whole',
    async run(store) {
      const name = `signal:${'n'.repeat(505)}`
      await store.saveCheckpoint(makeRow('r', 0, { name }))
      matches(await store.getCheckpoint('r', 0), { name })
    },
  },
  {
    name: 'concurrent first saves of one key all resolve',
    async run(store) {
      await Promise.all(
        [0, 1, 2, 3].map((output) => store.saveCheckpoint(makeRow('r', 0, { output })))
      )
      assert.equal(sizeOf(await store.listCheckpoints('r')), 1)
    },
  },
  {
    name: 'a beat sets time and progress of a row and nothing else',
    requires: ['recordStepHeartbeat'],
    async run(store) {
      const row = pendingRow('r', 0, { wakeAt: 7 })
      await store.saveCheckpoint(row)
      await store.recordStepHeartbeat('r', 0, at(40), { done: 1 })
      const beaten = { ...row, lastHeartbeatAt: at(40), heartbeatProgress: { done: 1 } }
      same(await store.getCheckpoint('r', 0), beaten)
      await store.recordStepHeartbeat('r', 0, at(41))
      same(await store.getCheckpoint('r', 0), { ...row, lastHeartbeatAt: at(41) })
    },
  },
  {
    name: 'a beat for a row that is not there inserts nothing',
    requires: ['recordStepHeartbeat'],
    async run(store) {
      await store.recordStepHeartbeat('r', 0, at(40))
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  {
    name: 'a later save without heartbeat keys keeps the beat',
    requires: ['recordStepHeartbeat'],
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      await store.recordStepHeartbeat('r', 0, at(40), 'half')
      await store.saveCheckpoint(makeRow('r', 0))
      matches(await store.getCheckpoint('r', 0), {
        status: 'completed',
        lastHeartbeatAt: at(40),
        heartbeatProgress: 'half',
      })
    },
  },
  {
    name: 'a later save that carries heartbeat keys writes them',
    requires: ['recordStepHeartbeat'],
    async run(store) {
      await store.saveCheckpoint(pendingRow('r', 0))
      await store.recordStepHeartbeat('r', 0, at(40), 'half')
      await store.saveCheckpoint(
        pendingRow('r', 0, { lastHeartbeatAt: undefined, heartbeatProgress: 'all' })
      )
      matches(await store.getCheckpoint('r', 0), {
        lastHeartbeatAt: undefined,
        heartbeatProgress: 'all',
      })
    },
  },
  {
    name: 'what a caller does to a row it gave or got changes nothing stored',
    async run(store) {
      const given = makeRow('r', 0, { output: 1 })
      await store.saveCheckpoint(given)
      given.status = 'failed'
      const got = await store.getCheckpoint('r', 0)
      got!.status = 'failed'
      matches(await store.getCheckpoint('r', 0), { status: 'completed', output: 1 })
    },
  },
  {
    name: 'the latest row of a name is the one at the highest position',
    requires: ['getLatestCheckpointByName'],
    kit: true,
    async run(store) {
      await saveRows(
        store,
        makeRow('r', 4, { name: 'event:x', output: 'late' }),
        makeRow('r', 1, { name: 'event:x', output: 'early' }),
        makeRow('r', 9, { name: 'event:y' })
      )
      matches(await store.getLatestCheckpointByName('r', 'event:x'), { seq: 4, output: 'late' })
      assert.equal(await store.getLatestCheckpointByName('r', 'event:z'), undefined)
    },
  },
  {
    name: 'the latest row of a name is of that run and exactly that name',
    requires: ['getLatestCheckpointByName'],
    kit: true,
    async run(store) {
      await saveRows(
        store,
        makeRow('r', 0, { name: 'event:x' }),
        makeRow('r', 1, { name: 'event:xy' }),
        makeRow('r', 2, { name: 'EVENT:X' }),
        makeRow('r2', 9, { name: 'event:x' })
      )
      matches(await store.getLatestCheckpointByName('r', 'event:x'), { runId: 'r', seq: 0 })
    },
  },
  {
    name: 'rows by name prefix: any of the prefixes, by position, each once',
    requires: ['listCheckpointsByNamePrefix'],
    kit: true,
    async run(store) {
      await saveRows(
        store,
        makeRow('r', 5, { name: 'spawn:a' }),
        makeRow('r', 2, { name: 'signal:child:b' }),
        makeRow('r', 3, { name: 'signal:other' }),
        makeRow('r2', 1, { name: 'spawn:c' })
      )
      const prefixes = ['spawn:', 'signal:child:', 'signal:child']
      const rows = await store.listCheckpointsByNamePrefix('r', prefixes)
      assert.deepEqual(seqs(rows), [2, 5])
    },
  },
  {
    name: 'no prefixes select no rows',
    requires: ['listCheckpointsByNamePrefix'],
    kit: true,
    async run(store) {
      await store.saveCheckpoint(makeRow('r', 0))
      assert.deepEqual(await store.listCheckpointsByNamePrefix('r', []), [])
    },
  },
  {
    name: 'a prefix is literal and its case matters',
    requires: ['listCheckpointsByNamePrefix'],
    kit: true,
    async run(store) {
      const names = ['a_b:1', 'aXb:2', 'a%b:3', 'a\\b:4', 'A_b:5', "a'b:6"]
      await saveRows(store, ...names.map((name, seq) => makeRow('r', seq, { name })))
      const found = async (prefix: string) =>
        seqs(await store.listCheckpointsByNamePrefix('r', [prefix]))
      assert.deepEqual(await Promise.all(['a_', 'a%', 'a\\', "a'", 'A'].map(found)), [
        [0],
        [2],
        [3],
        [5],
        [4],
      ])
    },
  },
]
