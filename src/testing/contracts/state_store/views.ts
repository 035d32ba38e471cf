/*
 * Contract: scoped views, persisted schedules, transactions, wake hints, provisioning.
 */
import assert from 'node:assert/strict'
import type { WakeHint } from '../../../store/ports/wake_hints.ts'
import type { StateStore } from '../../../store/state_store.ts'
import type { ScheduleRecord } from '../../../types/schedule.ts'
import {
  at,
  createHeldRun,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  same,
  sizeOf,
  T0,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'

async function createTenants(store: StoreUnderTest): Promise<void> {
  for (const namespace of ['acme', 'globex']) {
    const fields = { namespace, origin: `@${namespace}/x` }
    await createRuns(
      store,
      makeRun(`${namespace}-p`, { ...fields, deadlineAt: T0 }),
      makeRun(`${namespace}-r`, { ...fields, status: 'running' }),
      makeRun(`${namespace}-s`, { ...fields, status: 'suspended', wakeAt: T0 }),
      makeRun(`${namespace}-c`, { ...fields, status: 'cancelled', cancelRequestedAt: T0 })
    )
  }
}

/** Ids of every run that any run read of the view answers. */
async function seenThrough(view: StateStore, namespace?: string): Promise<string[]> {
  const known = ['acme-p', 'globex-p', 'acme-r', 'globex-r']
  const points = await Promise.all(known.map((id) => view.getRun(id)))
  const lists = [
    points.filter((run) => run !== null),
    await view.listRuns({ namespace }),
    await view.listIncompleteRuns(namespace),
    await view.listPendingRuns(9, namespace),
    await view.listDueTimers(T0, namespace),
    (await view.getRuns?.(known)) ?? [],
    (await view.listOrphanedRuns?.(T0, namespace)) ?? [],
    (await view.listUnfinishedCancels?.(namespace)) ?? [],
    (await view.listOverdueRuns?.(T0, namespace)) ?? [],
  ]
  return [...new Set(lists.flatMap(ids))].sort()
}

const SCOPES: StoreCase[] = [
  {
    name: 'a scoped view hides other runs in every run read',
    requires: ['withScope'],
    async run(store) {
      await createTenants(store)
      const view = store.withScope({ namespace: 'acme' })
      assert.deepEqual(await seenThrough(view), ['acme-c', 'acme-p', 'acme-r', 'acme-s'])
      assert.equal(await view.getRun('globex-p'), null)
      if (view.countRuns) assert.equal(await view.countRuns({}), 4)
      if (view.runFacets) {
        const facets = await view.runFacets({})
        assert.ok(facets.length > 0 && facets.every((row) => row.origin === '@acme/x'))
      }
      if (view.runValueFacets) {
        same(await view.runValueFacets('namespace', {}), [{ value: 'acme', count: 4 }])
      }
    },
  },
  {
    name: 'a query that names another namespace finds nothing in a view',
    requires: ['withScope'],
    async run(store) {
      await createTenants(store)
      const view = store.withScope({ namespace: 'acme' })
      assert.deepEqual(await view.listRuns({ namespace: 'globex' }), [])
      assert.deepEqual(await view.listPendingRuns(9, 'globex'), [])
      if (view.countRuns) assert.equal(await view.countRuns({ namespace: 'globex' }), 0)
      assert.equal(sizeOf(await view.listRuns({ namespace: 'acme' })), 4)
    },
  },
  {
    name: 'an empty scope is unrestricted, and nested views narrow',
    requires: ['withScope'],
    async run(store) {
      await createTenants(store)
      assert.equal(sizeOf(await seenThrough(store.withScope({}))), 8)
      const acme = store.withScope({ namespace: 'acme' })
      assert.equal(sizeOf(await seenThrough(acme.withScope!({}))), 4)
      assert.deepEqual(await seenThrough(acme.withScope!({ namespace: 'globex' })), [])
    },
  },
  {
    name: 'writes, leases, waiters and schedules of a view are not fenced',
    requires: ['withScope'],
    async run(store) {
      await createTenants(store)
      const view = store.withScope({ namespace: 'acme' })
      await view.createRun(makeRun('new', { namespace: 'globex' }))
      await view.updateRun('globex-p', { priority: 5 })
      assert.equal(await view.updateRunIf('globex-r', ['running'], { priority: 6 }), true)
      assert.equal(await view.tryLockRun('globex-s', 'me', T0 + 9, T0), true)
      await view.saveCheckpoint(makeRow('globex-p', 0))
      await view.putSignalWaiter(makeWaiter('t', 'globex-p', 0))
      matches(await store.getRun('new'), { namespace: 'globex' })
      matches(await store.getRun('globex-p'), { priority: 5 })
      matches(await store.getRun('globex-r'), { priority: 6 })
      matches(await store.getRun('globex-s'), { lockedBy: 'me' })
      assert.equal(sizeOf(await store.listCheckpoints('globex-p')), 1)
      await view.deleteRun('globex-p')
      assert.equal(await store.getRun('globex-p'), null)
      assert.deepEqual(await store.listSignalWaiters(''), [])
    },
  },
  {
    name: 'admission through a view counts every namespace',
    requires: ['withScope', 'tryAdmitSingleton'],
    async run(store) {
      const fields = { status: 'running', turns: 1, tags: ['singleton:k'] } as const
      await createRuns(
        store,
        makeRun('theirs', { ...fields, tags: [...fields.tags], namespace: 'globex' }),
        makeRun('mine', { ...fields, tags: [...fields.tags], namespace: 'acme', createdAt: at(5) })
      )
      const claim = {
        runId: 'mine',
        workflow: 'orders',
        tag: 'singleton:k',
        limit: 1,
        retryAt: T0 + 1,
        nowMs: T0,
      }
      const view = store.withScope({ namespace: 'acme' }) as StoreUnderTest
      assert.deepEqual(await view.tryAdmitSingleton(claim), {
        admitted: false,
        status: 'suspended',
      })
    },
  },
]

const schedule = (id: string, fields: Partial<ScheduleRecord> = {}): ScheduleRecord => ({
  id,
  workflow: 'orders',
  spec: { cron: '0 * * * *', input: { list: [1, null] } },
  paused: false,
  createdAt: at(1),
  updatedAt: at(2),
  ...fields,
})

const SCHEDULES: StoreCase[] = [
  {
    name: 'schedules are created once, read, listed by id, updated and deleted',
    requires: [
      'createSchedule',
      'updateSchedule',
      'getSchedule',
      'listSchedules',
      'deleteSchedule',
    ],
    kit: true,
    async run(store) {
      assert.equal(await store.getSchedule('a'), null)
      for (const id of ['b', 'a', 'C']) {
        assert.equal(await store.createSchedule(schedule(id)), true)
      }
      assert.equal(await store.createSchedule(schedule('a', { workflow: 'other' })), false)
      same(await store.getSchedule('a'), schedule('a'))
      assert.deepEqual(ids(await store.listSchedules()), ['C', 'a', 'b'])
      const changes = { paused: true, lastFiredAt: T0 + 5, updatedAt: at(9) }
      assert.equal(await store.updateSchedule('a', changes), true)
      same(await store.getSchedule('a'), schedule('a', changes))
      assert.equal(await store.updateSchedule('nobody', { paused: true }), false)
      assert.deepEqual(ids(await store.listSchedules({ paused: true })), ['a'])
      assert.deepEqual(ids(await store.listSchedules({ paused: false })), ['C', 'b'])
      assert.equal(await store.deleteSchedule('a'), true)
      assert.equal(await store.deleteSchedule('a'), false)
      assert.equal(await store.getSchedule('a'), null)
    },
  },
  {
    name: 'spec, pause, namespace and last fire of a schedule round-trip and clear',
    requires: [
      'createSchedule',
      'updateSchedule',
      'getSchedule',
      'listSchedules',
      'deleteSchedule',
    ],
    kit: true,
    async run(store) {
      const full = schedule('a', { namespace: 'acme', paused: true, lastFiredAt: T0 })
      await store.createSchedule(full)
      same(await store.getSchedule('a'), full)
      await store.updateSchedule('a', { lastFiredAt: undefined, spec: { everyMs: 5 } })
      same(await store.getSchedule('a'), {
        ...full,
        lastFiredAt: undefined,
        spec: { everyMs: 5 },
      })
    },
  },
  {
    name: 'of concurrent creates of a schedule one is true',
    requires: [
      'createSchedule',
      'updateSchedule',
      'getSchedule',
      'listSchedules',
      'deleteSchedule',
    ],
    kit: true,
    async run(store) {
      const answers = await Promise.all(
        ['x', 'y', 'z'].map((workflow) => store.createSchedule(schedule('a', { workflow })))
      )
      assert.equal(answers.filter(Boolean).length, 1)
    },
  },
]

const TRANSACTIONS: StoreCase[] = [
  {
    name: 'a transaction answers its value with the checkpoint committed',
    requires: ['transaction'],
    needs: 'asyncTransaction',
    async run(store) {
      const value = await store.transaction(async (tx) => {
        assert.ok(tx.raw)
        await tx.saveCheckpoint(makeRow('r', 0, { output: 'in' }))
        return 'done'
      })
      assert.equal(value, 'done')
      matches(await store.getCheckpoint('r', 0), { output: 'in' })
    },
  },
  {
    name: 'work that throws leaves no checkpoint, and its error comes out',
    requires: ['transaction'],
    needs: 'asyncTransaction',
    async run(store) {
      const error = new Error('no')
      const work = store.transaction(async (tx) => {
        await tx.saveCheckpoint(makeRow('r', 0))
        throw error
      })
      await assert.rejects(work, (thrown) => thrown === error)
      assert.deepEqual(await store.listCheckpoints('r'), [])
    },
  },
  {
    name: 'a fenced checkpoint commits only under the lease and turn of a live run',
    requires: ['transaction', 'commitTurn'],
    needs: 'asyncTransaction',
    async run(store) {
      await createHeldRun(store, 'r', { turns: 2 })
      await createHeldRun(store, 'ended', { turns: 2, status: 'cancelled' })
      const save = (runId: string, owner: string, turn: number) =>
        store.transaction((tx) => tx.saveCheckpoint(makeRow(runId, 0), { owner, turn }))
      await assert.rejects(save('r', 'other', 2), { code: 'lease_lost' })
      await assert.rejects(save('r', 'me', 1), { code: 'lease_lost' })
      await assert.rejects(save('ended', 'me', 2), { code: 'lease_lost' })
      await assert.rejects(save('nobody', 'me', 2), { code: 'lease_lost' })
      for (const id of ['r', 'ended', 'nobody']) {
        assert.deepEqual(await store.listCheckpoints(id), [])
      }
      await save('r', 'me', 2)
      matches(await store.getCheckpoint('r', 0), { status: 'completed' })
    },
  },
]

const OTHERS: StoreCase[] = [
  {
    name: 'a wake hint reaches every listener until it stops',
    requires: ['notifyWake', 'onWake'],
    async run(store) {
      const heard: WakeHint[] = []
      const stops: (() => Promise<void>)[] = []
      const hint = { namespace: 'acme', runIds: ['a', 'b'] }
      const both = new Promise<void>((resolve) => {
        const listener = (each: WakeHint) => {
          heard.push(each)
          if (heard.length === 2) resolve()
        }
        const subscribe = async () => {
          stops.push(await store.onWake(listener), await store.onWake(listener))
          await store.notifyWake(hint)
        }
        void subscribe()
      })
      await both
      assert.deepEqual(heard, [hint, hint])
      for (const stop of stops) await stop()
      await store.notifyWake(hint)
      assert.equal(heard.length, 2)
    },
  },
  {
    name: 'providing the schema again changes nothing',
    requires: ['ensureSchema'],
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.ensureSchema()
      await Promise.all([store.ensureSchema(), store.ensureSchema()])
      matches(await store.getRun('r'), { status: 'pending' })
    },
  },
]

export const VIEW_CASES: StoreCase[] = [...SCOPES, ...SCHEDULES, ...TRANSACTIONS, ...OTHERS]
