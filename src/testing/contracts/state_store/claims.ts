/*
 * Contract: taking runs for a turn, one or a batch.
 */
import assert from 'node:assert/strict'
import type { ClaimedRun, DueClaim, RunClaim } from '../../../store/ports/run_claims.ts'
import type { WorkflowRun } from '../../../types/run.ts'
import {
  at,
  createRuns,
  ids,
  makeRun,
  matches,
  oneWinner,
  range,
  sizeOf,
  T0,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const NOW = T0 + 1000
const UNTIL = NOW + 30_000

const claim = (store: StoreUnderTest, fields: Partial<RunClaim> = {}) =>
  store.claimRun({
    runId: 'r',
    owner: 'me',
    leaseUntilMs: UNTIL,
    nowMs: NOW,
    from: ['pending', 'suspended', 'blocked'],
    ...fields,
  })

const claimDue = (store: StoreUnderTest, fields: Partial<DueClaim> = {}) =>
  store.claimDueRuns({
    kind: 'due',
    owner: 'me',
    leaseUntilMs: UNTIL,
    nowMs: NOW,
    limit: 99,
    ...fields,
  })

const claimedIds = (claims: ClaimedRun[]): string[] => ids(claims.map((each) => each.run))

const parked = (id: string, wakeAt: number | undefined, fields: Partial<WorkflowRun> = {}) =>
  makeRun(id, { status: 'suspended', wakeAt, turns: 1, ...fields })

const ONE: StoreCase[] = [
  {
    name: 'a claim leases a new run, makes it running and counts its first turn',
    requires: ['claimRun'],
    async run(store) {
      await store.createRun(makeRun('r', { tags: ['t'], priority: 2 }))
      const claimed = await claim(store)
      matches(claimed, { previousStatus: 'pending', previousTurns: undefined })
      const expected: Partial<WorkflowRun> = {
        ...makeRun('r', { tags: ['t'], priority: 2 }),
        status: 'running',
        lockedBy: 'me',
        lockedUntil: UNTIL,
        turns: 1,
        claimedAt: new Date(NOW),
        updatedAt: new Date(NOW),
        namespace: 'default',
      }
      matches(claimed!.run, expected)
      matches(await store.getRun('r'), expected)
    },
  },
  {
    name: 'a claim tells the former status and turn, and clears wake request and awaited range',
    requires: ['claimRun'],
    async run(store) {
      const fields = { wakeRequestedAt: T0 + 3, waitSeqs: { from: 1, to: 2 }, turns: 4 }
      await store.createRun(parked('r', T0 + 99_999, fields))
      const claimed = await claim(store)
      matches(claimed, { previousStatus: 'suspended', previousTurns: 4 })
      const cleared = { turns: 5, wakeRequestedAt: undefined, waitSeqs: undefined }
      matches(claimed!.run, cleared)
      matches(await store.getRun('r'), { ...cleared, status: 'running' })
      assert.deepEqual(await store.listDueTimers(T0 + 999_999), [])
    },
  },
  {
    name: 'a claim takes runs of the statuses it names only',
    requires: ['claimRun'],
    async run(store) {
      const statuses = [
        'pending',
        'running',
        'suspended',
        'blocked',
        'completed',
        'failed',
        'cancelled',
        'dead',
      ] as const
      await createRuns(store, ...statuses.map((status) => makeRun(status, { status })))
      const taken: string[] = []
      for (const runId of statuses) if (await claim(store, { runId })) taken.push(runId)
      assert.deepEqual(taken, ['pending', 'suspended', 'blocked'])
      matches(await store.getRun('failed'), { status: 'failed', lockedBy: undefined })
      matches(await claim(store, { runId: 'failed', from: ['failed'] }), {
        previousStatus: 'failed',
      })
      assert.equal(await claim(store, { runId: 'dead', from: [] }), null)
    },
  },
  {
    name: 'a run that is gone, or leased, cannot be claimed; an expired lease can',
    requires: ['claimRun'],
    async run(store) {
      assert.equal(await claim(store, { runId: 'nobody' }), null)
      await store.createRun(makeRun('r', { lockedBy: 'x', lockedUntil: NOW + 1 }))
      assert.equal(await claim(store), null)
      matches(await store.getRun('r'), { status: 'pending', lockedBy: 'x', turns: undefined })
      matches(await claim(store, { nowMs: NOW + 1 }), { previousStatus: 'pending' })
      matches(await store.getRun('r'), { lockedBy: 'me' })
    },
  },
  {
    name: 'a claim of a namespace takes runs of that namespace only',
    requires: ['claimRun'],
    async run(store) {
      await createRuns(store, makeRun('r', { namespace: 'acme' }), makeRun('s'))
      assert.equal(await claim(store, { namespace: 'globex' }), null)
      matches(await store.getRun('r'), { status: 'pending', lockedBy: undefined })
      assert.ok(await claim(store, { namespace: 'acme' }))
      assert.ok(await claim(store, { runId: 's', namespace: 'default' }))
    },
  },
  {
    name: 'of concurrent claims one wins, and the turn is counted once',
    requires: ['claimRun'],
    async run(store) {
      await store.createRun(parked('r', T0, { turns: 6 }))
      const owners = range(1, 8).map((n) => `owner-${n}`)
      const answers = await Promise.all(owners.map((owner) => claim(store, { owner })))
      oneWinner(answers.map((claimed) => claimed !== null))
      const winner = owners[answers.findIndex((claimed) => claimed !== null)]
      matches(await store.getRun('r'), { turns: 7, lockedBy: winner })
    },
  },
  {
    name: 'a wake request that comes after the claim is kept',
    requires: ['claimRun'],
    async run(store) {
      await store.createRun(parked('r', T0, { wakeRequestedAt: T0 }))
      await claim(store)
      await store.updateRun('r', { wakeRequestedAt: NOW + 1 })
      matches(await store.getRun('r'), { wakeRequestedAt: NOW + 1 })
      await store.releaseRunLock('r', 'me')
      await store.updateRunIf('r', ['running'], { status: 'suspended', wakeAt: undefined })
      matches(await claim(store), { previousTurns: 2 })
    },
  },
]

const BATCH: StoreCase[] = [
  {
    name: 'a batch claims pending runs oldest first, ties by id, up to its limit',
    requires: ['claimDueRuns'],
    async run(store) {
      await createRuns(
        store,
        makeRun('d', { createdAt: at(5) }),
        makeRun('c', { createdAt: at(2) }),
        makeRun('B', { createdAt: at(2) }),
        parked('due', T0 - 5)
      )
      const claimed = await claimDue(store, { kind: 'pending', limit: 2 })
      assert.deepEqual(claimedIds(claimed), ['B', 'c'])
      for (const { run, previousStatus, previousTurns } of claimed) {
        assert.deepEqual([previousStatus, previousTurns], ['pending', undefined])
        matches(run, { status: 'running', lockedBy: 'me', lockedUntil: UNTIL, turns: 1 })
        matches(await store.getRun(run.id), { status: 'running', lockedBy: 'me', turns: 1 })
      }
      assert.deepEqual(claimedIds(await claimDue(store, { kind: 'pending' })), ['d'])
      assert.deepEqual(await claimDue(store, { kind: 'pending' }), [])
    },
  },
  {
    name: 'a batch claims due runs most overdue first: by deadline, by request, blocked ones too',
    requires: ['claimDueRuns'],
    async run(store) {
      await createRuns(
        store,
        parked('timer', NOW - 50),
        parked('exactly-now', NOW),
        parked('asked', NOW + 99_999, { wakeRequestedAt: NOW - 20 }),
        parked('asked-only', undefined, { wakeRequestedAt: NOW - 30 }),
        parked('both', NOW - 10, { wakeRequestedAt: NOW - 500 }),
        makeRun('blocked', { status: 'blocked', wakeAt: NOW - 40, turns: 2 }),
        makeRun('blocked-later', { status: 'blocked', wakeAt: NOW + 1, wakeRequestedAt: NOW - 5 }),
        parked('later', NOW + 1),
        makeRun('pending', { wakeAt: NOW - 99 })
      )
      const claimed = await claimDue(store)
      const order = ['timer', 'blocked', 'asked-only', 'asked', 'both', 'exactly-now']
      assert.deepEqual(claimedIds(claimed), order)
      matches(claimed[1], { previousStatus: 'blocked', previousTurns: 2 })
      matches(claimed[3].run, { wakeRequestedAt: undefined, turns: 2 })
      matches(await store.getRun('later'), { status: 'suspended', lockedBy: undefined })
    },
  },
  {
    name: 'a batch skips leased runs without spending its limit on them',
    requires: ['claimDueRuns'],
    async run(store) {
      await createRuns(
        store,
        ...range(1, 5).map((n) =>
          parked(`held-${n}`, T0 - n, { lockedBy: 'x', lockedUntil: NOW + 1 })
        ),
        parked('free', T0),
        parked('lapsed', T0 + 1, { lockedBy: 'x', lockedUntil: NOW })
      )
      assert.deepEqual(claimedIds(await claimDue(store, { limit: 2 })), ['free', 'lapsed'])
    },
  },
  {
    name: 'a batch takes the most overdue of all kinds when its limit is small',
    requires: ['claimDueRuns'],
    async run(store) {
      await createRuns(
        store,
        parked('a', NOW - 10),
        parked('b', NOW + 9, { wakeRequestedAt: NOW - 40 }),
        makeRun('c', { status: 'blocked', wakeAt: NOW - 30 }),
        parked('d', NOW - 20)
      )
      assert.deepEqual(claimedIds(await claimDue(store, { limit: 2 })), ['b', 'c'])
      assert.deepEqual(claimedIds(await claimDue(store, { limit: 2 })), ['d', 'a'])
      assert.deepEqual(await claimDue(store, { limit: 0 }), [])
    },
  },
  {
    name: 'a batch obeys its namespace and leaves excluded runs, before its limit',
    requires: ['claimDueRuns'],
    async run(store) {
      for (const kind of ['pending', 'due'] as const) {
        const make = (id: string, createdMs: number, namespace: string) =>
          kind === 'pending'
            ? makeRun(`${kind}-${id}`, { createdAt: at(createdMs), namespace })
            : parked(`${kind}-${id}`, T0 + createdMs, { namespace })
        await createRuns(
          store,
          make('theirs-1', 1, 'globex'),
          make('theirs-2', 2, 'globex'),
          make('not-here', 3, 'acme'),
          make('mine', 4, 'acme')
        )
        const claimed = await claimDue(store, {
          kind,
          namespace: 'acme',
          exclude: [`${kind}-not-here`],
          limit: 1,
        })
        assert.deepEqual(claimedIds(claimed), [`${kind}-mine`])
        assert.equal(sizeOf(await claimDue(store, { kind })), 3)
      }
    },
  },
  {
    name: 'concurrent batches claim every run once and none twice',
    requires: ['claimDueRuns'],
    async run(store) {
      const all = range(10, 33).map((n) => `r${n}`)
      await createRuns(store, ...all.map((id, index) => parked(id, T0 + index)))
      const drain = async (owner: string) => {
        const mine: string[] = []
        for (;;) {
          const claimed = await claimDue(store, { owner, limit: 5 })
          if (claimed.length === 0) return mine
          mine.push(...claimedIds(claimed))
        }
      }
      const shares = await Promise.all(['a', 'b', 'c'].map(drain))
      assert.deepEqual(shares.flat().sort(), all)
      for (const [index, owner] of ['a', 'b', 'c'].entries()) {
        for (const id of shares[index])
          matches(await store.getRun(id), { lockedBy: owner, turns: 2 })
      }
    },
  },
]

export const CLAIM_CASES: StoreCase[] = [...ONE, ...BATCH]
