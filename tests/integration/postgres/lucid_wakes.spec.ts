/*
 * Wake hints between processes: whom they reach, and what becomes of the connection they come over.
 */
import type { Database } from '@adonisjs/lucid/database'
import { test } from '@japa/runner'
import { fullStore } from '../../../src/store/full_store.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { WakeHint } from '../../../src/store/ports/wake_hints.ts'
import { backend } from '../../helpers/backends.ts'
import { CONNECTION, createDatabase, openDatabase } from '../../helpers/databases.ts'
import { until as eventually } from '../../helpers/until.ts'

const present = (await backend('postgres')) !== null

/** Two stores as of two processes, and a Database to look on. */
async function setUp(cleanup: (fn: () => Promise<void>) => void) {
  const database = await createDatabase('postgres')
  const [listening, telling] = [database.connect(), database.connect()]
  const [store, other] = [new LucidStateStore(listening), new LucidStateStore(telling)]
  cleanup(async () => {
    await store.close()
    await database.cleanup()
  })
  const heard: WakeHint[] = []
  const listen = () => store.onWake!((hint) => void heard.push(hint))
  return { ...database, listening, store, other, heard, listen }
}

const until = (holds: () => Promise<boolean> | boolean): Promise<boolean> =>
  eventually(holds, () => holds.toString())

/** Server processes that listen for the hints of this schema. */
async function listeners(db: Database): Promise<number[]> {
  const { rows } = await db.rawQuery(
    `SELECT pid FROM pg_stat_activity
     WHERE query = 'LISTEN "durable_wake_' || md5(current_schema()) || '"'`
  )
  return rows.map((row: { pid: number }) => row.pid)
}

async function nobodyListens(db: Database): Promise<boolean> {
  const pids = await listeners(db)
  return pids.length === 0
}

const hint = (...runIds: string[]): WakeHint => ({ namespace: 'acme', runIds })

test.group('Lucid wakes | Postgres', (group) => {
  group.each.timeout(30_000)
  group.each.skip(!present, 'no Postgres')

  test('a hint of another process is heard over a connection outside the pool', async ({
    assert,
    cleanup,
  }) => {
    const { db, listening, other, heard, listen } = await setUp(cleanup)
    await listen()
    assert.lengthOf(await listeners(db), 1)
    const pool = listening.getRawConnection(CONNECTION)!.connection!.pool!
    assert.equal(pool.numUsed() + pool.numFree(), 0)
    await other.notifyWake!(hint('a', 'ü\u0000"'))
    await until(() => heard.length > 0)
    assert.deepEqual(heard, [hint('a', 'ü\u0000"')])
  })

  test('a hint of many runs comes in pieces, each run once', async ({ assert, cleanup }) => {
    const { other, heard, listen } = await setUp(cleanup)
    await listen()
    const ids = Array.from({ length: 300 }, (_, n) => `${n}`.padStart(250, 'x'))
    await other.notifyWake!(hint(...ids))
    await until(() => heard.flatMap(({ runIds }) => runIds).length >= ids.length)
    assert.deepEqual(
      heard.flatMap(({ runIds }) => runIds),
      ids
    )
    assert.isTrue(heard.every(({ namespace }) => namespace === 'acme'))
  })

  test('a lost connection is opened again', async ({ assert, cleanup }) => {
    const { db, other, heard, listen } = await setUp(cleanup)
    await listen()
    for (let round = 0; round < 2; round++) {
      const [pid] = await listeners(db)
      await db.rawQuery('SELECT pg_terminate_backend(?)', [pid])
      await until(async () => {
        const now = await listeners(db)
        return now.length === 1 && now[0] !== pid
      })
      const before = heard.length
      await until(async () => {
        await other.notifyWake!(hint(`${round}`))
        return heard.length > before
      })
      assert.deepEqual(heard.at(-1), hint(`${round}`))
    }
  })

  test('the connection ends with the last listener, and with the store', async ({
    assert,
    cleanup,
  }) => {
    const { db, store, other, heard, listen } = await setUp(cleanup)
    const stops = [await listen(), await listen(), await store.withScope({}).onWake!(() => {})]
    assert.lengthOf(await listeners(db), 1)
    for (const stop of stops) {
      assert.lengthOf(await listeners(db), 1)
      await stop()
      await stop()
    }
    await until(() => nobodyListens(db))
    await listen()
    await store.close()
    await until(() => nobodyListens(db))
    await other.notifyWake!(hint('late'))
    assert.deepEqual(heard, [])
    await listen()
    await other.notifyWake!(hint('again'))
    await until(() => heard.length > 0)
    assert.deepEqual(heard, [hint('again')])
  })

  test('a store that is closed while it connects leaves nothing behind', async ({
    assert,
    cleanup,
  }) => {
    const { db, store, listen } = await setUp(cleanup)
    const listening = listen()
    await store.close()
    const stop = await listening
    await stop()
    await until(() => nobodyListens(db))
    assert.lengthOf(await listeners(db), 0)
  })

  test('a listener that throws and a text that is no hint disturb nobody', async ({
    assert,
    cleanup,
  }) => {
    const { db, store, other, heard, listen } = await setUp(cleanup)
    await store.onWake!(() => {
      throw new Error('no')
    })
    await listen()
    for (const text of ['', 'x', 'null', '[]', '{"namespace":"acme"}']) {
      await db.rawQuery(`SELECT pg_notify('durable_wake_' || md5(current_schema()), ?)`, [text])
    }
    await other.notifyWake!(hint('a'))
    await until(() => heard.length > 0)
    assert.deepEqual(heard, [hint('a')])
  })

  test('the hints of another schema are not heard', async ({ assert, cleanup }) => {
    const { other, heard, listen } = await setUp(cleanup)
    const elsewhere = await setUp(cleanup)
    await listen()
    await elsewhere.other.notifyWake!(hint('theirs'))
    await other.notifyWake!(hint('ours'))
    await until(() => heard.length > 0)
    assert.deepEqual(heard, [hint('ours')])
  })

  test('a server that cannot be reached keeps nobody from listening later', async ({
    assert,
    cleanup,
  }) => {
    const db = openDatabase({ dialect: 'postgres', target: 'postgres://nobody@127.0.0.1:1/none' })
    cleanup(() => db.manager.closeAll())
    const store = new LucidStateStore(db)
    const stop = await store.onWake!(() => {})
    await stop()
    await store.close()
    await assert.rejects(() => store.notifyWake!(hint('a')), /the store could not be reached/)
  })
})

test('SQLite tells nobody', async ({ assert, cleanup }) => {
  const { db, cleanup: drop } = await createDatabase('sqlite')
  cleanup(drop)
  const store = new LucidStateStore(db)
  assert.isUndefined(store.notifyWake)
  assert.isUndefined(store.onWake)
  assert.isFalse(fullStore(store).capabilities.wakeHints)
  await store.close()
})
