import { test } from '@japa/runner'
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import { RunQueries } from '../../../src/store/memory/run_queries.ts'
import { RunTable } from '../../../src/store/memory/run_table.ts'
import {
  at,
  createHeldRun,
  createRuns,
  makeRow,
  makeRun,
  range,
  T0,
} from '../../../src/testing/contracts/state_store/support.ts'

test.group('InMemoryStateStore | values', () => {
  test('nothing that a caller holds is shared with the store, however deep', async ({ assert }) => {
    const store = new InMemoryStateStore()
    const input = { list: [{ n: 1 }] }
    const searchAttributes = { region: 'eu' }
    await store.createRun(makeRun('r', { input, tags: ['t'], searchAttributes }))
    input.list[0].n = 2
    searchAttributes.region = 'us'
    const got = await store.getRun('r')
    ;(got!.input as typeof input).list.push({ n: 3 })
    got!.tags!.push('u')
    got!.createdAt.setTime(0)
    assert.deepInclude(await store.getRun('r'), {
      input: { list: [{ n: 1 }] },
      tags: ['t'],
      searchAttributes: { region: 'eu' },
      createdAt: at(0),
    })
  })

  test('payloads come back as JSON, as they would from a database', async ({ assert }) => {
    const store = new InMemoryStateStore()
    const output = { at: at(0), gone: undefined, list: [undefined], map: new Map([[1, 2]]) }
    await store.saveCheckpoint(makeRow('r', 0, { output }))
    const row = await store.getCheckpoint('r', 0)
    assert.deepEqual(row?.output, { at: at(0).toISOString(), list: [null], map: {} })
  })

  test('what cannot be JSON is refused where it is written, and nothing changes', async ({
    assert,
  }) => {
    const store = new InMemoryStateStore()
    const circular: Record<string, unknown> = {}
    circular.self = circular
    for (const value of [10n, circular]) {
      for (const write of [
        () => store.createRun(makeRun('r', { input: value })),
        () => store.saveCheckpoint(makeRow('r', 0, { output: value })),
        () => store.bufferSignal('t', value),
        () => store.bufferEvent({ id: 'e', name: 'n', payload: value, publishedAt: T0 }),
      ]) {
        const error = await write().catch((thrown: unknown) => thrown)
        assert.propertyVal(error, 'code', 'unstorable_value')
      }
    }
    assert.isNull(await store.getRun('r'))
    assert.deepEqual(await store.listCheckpoints('r'), [])
  })

  test('a column that nobody knows is not kept', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await store.createRun({ ...makeRun('r'), surprise: 1 } as never)
    await store.updateRun('r', { surprise: 2, id: 'other' } as never)
    const run = await store.getRun('r')
    assert.notProperty(run, 'surprise')
    assert.propertyVal(run, 'id', 'r')
  })

  test('a taken id is told by a code', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await store.createRun(makeRun('r'))
    const error = await store.createRun(makeRun('r')).catch((thrown: unknown) => thrown)
    assert.deepInclude(error, { code: 'duplicate_run', runId: 'r' })
  })

  test('an unknown run is updated in silence', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await store.updateRun('nobody', { status: 'failed' })
    assert.isNull(await store.getRun('nobody'))
  })
})

test.group('InMemoryStateStore | indexes', () => {
  test('an attribute query looks only at the runs that its first predicate names', async ({
    assert,
  }) => {
    const store = new InMemoryStateStore()
    for (const n of range(1, 50)) {
      await store.createRun(makeRun(`r${n}`, { searchAttributes: n > 47 ? { rare: n } : { n } }))
    }
    const attributes = [{ key: 'rare', op: 'gt', value: 48 } as const]
    const found = await store.listRuns({ attributes, size: 1 })
    assert.equal(found.length, 1)
    assert.equal(store.lastAttributeCandidates, 2)
    assert.deepEqual(await store.listRuns({ attributes: [{ key: 'x', op: 'ne', value: 1 }] }), [])
    assert.equal(store.lastAttributeCandidates, 0)
  })

  test('a timeline read looks only at its own rows', async ({ assert }) => {
    const store = new InMemoryStateStore()
    for (const seq of range(0, 29)) await store.saveCheckpoint(makeRow('other', seq))
    for (const seq of range(0, 9)) await store.saveCheckpoint(makeRow('r', seq))
    await store.listCheckpoints('r')
    assert.equal(store.lastCheckpointRowsRead, 10)
    await store.listCheckpointsAt('r', [2, 5], 8)
    assert.equal(store.lastCheckpointRowsRead, 4)
    await store.hasCheckpoints('r', { fromSeq: 7, toSeq: 8, statuses: ['pending'] })
    assert.equal(store.lastCheckpointRowsRead, 2)
    await store.getCheckpoints([{ runId: 'r', seq: 1 }])
    assert.equal(store.lastCheckpointRowsRead, 1)
    await store.listCheckpoints('nobody')
    assert.equal(store.lastCheckpointRowsRead, 0)
  })

  test('a due poll looks at what is due, however many runs sleep', ({ assert }) => {
    let looked = 0
    class CountingTable extends RunTable {
      override get(id: string) {
        looked += 1
        return super.get(id)
      }
    }
    const runs = new CountingTable()
    const queries = new RunQueries(runs)
    for (const n of range(1, 20_000)) {
      runs.insert(makeRun(`s${n}`, { status: 'suspended', wakeAt: T0 + n }))
    }
    const any = () => true
    assert.equal(queries.due(T0 + 3, 500, any).length, 3)
    assert.equal(looked, 3)
    looked = 0
    assert.equal(queries.due(T0 + 10_000, 7, any, { blocked: true }).length, 7)
    assert.equal(looked, 7)
    looked = 0
    assert.deepEqual(queries.pending(5, any), [])
    assert.deepEqual(queries.running(any), [])
    assert.equal(queries.list({ status: 'failed' }).length, 0)
    assert.equal(looked, 0)
    assert.equal(queries.list({ size: 3 }).length, 3)
    assert.equal(looked, 3)
  })
})

test.group('InMemoryStateStore | transactions, hints, views', () => {
  test('a lease that is lost while user code runs leaves no checkpoint', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await createHeldRun(store, 'r', { lockedUntil: T0 })
    const work = store.transaction(async (tx) => {
      await tx.saveCheckpoint(makeRow('r', 0), { owner: 'me', turn: 1 })
      await store.tryLockRun('r', 'other', T0 + 99, T0)
    })
    const error = await work.catch((thrown: unknown) => thrown)
    assert.deepInclude(error, { code: 'lease_lost', runId: 'r' })
    assert.deepEqual(await store.listCheckpoints('r'), [])
  })

  test('the native handle of a transaction is the store', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await store.transaction(async ({ raw }) => assert.strictEqual(raw, store))
  })

  test('a listener that throws disturbs neither the notifier nor the others', async ({
    assert,
  }) => {
    const store = new InMemoryStateStore()
    const heard: string[] = []
    await store.onWake(() => {
      throw new Error('no')
    })
    await store.onWake(({ runIds }) => void heard.push(...runIds))
    await store.notifyWake({ namespace: 'default', runIds: ['r'] })
    await store.close()
    await store.notifyWake({ namespace: 'default', runIds: ['s'] })
    assert.deepEqual(heard, ['r'])
  })

  test('a view shares everything with its store', async ({ assert }) => {
    const store = new InMemoryStateStore()
    await createRuns(store, makeRun('a', { namespace: 'acme' }), makeRun('b'))
    const view = store.withScope({ namespace: 'acme' })
    await view.onWake(() => {})
    await view.bufferSignal('t', 1)
    assert.deepEqual(await store.takeBufferedSignal('t'), { payload: 1 })
    const claim = { owner: 'me', leaseUntilMs: T0 + 9, nowMs: T0, limit: 9 }
    const claimed = await view.claimDueRuns({ kind: 'pending', ...claim })
    assert.lengthOf(claimed, 2)
  })
})
