/*
 * Contract: turns, deliveries, claims, cancels and takeovers at the same time. Each case plays its race
 * many times over, on runs of their own, and checks that every outcome is one of the allowed ones.
 */
import assert from 'node:assert/strict'
import {
  createHeldRun,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  oneWinner,
  pendingRow,
  range,
  runOf,
  T0,
  takeAllBuffered,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'
import { commit } from './turn_commits.ts'
import { expiry, wait } from './turn_waits.ts'

const ROUNDS = range(1, 12)

const deliver = (store: StoreUnderTest, token: string, payload: unknown) =>
  store.deliverSignal({ token, payload, nowMs: T0, buffer: true })

const TURNS: StoreCase[] = [
  {
    name: 'a commit and a takeover at once: the row is there exactly when the commit applied',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const runId = `r${n}`
          await createHeldRun(store, runId, { lockedUntil: T0 - 1 })
          const [verdict, taken] = await Promise.all([
            commit(store, { runId, rows: [{ row: pendingRow(runId, 0) }] }),
            store.tryLockRun(runId, 'new', T0 + 99, T0),
          ])
          assert.equal(taken, true)
          matches(await store.getRun(runId), { lockedBy: 'new' })
          assert.equal((await store.getCheckpoint(runId, 0)) !== null, verdict.applied)
          const late = await commit(store, { runId, rows: [{ row: pendingRow(runId, 1) }] })
          assert.equal(late.applied, false)
          assert.equal(await store.getCheckpoint(runId, 1), null)
        })
      )
    },
  },
  {
    name: 'a settle and a cancel at once: exactly one ends the run',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const runId = `r${n}`
          await createHeldRun(store, runId)
          const [verdict, cancelled] = await Promise.all([
            commit(store, {
              runId,
              rows: [{ row: makeRow(runId, 0) }],
              runs: [makeRun(`${runId}~1`)],
              settle: { status: 'completed', patch: { output: n } },
            }),
            store.updateRunIf(runId, ['running'], { status: 'cancelled' }),
          ])
          oneWinner([verdict.applied, cancelled])
          matches(await store.getRun(runId), {
            status: cancelled ? 'cancelled' : 'completed',
            output: cancelled ? undefined : n,
          })
          assert.equal((await store.getCheckpoint(runId, 0)) !== null, verdict.applied)
          assert.equal((await store.getRun(`${runId}~1`)) !== null, verdict.applied)
        })
      )
    },
  },
  {
    name: 'a settle and a cancel intent at once: the intent is refused or told',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const runId = `r${n}`
          await createHeldRun(store, runId)
          const settle = { status: 'completed', patch: { output: n } } as const
          const [verdict, marked] = await Promise.all([
            commit(store, { runId, settle }),
            store.updateRunIf(runId, ['running'], { cancelRequestedAt: T0 }),
          ])
          oneWinner([verdict.applied, marked])
          if (marked) matches(verdict, { status: 'running', cancelRequested: true })
        })
      )
    },
  },
  {
    name: 'one commit sent at once twice writes once and takes once',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const runId = `r${n}`
          const token = `t${n}`
          await createHeldRun(store, runId)
          await store.bufferSignal(token, 'a')
          await store.bufferSignal(token, 'b')
          const fields = {
            runId,
            rows: [{ row: makeRow(runId, 0, { output: n }) }],
            waits: [wait(token, 1, runId)],
            runs: [makeRun(`${runId}.child`)],
          }
          const verdicts = await Promise.all([commit(store, fields), commit(store, fields)])
          assert.ok(verdicts.every((verdict) => verdict.applied))
          matches(await store.getCheckpoint(runId, 1), { output: 'a' })
          assert.deepEqual(await takeAllBuffered(store, token), ['b'])
        })
      )
    },
  },
  {
    name: 'a commit of open rows and their results at once: no result is lost',
    requires: ['commitTurn', 'settleCheckpointsIfPending'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const runId = `r${n}`
          await createHeldRun(store, runId)
          const rows = range(0, 4).map((seq) => pendingRow(runId, seq))
          for (const row of rows) await store.saveCheckpoint(row)
          const [verdict, settled] = await Promise.all([
            commit(store, { runId, rows: rows.map((row) => ({ row: { ...row, attempts: 2 } })) }),
            store.settleCheckpointsIfPending(
              [...rows].reverse().map(({ seq }) => ({
                runId,
                seq,
                status: 'completed' as const,
                finishedAt: new Date(T0),
                output: seq,
              }))
            ),
          ])
          assert.equal(verdict.applied, true)
          assert.deepEqual(settled, [true, true, true, true, true])
          for (const row of await store.listCheckpoints(runId)) {
            matches(row, { status: 'completed', output: row.seq })
          }
        })
      )
    },
  },
]

const SIGNALS: StoreCase[] = [
  {
    name: 'several payloads for one waiter at once: one is delivered, the others are kept',
    requires: ['deliverSignal'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [runId, token] = [`r${n}`, `t${n}`]
          await store.createRun(makeRun(runId, { status: 'suspended' }))
          await store.putSignalWaiter(makeWaiter(token, runId, 0))
          const outcomes = await Promise.all([1, 2, 3].map((each) => deliver(store, token, each)))
          oneWinner(outcomes.map((outcome) => outcome.delivered))
          const row = await store.getCheckpoint(runId, 0)
          const kept = await takeAllBuffered(store, token)
          assert.deepEqual([row?.output, ...kept].sort(), [1, 2, 3])
        })
      )
    },
  },
  {
    name: 'a delivery and the end of its wait at once: one outcome, and the payload is not lost',
    requires: ['commitTurn', 'deliverSignal'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [runId, token] = [`r${n}`, `t${n}#`]
          await createHeldRun(store, runId)
          await store.putSignalWaiter(makeWaiter(token, runId, 0))
          const [verdict, outcome] = await Promise.all([
            commit(store, { runId, expiries: [expiry(token, 0, runId)] }),
            deliver(store, token, 'paid'),
          ])
          assert.equal(verdict.applied, true)
          const row = await store.getCheckpoint(runId, 0)
          const kept = await takeAllBuffered(store, token)
          assert.equal(row?.status, outcome.delivered ? 'completed' : 'failed')
          assert.deepEqual(kept, outcome.delivered ? [] : ['paid'])
          assert.equal(verdict.stored.length, outcome.delivered ? 1 : 0)
          assert.deepEqual(await store.listSignalWaiters(token), [])
        })
      )
    },
  },
  {
    name: 'a wait and a payload at once meet after the second looks, and only once',
    requires: ['commitTurn', 'deliverSignal', 'pairSignal'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [runId, token] = [`r${n}`, `t${n}#`]
          await createHeldRun(store, runId)
          const turn = async () => {
            await commit(store, { runId, waits: [wait(token, 0, runId)] })
            const settle = {
              status: 'suspended',
              patch: {},
              looks: [wait(token, 0, runId)],
            } as const
            return commit(store, { runId, settle: { ...settle, looks: [...settle.looks] } })
          }
          const signal = async () => {
            const outcome = await deliver(store, token, n)
            return outcome.delivered ? outcome : store.pairSignal(token, T0)
          }
          const [verdict] = await Promise.all([turn(), signal()])
          assert.equal(verdict.applied, true)
          matches(await store.getCheckpoint(runId, 0), { status: 'completed', output: n })
          assert.deepEqual(await takeAllBuffered(store, token), [])
          assert.deepEqual(await store.listSignalWaiters(token), [])
        })
      )
    },
  },
  {
    name: 'second looks at once pair a payload once',
    requires: ['pairSignal'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [runId, token] = [`r${n}`, `t${n}`]
          await store.createRun(makeRun(runId, { status: 'suspended' }))
          await store.putSignalWaiter(makeWaiter(token, runId, 0))
          await store.bufferSignal(token, 'a')
          await store.bufferSignal(token, 'b')
          const outcomes = await Promise.all([1, 2, 3].map(() => store.pairSignal(token, T0)))
          oneWinner(outcomes.map((outcome) => outcome.delivered))
          matches(await store.getCheckpoint(runId, 0), { output: 'a' })
          assert.deepEqual(await takeAllBuffered(store, token), ['b'])
        })
      )
    },
  },
  {
    name: 'a claim and a delivery at once: the wake is seen by the claimed turn or stays asked for',
    requires: ['claimRun', 'deliverSignal'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [runId, token] = [`r${n}`, `t${n}`]
          await store.createRun(makeRun(runId, { status: 'suspended', wakeAt: T0, turns: 1 }))
          await store.putSignalWaiter(makeWaiter(token, runId, 0))
          const turn = async () => {
            const from = ['suspended' as const]
            const claim = { runId, owner: 'me', leaseUntilMs: T0 + 99, nowMs: T0, from }
            assert.ok(await store.claimRun(claim))
            return store.getCheckpoint(runId, 0)
          }
          const [seen] = await Promise.all([turn(), deliver(store, token, n)])
          const run = await runOf(store, runId)
          assert.ok(seen !== null || run.wakeRequestedAt !== undefined)
        })
      )
    },
  },
  {
    name: 'turns and deliveries over shared tokens at once lose no payload and finish',
    requires: ['commitTurn', 'deliverSignal'],
    async run(store) {
      const tokens = ['x', 'y', 'z']
      const runs = range(1, 9).map((n) => `r${n}`)
      for (const id of runs) await createHeldRun(store, id)
      await Promise.all([
        ...runs.map((runId, index) =>
          commit(store, {
            runId,
            waits: range(0, 2).map((k) => wait(tokens[(index + k) % 3], k, runId)),
          })
        ),
        ...range(1, 12).map((n) => deliver(store, tokens[n % 3], n)),
      ])
      const seen: unknown[] = []
      for (const id of runs) {
        for (const row of await store.listCheckpoints(id)) seen.push(row.output)
      }
      for (const token of tokens) seen.push(...(await takeAllBuffered(store, token)))
      assert.deepEqual(
        seen.map(Number).sort((a, b) => a - b),
        range(1, 12)
      )
    },
  },
]

export const RACE_CASES: StoreCase[] = [...TURNS, ...SIGNALS]
