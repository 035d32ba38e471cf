/*
 * Several real connections, and the order of what they do: a transaction of the test holds a lock until
 * the database says that the calls under test are waiting for it.
 */
import { setImmediate } from 'node:timers/promises'
import type { Database } from '@adonisjs/lucid/database'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../../helpers/databases.ts'

/** A store, and four more with pools of their own. */
export async function setUp(cleanup: (fn: () => Promise<void>) => void) {
  const database = await createDatabase('postgres')
  cleanup(database.cleanup)
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  const databases = Array.from({ length: 4 }, () => database.connect())
  const stores = databases.map((db) => new LucidStateStore(db))
  return { ...database, store, stores, databases, outside: database.connect() }
}

type SetUp = Awaited<ReturnType<typeof setUp>>

/**
 * Runs `hold` in a transaction, starts the calls, commits once all of them wait for it, and answers what
 * they came to.
 */
export async function whileHeld<T>(
  { outside }: Pick<SetUp, 'outside'>,
  hold: (trx: TransactionClientContract) => Promise<unknown>,
  calls: (() => Promise<T>)[]
): Promise<T[]> {
  const running: Promise<T>[] = []
  await outside.transaction(async (trx) => {
    await hold(trx)
    running.push(...calls.map((call) => call()))
    await waitingFor(outside, trx, running.length)
  })
  return Promise.all(running)
}

/** Resolves when `count` sessions wait, directly or behind each other, for the transaction. */
export async function waitingFor(
  outside: Database,
  trx: TransactionClientContract,
  count: number
): Promise<void> {
  const { rows: self } = await trx.rawQuery('SELECT pg_backend_pid() AS pid')
  for (let look = 0; look < 2000; look++) {
    // Not inside the transaction: there the list of sessions never changes.
    const { rows } = await outside.rawQuery(
      `WITH RECURSIVE waiting(pid) AS (
         SELECT ?::int
         UNION SELECT a.pid FROM pg_stat_activity a JOIN waiting w ON w.pid = ANY(pg_blocking_pids(a.pid))
       ) SELECT count(*)::int - 1 AS sessions FROM waiting`,
      [self[0].pid]
    )
    if (rows[0].sessions >= count) return
    await setImmediate()
  }
  throw new Error(`fewer than ${count} sessions came to wait`)
}
