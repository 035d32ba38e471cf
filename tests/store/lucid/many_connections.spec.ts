/*
 * Races between several connections, as between processes: what only one may win, and what must hold
 * whoever comes first.
 */
import type { Database } from '@adonisjs/lucid/database'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../../helpers/databases.ts'
import { at, heldRun, type LucidDialect, lucidDialects, makeRow, makeWait } from './support.ts'

const CONNECTIONS = 4

/** Stores over one database, each with a pool of its own. */
async function storesOf(dialect: LucidDialect, cleanup: (fn: () => Promise<void>) => void) {
  const database = await createDatabase(dialect)
  cleanup(database.cleanup)
  const databases = Array.from({ length: CONNECTIONS }, () => database.connect())
  const stores = databases.map((db) => new LucidStateStore(db))
  await stores[0].ensureSchema()
  // One thread: to wait inside SQLite would keep away whoever has the lock.
  if (dialect === 'sqlite') for (const db of databases) await waitOutside(db)
  return stores
}

const waitOutside = (db: Database) => db.rawQuery('PRAGMA busy_timeout = 0')

for (const dialect of await lucidDialects()) {
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
  })
}
