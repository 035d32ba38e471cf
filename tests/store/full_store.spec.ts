import { test } from '@japa/runner'
import { fullStore } from '../../src/store/full_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import {
  OPTIONAL_MEMBERS,
  REQUIRED_MEMBERS,
  SCHEDULE_MEMBERS,
  type OptionalMember,
} from '../../src/store/ports/members.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { RunQuery } from '../../src/types/query.ts'
import {
  at,
  createHeldRun,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  pendingRow,
  T0,
} from '../../src/testing/contracts/state_store/support.ts'
import { requiredOnly } from '../conformance/required_only.ts'

/** A memory store stripped to the required members, with some added or replaced, and completed. */
function withMembers(members: (store: InMemoryStateStore) => Partial<StateStore>) {
  const inner = new InMemoryStateStore()
  const base: StateStore = { ...requiredOnly(inner), ...members(inner) }
  return { inner, base, full: fullStore(base) }
}

const thrownBy = (work: Promise<unknown>) => work.catch((error: unknown) => error)

test.group('fullStore | what a store has', () => {
  test('every member of the port exists, whatever the store has', ({ assert }) => {
    const full = fullStore(requiredOnly(new InMemoryStateStore()))
    for (const name of [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS])
      assert.isFunction(full[name], name)
  })

  test('capabilities tell what is native', ({ assert }) => {
    const none = fullStore(requiredOnly(new InMemoryStateStore())).capabilities
    const all = fullStore(new InMemoryStateStore()).capabilities
    assert.deepEqual([...new Set(Object.values(none))], [false])
    assert.deepEqual([...new Set(Object.values(all))], [true])
    assert.deepEqual(Object.keys(all).sort(), Object.keys(none).sort())
  })

  test('native members run on their own store, replaced ones included', async ({ assert }) => {
    class Counting extends InMemoryStateStore {
      #calls = 0
      override async claimRun(claim: Parameters<InMemoryStateStore['claimRun']>[0]) {
        this.#calls += 1
        return super.claimRun(claim)
      }
      get calls() {
        return this.#calls
      }
    }
    const store = new Counting()
    const full = fullStore(store)
    const { claimRun } = full
    const claim = { runId: 'r', owner: 'me', leaseUntilMs: T0, nowMs: T0, from: [] }
    assert.isNull(await claimRun(claim))
    assert.equal(store.calls, 1)
    store.claimRun = async () => {
      throw new Error('replaced later')
    }
    assert.match(String(await thrownBy(full.claimRun(claim))), /replaced later/)
  })

  test('the base is the store as given, and completing twice changes nothing', ({ assert }) => {
    const store = new InMemoryStateStore()
    const full = fullStore(store)
    assert.strictEqual(full.base, store)
    assert.strictEqual(fullStore(full), full)
  })

  test('members that only make sense together are missing together', async ({ assert }) => {
    const { full } = withMembers((store) => ({
      createSchedule: (record) => store.createSchedule(record),
      getSchedule: (id) => store.getSchedule(id),
      checkpointStats: async () => {
        throw new Error('half a pair')
      },
      notifyWake: async () => {
        throw new Error('half a pair')
      },
    }))
    assert.isFalse(full.capabilities.schedules)
    assert.isFalse(full.capabilities.checkpointAggregates)
    assert.isFalse(full.capabilities.wakeHints)
    assert.deepEqual(await full.checkpointStats('r'), { total: 0, groups: [] })
    await full.notifyWake({ namespace: 'default', runIds: [] })
    const stop = await full.onWake(() => {})
    await stop()
  })

  test('a schedule call on a store without schedules names what is missing', async ({ assert }) => {
    const { full } = withMembers((store) => ({ getSchedule: (id) => store.getSchedule(id) }))
    for (const name of SCHEDULE_MEMBERS) {
      const call = full[name] as () => Promise<unknown>
      const error = await thrownBy(call())
      assert.propertyVal(error, 'code', 'store_capability')
      assert.match(
        String(error),
        /lacks createSchedule, updateSchedule, listSchedules, deleteSchedule/
      )
    }
  })

  test('a transaction on a store without transactions says what to do', async ({ assert }) => {
    const full = fullStore(requiredOnly(new InMemoryStateStore()))
    const error = await thrownBy(full.transaction(async () => 1))
    assert.propertyVal(error, 'code', 'store_capability')
    assert.match(String(error), /ctx\.localStep/)
  })

  test('what cannot be done is harmless', async ({ assert }) => {
    const full = fullStore(requiredOnly(new InMemoryStateStore()))
    await full.ensureSchema()
    await full.close()
    await full.saveCheckpoint(pendingRow('r', 0))
    await full.recordStepHeartbeat('r', 0, at(1))
    assert.isFalse(await full.compactCheckpoints('r', { fromSeq: 0, toSeq: 0 }, makeRow('r', 0)))
    assert.equal(await full.pruneBufferedEvents(T0), 0)
    assert.strictEqual(full.withScope({ namespace: 'acme' }), full)
  })
})

test.group('fullStore | a fallback uses the narrower member a store has', () => {
  test('settlements and batches go through the conditional save of the store', async ({
    assert,
  }) => {
    const calls: string[] = []
    const { full, inner } = withMembers((store) => ({
      saveCheckpointIfPending: (row) => {
        calls.push(`${row.seq}`)
        return store.saveCheckpointIfPending(row)
      },
    }))
    for (const seq of [0, 1, 2]) await full.saveCheckpoint(pendingRow('r', seq))
    await inner.recordStepHeartbeat('r', 0, at(5), 'half')
    const settlement = { runId: 'r', seq: 0, status: 'completed', finishedAt: at(9) } as const
    assert.deepEqual(await full.settleCheckpointsIfPending([settlement]), [true])
    assert.deepEqual(await full.saveCheckpointsIfPending([makeRow('r', 1)]), [true])
    await createHeldRun(inner, 'r')
    await full.commitTurn({
      runId: 'r',
      owner: 'me',
      turn: 1,
      nowMs: T0,
      rows: [{ row: pendingRow('r', 2, { attempts: 2 }) }],
    })
    assert.deepEqual(calls, ['0', '1', '2'])
    assert.deepInclude(await full.getCheckpoint('r', 0), {
      lastHeartbeatAt: at(5),
      heartbeatProgress: 'half',
      input: { seq: 0 },
    })
  })

  test('existence is a count where the store counts', async ({ assert }) => {
    const { full } = withMembers(() => ({ countCheckpoints: async () => 2 }))
    assert.isTrue(await full.hasCheckpoints('r', {}))
  })

  test('a batch of claims uses the claim of the store', async ({ assert }) => {
    const claimed: string[] = []
    const { full, inner } = withMembers((store) => ({
      claimRun: (claim) => {
        claimed.push(claim.runId)
        return store.claimRun(claim)
      },
    }))
    await createRuns(inner, makeRun('b'), makeRun('a', { createdAt: at(5) }))
    const claim = { owner: 'me', leaseUntilMs: T0 + 9, nowMs: T0, limit: 9 }
    await full.claimDueRuns({ kind: 'pending', ...claim })
    assert.deepEqual(claimed, ['b', 'a'])
    assert.isTrue(full.capabilities.claimRun)
  })
})

test.group('fullStore | filters that came later', () => {
  const ignoring = (
    store: InMemoryStateStore,
    extra: OptionalMember[] = []
  ): Partial<StateStore> => {
    const older = ({ before, idPrefix, updatedAfter, ...query }: RunQuery): RunQuery => query
    return {
      listRuns: (query) => store.listRuns(older(query)),
      ...(extra.includes('countRuns')
        ? { countRuns: (query) => store.countRuns(older(query)) }
        : {}),
    }
  }

  test('a store that ignores them is filtered here, then paged', async ({ assert }) => {
    const { full, inner } = withMembers((store) => ignoring(store, ['countRuns']))
    for (const n of [1, 2, 3, 4, 5]) {
      await inner.createRun(makeRun(`a${n}`, { createdAt: at(n >> 1), updatedAt: at(n) }))
    }
    await inner.createRun(makeRun('b', { createdAt: at(9), updatedAt: at(9) }))
    const list = async (query: RunQuery) => ids(await full.listRuns(query))
    assert.deepEqual(await list({ idPrefix: 'a', size: 2 }), ['a5', 'a4'])
    assert.deepEqual(await list({ idPrefix: 'a', size: 2, page: 2 }), ['a3', 'a2'])
    assert.deepEqual(await list({ idPrefix: '' }), [])
    assert.deepEqual(await list({ updatedAfter: T0 + 4 }), ['b', 'a5'])
    const before = { createdAt: T0 + 1, id: 'a3' }
    assert.deepEqual(await list({ before }), ['a2', 'a1'])
    assert.equal(await full.countRuns({ idPrefix: 'a', updatedAfter: T0 + 3 }), 2)
    assert.equal(await full.countRuns({}), 6)
    assert.deepEqual(await full.runFacets({ idPrefix: 'b' }), [
      { status: 'pending', origin: null, count: 1 },
    ])
  })
})

test.group('fullStore | views', () => {
  test('a scoped view of a store without claims still claims in every namespace', async ({
    assert,
  }) => {
    const { full, inner } = withMembers((store) => ({
      withScope: (scope) => requiredOnly(store.withScope(scope)),
    }))
    await createRuns(inner, makeRun('theirs', { namespace: 'globex', tags: ['singleton:k'] }))
    const view = full.withScope({ namespace: 'acme' })
    assert.isNull(await view.getRun('theirs'))
    assert.deepEqual(await view.listRuns({}), [])
    const claim = { runId: 'theirs', owner: 'me', leaseUntilMs: T0 + 9, nowMs: T0 }
    assert.isNotNull(await view.claimRun({ ...claim, from: ['pending'] }))
    const row = { row: pendingRow('theirs', 0) }
    const commit = { runId: 'theirs', owner: 'me', turn: 1, nowMs: T0, rows: [row] }
    assert.propertyVal(await view.commitTurn(commit), 'applied', true)
    assert.lengthOf(await view.settleTargets([{ runId: 'theirs', seq: 0 }]), 1)
    await view.putSignalWaiter(makeWaiter('t', 'theirs', 1))
    const delivery = { token: 't', payload: 1, nowMs: T0, buffer: true }
    assert.propertyVal(await view.deliverSignal(delivery), 'delivered', true)
    assert.equal(await view.deleteRuns(['theirs']), 1)
    assert.strictEqual(fullStore(view), view)
  })
})

test.group('fullStore | claims by lease, read and flip', () => {
  const claim = { runId: 'r', owner: 'me', leaseUntilMs: T0 + 99, nowMs: T0 }

  test('a claim that fails after the lease gives it back', async ({ assert }) => {
    const { full, inner } = withMembers(() => ({ updateRunIf: async () => false }))
    await inner.createRun(makeRun('r'))
    assert.isNull(await full.claimRun({ ...claim, from: ['pending'] }))
    assert.isNull(await full.claimRun({ ...claim, from: ['suspended'] }))
    assert.notProperty(await inner.getRun('r'), 'lockedBy')
  })

  test('a claim whose flip throws gives the lease back and rejects', async ({ assert }) => {
    const { full, inner } = withMembers(() => ({
      updateRunIf: async () => {
        throw new Error('down')
      },
    }))
    await inner.createRun(makeRun('r'))
    assert.match(String(await thrownBy(full.claimRun({ ...claim, from: ['pending'] }))), /down/)
    assert.notProperty(await inner.getRun('r'), 'lockedBy')
  })

  test('a run that changed between listing and claim is skipped', async ({ assert }) => {
    const { full, inner } = withMembers((store) => ({
      listPendingRuns: async (limit, namespace) => {
        const runs = await store.listPendingRuns(limit, namespace)
        await store.updateRun('a', { status: 'cancelled' })
        return runs
      },
    }))
    await createRuns(inner, makeRun('a'), makeRun('b'))
    const batch = {
      kind: 'pending',
      owner: 'me',
      leaseUntilMs: T0 + 9,
      nowMs: T0,
      limit: 2,
    } as const
    const claimed = await full.claimDueRuns(batch)
    assert.deepEqual(
      claimed.map(({ run }) => run.id),
      ['b']
    )
    assert.notProperty(await inner.getRun('a'), 'lockedBy')
  })
})
