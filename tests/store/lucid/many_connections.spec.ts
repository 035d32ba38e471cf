/*
 * Races between several connections, as between processes: what only one may win, and what must hold
 * whoever comes first.
 */
import { setImmediate } from 'node:timers/promises'
import type { Database } from '@adonisjs/lucid/database'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase, type Dialect, reachableDialects } from '../../helpers/databases.ts'
import { at, heldRun, makeRow, makeRun, makeWait, ms } from './support.ts'

const CONNECTIONS = 4

/** Defaults that a connection may have. */
const isolations: Record<Dialect, string[]> = {
  sqlite: ['SERIALIZABLE'],
  postgres: ['READ COMMITTED', 'REPEATABLE READ'],
  mysql: ['READ COMMITTED', 'REPEATABLE READ'],
}

/** Stores over one database, each with a pool of its own. */
async function storesOf(
  dialect: Dialect,
  cleanup: (fn: () => Promise<void>) => void,
  isolation = 'READ COMMITTED'
) {
  const database = await createDatabase(dialect)
  cleanup(database.cleanup)
  const databases = Array.from({ length: CONNECTIONS }, () => database.connect())
  const stores = databases.map((db) => new LucidStateStore(db))
  await stores[0].ensureSchema()
  // One thread: to wait inside SQLite would keep away whoever has the lock.
  if (dialect === 'sqlite') for (const db of databases) await waitOutside(db)
  else {
    const scope = dialect === 'mysql' ? 'SESSION' : 'SESSION CHARACTERISTICS AS'
    const isolate = `SET ${scope} TRANSACTION ISOLATION LEVEL ${isolation}`
    await Promise.all(databases.map((db) => db.rawQuery(isolate)))
  }
  return stores
}

const waitOutside = (db: Database) => db.rawQuery('PRAGMA busy_timeout = 0')

for (const dialect of await reachableDialects()) {
  test.group(`Lucid over several connections | ${dialect}`, (group) => {
    group.each.timeout(60_000)

    test('of many creates of one schedule one is true, and its record stands', async ({
      assert,
      cleanup,
    }) => {
      const stores = await storesOf(dialect, cleanup)
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.all(
          stores.map((store, index) =>
            store.createSchedule({
              id: `s${round}`,
              workflow: `w${index}`,
              spec: { index },
              paused: false,
              createdAt: at(0),
              updatedAt: at(0),
            })
          )
        )
        const winner = answers.indexOf(true)
        assert.equal(answers.lastIndexOf(true), winner)
        const stored = await stores[0].getSchedule(`s${round}`)
        assert.deepEqual([stored?.workflow, stored?.spec], [`w${winner}`, { index: winner }])
      }
      assert.lengthOf(await stores[1].listSchedules(), 10)
    })

    test('a fan and the results of its positions at once: a result stands, without a waiter', async ({
      assert,
      cleanup,
    }) => {
      const stores = await storesOf(dialect, cleanup)
      for (let round = 0; round < 10; round++) {
        const runId = `r${round}`
        await stores[0].createRun(heldRun(runId))
        const positions = Array.from({ length: 20 }, (_, seq) => seq)
        for (const seq of positions) {
          await stores[0].saveCheckpoint(makeRow(runId, seq, { status: 'pending' }))
        }
        const waits = positions.map((seq) => {
          const { waiter, row } = makeWait(runId, seq, `child:${runId}.${seq}`)
          return { waiter, checkpoint: { ...row, status: 'running' as const } }
        })
        const settlements = [...positions].reverse().map((seq) => ({
          runId,
          seq,
          status: 'completed' as const,
          finishedAt: at(9),
        }))
        const [settled] = await Promise.all([
          stores[1].settleCheckpointsIfPending(settlements),
          stores[2].registerChildWaits(waits),
          stores[3].registerChildWaits([...waits].reverse()),
        ])
        const rows = await stores[0].listCheckpoints(runId)
        const waiting = await stores[0].listSignalWaitersByRunIds([runId])
        const open = rows.filter((row) => row.status === 'running').map((row) => row.seq)
        assert.lengthOf(rows, 20)
        assert.equal(open.length + settled.filter(Boolean).length, 20)
        assert.sameMembers(
          waiting.map((waiter) => waiter.seq),
          open
        )
      }
    })

    test('views side by side see the runs of their own namespace, while all of them write', async ({
      assert,
      cleanup,
    }) => {
      const stores = await storesOf(dialect, cleanup)
      const seen = await Promise.all(
        stores.map(async (store, index) => {
          const namespace = `n${index % 2}`
          const view = store.withScope({ namespace })
          const foreign: unknown[] = []
          for (let n = 0; n < 5; n++) {
            await view.createRun(makeRun(`r${index}.${n}`, { namespace: `n${n % 2}` }))
            const lists = [await view.listRuns({}), await view.listPendingRuns(99)]
            const runs = [...lists.flat(), ...(await view.getRuns([`r0.${n}`, `r1.${n}`]))]
            foreign.push(...runs.filter((run) => run.namespace !== namespace))
          }
          return foreign
        })
      )
      assert.deepEqual(seen.flat(), [])
      assert.equal(await stores[0].withScope({ namespace: 'n0' }).countRuns({}), 12)
      assert.equal(await stores[1].withScope({ namespace: 'n1' }).countRuns({}), 8)
    })

    for (const isolation of isolations[dialect]) {
      test(`claims of one key never admit more than its limit (${isolation})`, async ({
        assert,
        cleanup,
      }) => {
        const stores = await storesOf(dialect, cleanup, isolation)
        const ids = Array.from({ length: 16 }, (_, place) => `r${place}`)
        for (const [place, id] of ids.entries()) await stores[0].createRun(contender(id, place))
        const holders = new Set<string>()
        const unfinished = new Set(ids)
        let most = 0
        const work = async (store: LucidStateStore, own: string[]) => {
          for (let turn = 0; own.length > 0; turn++) {
            assert.isBelow(turn, 2_000, 'nobody is admitted any more')
            const id = own[turn % own.length]
            const { admitted } = await store.tryAdmitSingleton(slot(id))
            // Elsewhere somebody must get on, and SQLite never leaves this thread.
            await setImmediate()
            if (!admitted) continue
            // First in, first out: a slot is free for everybody who is older.
            const older = [...unfinished].filter((other) => ids.indexOf(other) < ids.indexOf(id))
            assert.isBelow(older.length, LIMIT, id)
            holders.add(id)
            most = Math.max(most, holders.size)
            assert.deepEqual(await store.tryAdmitSingleton(slot(id)), { admitted: true })
            holders.delete(id)
            unfinished.delete(id)
            await store.updateRunIf(id, ['running', 'suspended'], { status: 'completed' })
            own.splice(own.indexOf(id), 1)
          }
        }
        await Promise.all(
          stores.map((store, index) =>
            work(
              store,
              ids.filter((_, place) => place % CONNECTIONS === index)
            )
          )
        )
        assert.isAtMost(most, LIMIT)
        const left = await stores[0].listRuns({ tag: 'durable:singleton:admitted' })
        assert.deepEqual(left, [])
      })
    }

    test('claims of many runs at once admit the oldest, as many as the limit', async ({
      assert,
      cleanup,
    }) => {
      const stores = await storesOf(dialect, cleanup)
      for (let round = 0; round < 8; round++) {
        const ids = stores.map((_, index) => `r${round}.${index}`)
        for (const [place, id] of ids.entries()) {
          await stores[0].createRun(contender(id, place, `key:${round}`))
        }
        const verdicts = await Promise.all(
          stores.map((store, index) =>
            store.tryAdmitSingleton({ ...slot(ids[index]), tag: `key:${round}` })
          )
        )
        const admitted = ids.filter((_, index) => verdicts[index].admitted)
        assert.deepEqual(admitted, ids.slice(0, LIMIT))
      }
    })

    test('a cancel and a claim at once: the run stays cancelled and holds nothing', async ({
      assert,
      cleanup,
    }) => {
      const stores = await storesOf(dialect, cleanup)
      for (let round = 0; round < 10; round++) {
        const tag = `key:${round}`
        const [first, second] = [`a${round}`, `b${round}`]
        await stores[0].createRun(contender(first, 0, tag))
        await stores[0].createRun(contender(second, 1, tag))
        const claim = (id: string) => ({ ...slot(id), tag, limit: 1 })
        const [, denied, cancelled] = await Promise.all([
          stores[1].tryAdmitSingleton(claim(first)),
          stores[2].tryAdmitSingleton(claim(second)),
          Promise.all(
            [first, second].map((id) =>
              stores[3].updateRunIf(id, ['running', 'suspended'], { status: 'cancelled' })
            )
          ),
        ])
        assert.deepEqual(cancelled, [true, true])
        for (const run of await stores[0].getRuns([first, second])) {
          assert.deepEqual([run.status, run.tags], ['cancelled', [tag]])
        }
        if (!denied.admitted) assert.match(String(denied.status), /^(suspended|cancelled)$/)
      }
    })
  })
}

const LIMIT = 2

const contender = (id: string, place: number, tag = 'singleton:k') =>
  makeRun(id, {
    status: 'running',
    turns: 1,
    createdAt: at(place),
    tags: [tag, 'durable:singleton:tracked'],
  })

const slot = (runId: string) => ({
  runId,
  workflow: 'orders',
  tag: 'singleton:k',
  limit: LIMIT,
  retryAt: ms(99),
  nowMs: ms(1),
})
