/*
 * Singleton slots on Postgres, where a claim could read before another one wrote.
 */
import { test } from '@japa/runner'
import { DURABLE_TABLES as T } from '../../../src/store/lucid/schema/tables.ts'
import type { SingletonVerdict } from '../../../src/store/ports/singleton_claims.ts'
import { backend } from '../../helpers/backends.ts'
import { at, makeRun, ms } from '../../store/lucid/support.ts'
import { setUp, waitingFor } from './held_locks.ts'

const present = (await backend('postgres')) !== null

const contender = (id: string, place: number) =>
  makeRun(id, {
    status: 'running',
    turns: 1,
    createdAt: at(place),
    tags: ['singleton:k', 'durable:singleton:tracked'],
  })

const slot = (runId: string) => ({
  runId,
  workflow: 'orders',
  tag: 'singleton:k',
  limit: 1,
  retryAt: ms(99),
  nowMs: ms(1),
})

test.group('Lucid slots | Postgres', (group) => {
  group.each.timeout(30_000)
  group.each.skip(!present, 'no Postgres')

  for (const isolation of ['READ COMMITTED', 'REPEATABLE READ']) {
    test(`an older run that comes while a younger one is admitted waits for its slot (${isolation})`, async ({
      assert,
      cleanup,
    }) => {
      const { store, stores, databases, outside } = await setUp(cleanup)
      for (const db of databases) {
        await db.rawQuery(`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL ${isolation}`)
      }
      await store.createRun(contender('young', 5))
      const claims: Promise<SingletonVerdict>[] = []
      await outside.transaction(async (trx) => {
        await trx.rawQuery(`SELECT id FROM ${T.runs} WHERE id = 'young' FOR UPDATE`)
        claims.push(stores[0].tryAdmitSingleton(slot('young')))
        await waitingFor(outside, trx, 1)
        await store.createRun(contender('older', 1))
        claims.push(stores[1].tryAdmitSingleton(slot('older')))
        await waitingFor(outside, trx, 2)
      })
      assert.deepEqual(await Promise.all(claims), [
        { admitted: true },
        { admitted: false, status: 'suspended' },
      ])
    })
  }

  test('a claim of another key does not wait', async ({ assert, cleanup }) => {
    const { store, stores, outside } = await setUp(cleanup)
    await store.createRun(contender('r', 1))
    await store.createRun({ ...contender('other', 1), tags: ['singleton:other'] })
    let held: Promise<SingletonVerdict> | undefined
    await outside.transaction(async (trx) => {
      await trx.rawQuery(`SELECT id FROM ${T.runs} WHERE id = 'r' FOR UPDATE`)
      held = stores[0].tryAdmitSingleton(slot('r'))
      await waitingFor(outside, trx, 1)
      const other = { ...slot('other'), tag: 'singleton:other' }
      assert.deepEqual(await stores[1].tryAdmitSingleton(other), { admitted: true })
    })
    assert.deepEqual(await held, { admitted: true })
  })
})
