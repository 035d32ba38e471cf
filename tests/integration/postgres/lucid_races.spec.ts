/*
 * Races on Postgres with several real connections. See `held_locks.ts` for how the order is
 * decided where it matters.
 */
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { test } from '@japa/runner'
import type { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { DURABLE_TABLES as T } from '../../../src/store/lucid/schema/tables.ts'
import { LeaseLostError } from '../../../src/errors.ts'
import { backend } from '../../helpers/backends.ts'
import { countStatements } from '../../helpers/databases.ts'
import { asTurn, at, heldRun, makeRow, makeRun, makeWait, ms } from '../../store/lucid/support.ts'
import { setUp, waitingFor, whileHeld } from './held_locks.ts'

const present = (await backend('postgres')) !== null

const lockRun = (trx: TransactionClientContract) =>
  trx.rawQuery(`SELECT id FROM ${T.runs} WHERE id = 'r' FOR UPDATE`)

const expire = (store: LucidStateStore) => {
  const { waiter, row } = makeWait('r', 1, 't')
  const failed = { ...row, status: 'failed' as const, error: { message: 'late' } }
  return store.commitTurn({ ...asTurn('r'), expiries: [{ waiter, row: failed }] })
}

const deliver = (store: LucidStateStore, payload: unknown = 'news') =>
  store.deliverSignal({ token: 't', payload, nowMs: ms(20), buffer: true })

async function drain(store: LucidStateStore, token: string): Promise<unknown[]> {
  const payloads: unknown[] = []
  for (;;) {
    const taken = await store.takeBufferedSignal(token)
    if (!taken) return payloads
    payloads.push(taken.payload)
  }
}

test.group('Lucid races | Postgres', (group) => {
  group.each.timeout(60_000)
  group.each.skip(!present, 'no Postgres')

  test('a commit that waited for a takeover writes nothing', async ({ assert, cleanup }) => {
    const context = await setUp(cleanup)
    const { store } = context
    await store.createRun(heldRun('r'))
    const [verdict] = await whileHeld(
      context,
      (trx) =>
        trx.rawQuery(`UPDATE ${T.runs} SET locked_by = 'you', turns = 2, status = 'running'`),
      [() => store.commitTurn({ ...asTurn('r'), rows: [{ row: makeRow('r', 0) }] })]
    )
    assert.isFalse(verdict.applied)
    assert.equal(verdict.status, 'running')
    assert.deepEqual(await store.listCheckpoints('r'), [])
  })

  test('a takeover during a commit waits for it', async ({ assert, cleanup }) => {
    const context = await setUp(cleanup)
    const { store, stores } = context
    await store.createRun(heldRun('r', { lockedUntil: ms(5) }))
    await store.saveCheckpoint(makeRow('r', 0, { status: 'pending' }))
    const order: string[] = []
    await whileHeld(
      context,
      // The commit has the run by then and waits for its row.
      (trx) => trx.rawQuery(`SELECT seq FROM ${T.checkpoints} FOR UPDATE`),
      [
        async () => {
          const verdict = await store.commitTurn({
            ...asTurn('r'),
            rows: [{ row: makeRow('r', 0, { output: 'mine' }) }],
          })
          order.push(`committed: ${verdict.applied}`)
        },
        async () => {
          const taken = await stores[0].tryLockRun('r', 'you', ms(99_000), ms(50))
          order.push(`taken over: ${taken}`)
        },
      ]
    )
    assert.deepEqual(order, ['committed: true', 'taken over: true'])
    const row = await store.getCheckpoint('r', 0)
    assert.equal(row?.output, 'mine')
  })

  test('a cancel in between refuses the end of the turn, and only that', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store } = context
    await store.createRun(heldRun('r'))
    const cancel = (trx: TransactionClientContract) =>
      trx.rawQuery(`UPDATE ${T.runs} SET cancel_requested_at = 5`)
    const [ended] = await whileHeld(context, cancel, [
      () =>
        store.commitTurn({
          ...asTurn('r'),
          rows: [{ row: makeRow('r', 0) }],
          settle: { status: 'completed', patch: { output: 1 } },
        }),
    ])
    assert.isFalse(ended.applied)
    assert.isTrue(ended.cancelRequested)
    assert.isNull(await store.getCheckpoint('r', 0))
    const [wrote] = await whileHeld(context, cancel, [
      () => store.commitTurn({ ...asTurn('r'), rows: [{ row: makeRow('r', 0) }] }),
    ])
    assert.isTrue(wrote.applied)
    assert.isTrue(wrote.cancelRequested)
  })

  test('a renewal in between does not disturb a commit or the end of the turn', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store } = context
    await store.createRun(heldRun('r'))
    const renew = (trx: TransactionClientContract) =>
      trx.rawQuery(`UPDATE ${T.runs} SET locked_until = locked_until + 1`)
    const [wrote] = await whileHeld(context, renew, [
      () =>
        store.commitTurn({
          ...asTurn('r'),
          rows: [{ row: makeRow('r', 0) }],
          waits: [makeWait('r', 1, 't')],
        }),
    ])
    assert.isTrue(wrote.applied)
    assert.isTrue(await store.hasSignalWaiter('t'))
    const [ended] = await whileHeld(context, renew, [
      () =>
        store.commitTurn({
          ...asTurn('r'),
          rows: [{ row: makeRow('r', 2) }],
          settle: { status: 'suspended', patch: { wakeAt: ms(99) } },
        }),
    ])
    assert.isTrue(ended.applied)
    const run = await store.getRun('r')
    assert.deepEqual([run?.status, run?.wakeAt, run?.lockedBy], ['suspended', ms(99), undefined])
    assert.lengthOf(await store.listCheckpoints('r'), 2)
  })

  test('of many claimers of one run one wins', async ({ assert, cleanup }) => {
    const context = await setUp(cleanup)
    const { store, stores } = context
    await store.createRun(makeRun('r', { status: 'suspended', turns: 3 }))
    const claims = await whileHeld(
      context,
      lockRun,
      stores.map(
        (each, index) => () =>
          each.claimRun({
            runId: 'r',
            owner: `o${index}`,
            leaseUntilMs: ms(99),
            nowMs: ms(1),
            from: ['pending', 'suspended'],
          })
      )
    )
    const won = claims.filter((claim) => claim !== null)
    assert.lengthOf(won, 1)
    assert.deepEqual(
      [won[0].previousStatus, won[0].previousTurns, won[0].run.turns],
      ['suspended', 3, 4]
    )
  })

  test('claimers of a batch take each run once, and pass over what another holds', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store, stores, outside } = context
    for (let i = 0; i < 40; i++) {
      await store.createRun(makeRun(`p${i}`, { createdAt: at(i) }))
      await store.createRun(makeRun(`d${i}`, { status: 'suspended', wakeAt: ms(i) }))
    }
    const claim = (owner: string, kind: 'pending' | 'due') =>
      ({ kind, owner, leaseUntilMs: ms(99_000), nowMs: ms(500), limit: 10 }) as const
    for (const kind of ['pending', 'due'] as const) {
      const taken = await Promise.all(
        stores.map((each, index) => each.claimDueRuns(claim(`o${index}`, kind)))
      )
      const ids = taken.flat().map(({ run }) => run.id)
      assert.equal(new Set(ids).size, ids.length)
      assert.isTrue(taken.flat().every(({ run }) => run.status === 'running' && run.turns === 1))
    }
    await store.createRun(makeRun('held', { createdAt: at(-9) }))
    await store.createRun(makeRun('free', { createdAt: at(-8) }))
    await outside.transaction(async (trx) => {
      await trx.rawQuery(`SELECT id FROM ${T.runs} WHERE id = 'held' FOR UPDATE`)
      const [first] = await store.claimDueRuns({ ...claim('me', 'pending'), limit: 1 })
      assert.equal(first.run.id, 'free')
    })
  })

  test('a delivery and the expiry of one wait leave one outcome and no lost payload', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store, stores } = context
    const outcomes = new Set<string>()
    for (let round = 0; round < 12; round++) {
      await store.deleteRun('r')
      await store.createRun(heldRun('r'))
      await store.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] })
      const calls: (() => Promise<unknown>)[] = [() => expire(stores[0]), () => deliver(stores[1])]
      await whileHeld(context, lockRun, round % 2 ? calls : calls.reverse())
      const row = await store.getCheckpoint('r', 1)
      const buffered = await drain(store, 't')
      outcomes.add(row!.status)
      assert.deepEqual(
        [row?.status, row?.output, buffered],
        row?.status === 'completed' ? ['completed', 'news', []] : ['failed', undefined, ['news']]
      )
      assert.isFalse(await store.hasSignalWaiter('t'))
    }
    assert.isNotEmpty(outcomes)
  })

  test('a wait that meets a delivery takes no payload for a position that is settled', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store } = context
    await store.createRun(heldRun('r'))
    await store.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] })
    await store.bufferSignal('t', 'spare')
    const [verdict] = await whileHeld(
      context,
      async (trx) => {
        await trx.rawQuery(`UPDATE ${T.runs} SET wake_requested_at = 7`)
        await trx.rawQuery(`DELETE FROM ${T.signalWaiters}`)
        await trx.rawQuery(
          `INSERT INTO ${T.checkpoints} (run_id, seq, name, kind, step_id, status, output, attempts,
             started_at, finished_at) VALUES ('r', 1, 'signal:t', 'signal', 'r:1', 'completed',
             '"delivered"', 1, 1, 1)`
        )
      },
      [() => store.commitTurn({ ...asTurn('r'), waits: [makeWait('r', 1, 't')] })]
    )
    assert.isTrue(verdict.applied)
    assert.isTrue(verdict.wakeRequested)
    assert.deepEqual(
      verdict.stored.map(({ seq, output }) => [seq, output]),
      [[1, 'delivered']]
    )
    assert.isFalse(await store.hasSignalWaiter('t'))
    assert.deepEqual(await drain(store, 't'), ['spare'])
  })

  test('overlapping settle batches wait for each other in key order', async ({
    assert,
    cleanup,
  }) => {
    const context = await setUp(cleanup)
    const { store, stores, databases } = context
    const counters = databases.map((db) => countStatements(db))
    const keys = ['a', 'b', 'c'].flatMap((runId) =>
      Array.from({ length: 40 }, (_, seq) => ({ runId, seq }))
    )
    for (let round = 0; round < 5; round++) {
      for (const { runId, seq } of keys) {
        await store.saveCheckpoint(makeRow(runId, seq, { status: 'pending' }))
      }
      const settlements = keys.map((key) => ({
        ...key,
        status: 'completed' as const,
        finishedAt: at(9),
      }))
      const orders = [settlements, [...settlements].reverse(), [...settlements].sort(bySeq)]
      const verdicts = await Promise.all(
        orders.map((order, index) => stores[index].settleCheckpointsIfPending(order))
      )
      const won = new Map<string, number>()
      for (const [index, order] of orders.entries()) {
        order.forEach(({ runId, seq }, place) => {
          if (!verdicts[index][place]) return
          won.set(`${runId}:${seq}`, (won.get(`${runId}:${seq}`) ?? 0) + 1)
        })
      }
      assert.equal(won.size, keys.length)
      assert.isTrue([...won.values()].every((times) => times === 1))
    }
    // A deadlock would have been retried, with one more statement.
    for (const counter of counters) counter.stop()
    assert.deepEqual(
      counters.map(({ count }) => count),
      [5, 5, 5, 0]
    )
  })

  test('a fenced checkpoint of a transaction holds the run until the commit', async ({
    assert,
    cleanup,
  }) => {
    const { store, stores, outside } = await setUp(cleanup)
    await store.createRun(heldRun('r', { lockedUntil: ms(5) }))
    const fence = { owner: 'me', turn: 1 }
    let taking: Promise<boolean> | undefined
    await store.transaction(async (tx) => {
      await tx.saveCheckpoint(makeRow('r', 0), fence)
      taking = stores[0].tryLockRun('r', 'you', ms(99), ms(50))
      await waitingFor(outside, tx.raw as TransactionClientContract, 1)
    })
    assert.isTrue(await taking)
    const late = store.transaction(async (tx) => {
      await (tx.raw as TransactionClientContract).rawQuery(`UPDATE ${T.runs} SET priority = 9`)
      await tx.saveCheckpoint(makeRow('r', 1), fence)
    })
    await assert.rejects(() => late, LeaseLostError)
    const run = await store.getRun('r')
    assert.isUndefined(run?.priority)
    assert.isNull(await store.getCheckpoint('r', 1))
  })

  test('every payload is in exactly one place, whoever delivers, waits, expires and pairs', async ({
    assert,
    cleanup,
  }) => {
    const { store, stores } = await setUp(cleanup)
    for (let round = 0; round < 6; round++) {
      await store.deleteRun('r')
      await store.createRun(heldRun('r'))
      const sent = Array.from({ length: 12 }, (_, i) => `${round}.${i}`)
      const work = [
        ...sent.map((payload, i) => () => deliver(stores[i % 4], payload)),
        ...[1, 2, 3, 4, 5].map(
          (seq) => () => store.commitTurn({ ...asTurn('r'), waits: [makeWait('r', seq, 't')] })
        ),
        () => expire(stores[0]),
        ...stores.map((each) => () => each.pairSignal('t', ms(30))),
        ...stores.map((each) => () => each.pairSignal('t', ms(30))),
      ]
      await Promise.all(
        work.sort((a, b) => String(a).length - String(b).length).map((run) => run())
      )
      const rows = await store.listCheckpoints('r')
      const arrived = rows.filter((row) => row.status === 'completed').map((row) => row.output)
      assert.sameMembers([...arrived, ...(await drain(store, 't'))], sent)
    }
  })
})

const bySeq = (a: { seq: number }, b: { seq: number }) => a.seq - b.seq
