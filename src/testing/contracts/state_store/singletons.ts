/*
 * Contract: singleton admission. A slot is held from admission to a terminal status and by nothing else.
 */
import assert from 'node:assert/strict'
import type { SingletonClaim } from '../../../store/ports/singleton_claims.ts'
import { SINGLETON_ADMITTED, SINGLETON_TRACKED } from '../../../store/ports/singleton_rules.ts'
import type { WorkflowRun } from '../../../types/run.ts'
import {
  at,
  createRuns,
  makeRun,
  matches,
  range,
  runOf,
  T0,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

const KEY = 'singleton:shop:A'
const RETRY_AT = T0 + 1000

const claim = (store: StoreUnderTest, runId: string, fields: Partial<SingletonClaim> = {}) =>
  store.tryAdmitSingleton({
    runId,
    workflow: 'orders',
    tag: KEY,
    limit: 1,
    retryAt: RETRY_AT,
    nowMs: T0,
    ...fields,
  })

/** A run of the key that a turn has begun to execute. */
const contender = (id: string, createdAtMs: number, fields: Partial<WorkflowRun> = {}) =>
  makeRun(id, {
    status: 'running',
    turns: 1,
    createdAt: at(createdAtMs),
    tags: ['user', KEY, SINGLETON_TRACKED],
    ...fields,
  })

const rawTags = (run: WorkflowRun) => run.tags
const tagsOf = (run: WorkflowRun) => run.tags?.sort()
const isAdmitted = (run: WorkflowRun) => run.tags?.includes(SINGLETON_ADMITTED) ?? false

const ADMITTED = { admitted: true }
const PARKED = { admitted: false, status: 'suspended' }

export const SINGLETON_CASES: StoreCase[] = [
  {
    name: 'the oldest contender is admitted and marked, a younger one parked until its retry',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(store, contender('old', 1), contender('young', 2))
      assert.deepEqual(await claim(store, 'young'), PARKED)
      matches(await store.getRun('young'), { status: 'suspended', wakeAt: RETRY_AT })
      assert.deepEqual(tagsOf(await runOf(store, 'young')), [SINGLETON_TRACKED, KEY, 'user'])
      assert.deepEqual(await claim(store, 'old'), ADMITTED)
      matches(await store.getRun('old'), { status: 'running', wakeAt: undefined })
      assert.deepEqual(tagsOf(await runOf(store, 'old')), [
        SINGLETON_ADMITTED,
        SINGLETON_TRACKED,
        KEY,
        'user',
      ])
    },
  },
  {
    name: 'of equally old contenders the lowest id is admitted',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(store, contender('b', 1), contender('a', 1), contender('B', 1))
      assert.deepEqual(await claim(store, 'a'), PARKED)
      assert.deepEqual(await claim(store, 'B'), ADMITTED)
    },
  },
  {
    name: 'a denial leaves the lease to its holder',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(
        store,
        contender('old', 1),
        contender('young', 2, { lockedBy: 'me', lockedUntil: T0 + 9 })
      )
      await claim(store, 'young')
      matches(await store.getRun('young'), { lockedBy: 'me', lockedUntil: T0 + 9 })
    },
  },
  {
    name: 'concurrent claims admit no more than the limit, and the oldest',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      const all = range(1, 6).map((n) => `r${n}`)
      await createRuns(store, ...all.map((id, index) => contender(id, index)))
      const verdicts = await Promise.all(
        [...all].reverse().map((id) => claim(store, id, { limit: 2 }))
      )
      const admitted = [...all].reverse().filter((_id, index) => verdicts[index].admitted)
      assert.deepEqual(admitted.sort(), ['r1', 'r2'])
    },
  },
  {
    name: 'a holder is confirmed while suspended, blocked or without a live lease',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(store, contender('holder', 5))
      await claim(store, 'holder')
      await store.createRun(contender('older', 1))
      const states: Partial<WorkflowRun>[] = [
        { status: 'suspended', wakeAt: T0 + 99_999 },
        { status: 'blocked' },
        { status: 'running', lockedBy: 'dead', lockedUntil: T0 - 1 },
      ]
      for (const state of states) {
        await store.updateRun('holder', state)
        assert.deepEqual(await claim(store, 'older'), PARKED)
        assert.deepEqual(await claim(store, 'holder'), ADMITTED)
        matches(await store.getRun('holder'), { status: state.status })
      }
    },
  },
  {
    name: 'a pending older run keeps its place',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(
        store,
        contender('older', 1, { status: 'pending', turns: undefined }),
        contender('younger', 2)
      )
      assert.deepEqual(await claim(store, 'younger'), PARKED)
    },
  },
  {
    name: 'a delayed start that has not begun does not block the key before its time',
    requires: ['tryAdmitSingleton', 'commitTurn'],
    async run(store) {
      await createRuns(
        store,
        contender('tomorrow', 1, {
          status: 'suspended',
          turns: undefined,
          wakeAt: T0 + 86_400_000,
        }),
        contender('now', 2)
      )
      assert.deepEqual(await claim(store, 'now'), ADMITTED)
      assert.deepEqual(await claim(store, 'tomorrow', { nowMs: T0 + 86_400_000 }), PARKED)
    },
  },
  {
    name: 'a claimant that was cancelled meanwhile stays cancelled; one that is gone is told so',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      const cancelled = contender('r', 1, { status: 'cancelled', error: { message: 'cancelled' } })
      await store.createRun(cancelled)
      assert.deepEqual(await claim(store, 'r'), { admitted: false, status: 'cancelled' })
      matches(await store.getRun('r'), cancelled)
      assert.deepEqual(await claim(store, 'nobody'), { admitted: false, status: null })
    },
  },
  {
    name: 'a terminal write frees the slot and takes the marks, conditional or not',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(store, contender('a', 1), contender('b', 2), contender('c', 3))
      await claim(store, 'a')
      assert.equal(await store.updateRunIf('a', ['pending'], { status: 'completed' }), false)
      assert.deepEqual(await claim(store, 'b'), PARKED)
      await store.updateRunIf('a', ['running'], { status: 'completed' })
      assert.deepEqual(rawTags(await runOf(store, 'a')), ['user', KEY])
      assert.deepEqual(await claim(store, 'b'), ADMITTED)
      const tags = ['new', KEY, SINGLETON_ADMITTED, SINGLETON_TRACKED]
      await store.updateRun('b', { status: 'dead', tags })
      assert.deepEqual(rawTags(await runOf(store, 'b')), ['new', KEY])
      assert.deepEqual(await claim(store, 'c'), ADMITTED)
    },
  },
  {
    name: 'a write that is not terminal keeps the marks',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await store.createRun(contender('a', 1))
      await claim(store, 'a')
      await store.updateRunIf('a', ['running'], { status: 'suspended', wakeAt: T0 + 5 })
      assert.ok(isAdmitted(await runOf(store, 'a')))
    },
  },
  {
    name: 'another workflow has its own slot; another namespace shares it',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(
        store,
        contender('a', 1, { namespace: 'acme' }),
        contender('b', 2, { namespace: 'globex' }),
        contender('c', 3, { workflow: 'other' }),
        contender('d', 4, { tags: ['singleton:shop:B', SINGLETON_TRACKED] })
      )
      assert.deepEqual(await claim(store, 'a'), ADMITTED)
      assert.deepEqual(await claim(store, 'b'), PARKED)
      assert.deepEqual(await claim(store, 'c', { workflow: 'other' }), ADMITTED)
      assert.deepEqual(await claim(store, 'd', { tag: 'singleton:shop:B' }), ADMITTED)
    },
  },
  {
    name: 'keys with quotes, wildcards and a common beginning stay apart',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      const keys = ['a"b', 'a%b', 'a_b', 'aXb', 'A_B', 'a', '"a"', 'a\ud800', 'a\ufffd'].map(
        (key) => `singleton:${key}`
      )
      for (const [index, tag] of keys.entries()) {
        await store.createRun(contender(`r${index}`, index, { tags: [tag, SINGLETON_TRACKED] }))
      }
      for (const [index, tag] of keys.entries()) {
        assert.deepEqual(await claim(store, `r${index}`, { tag }), ADMITTED, tag)
      }
    },
  },
  {
    name: 'runs that began before admission was tracked count as holders',
    requires: ['tryAdmitSingleton'],
    async run(store) {
      await createRuns(
        store,
        contender('new-but-older', 1),
        contender('legacy', 5, { tags: [KEY] }),
        contender('legacy-2', 6, { tags: [KEY], status: 'suspended' })
      )
      assert.deepEqual(await claim(store, 'new-but-older'), PARKED)
      assert.deepEqual(await claim(store, 'legacy-2'), PARKED)
      assert.deepEqual(await claim(store, 'legacy'), ADMITTED)
      assert.ok(isAdmitted(await runOf(store, 'legacy')))
      assert.deepEqual(await claim(store, 'new-but-older', { limit: 2 }), ADMITTED)
    },
  },
]
