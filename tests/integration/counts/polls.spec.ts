/*
 * What upkeep costs while nothing is due: a constant number of statements that look at no run, however many
 * are suspended. On Postgres the plans say what was looked at.
 */
import { test } from '@japa/runner'
import type { Database } from '@adonisjs/lucid/database'
import { runTick } from '../../../src/loop/main.ts'
import { DURABLE_TABLES as T } from '../../../src/store/lucid/schema/tables.ts'
import type { ClaimedRun } from '../../../src/store/ports/run_claims.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import { CONNECTION } from '../../helpers/databases.ts'
import { countedStores, useCounting } from './rig.ts'

const MINUTE = 60_000
const MANY = 100_000
const GATE = 4
const DAY = 24 * 60 * MINUTE

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Plans'?: Plan[]
}

interface Sent {
  sql: string
  bindings: unknown[]
}

/** Every statement that a connection sends from now on. */
function record(db: Database): { sent: Sent[]; stop(): void } {
  const client = db.getRawConnection(CONNECTION)!.connection!.client!
  const sent: Sent[] = []
  const note = ({ sql, bindings }: Sent) => void sent.push({ sql, bindings })
  client.on('query', note)
  return { sent, stop: () => void client.removeListener('query', note) }
}

/** How many run rows a statement looks at, found or thrown away. It is rolled back. */
async function runsLookedAt(db: Database, { sql, bindings }: Sent): Promise<number> {
  const trx = await db.transaction()
  try {
    const client = trx.knexClient
    const explained = await client.raw(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${sql.replace(/\$\d+/g, '?')}`,
      inOrder(sql, bindings) as never
    )
    return lookedAt(explained.rows[0]['QUERY PLAN'][0].Plan as Plan)
  } finally {
    await trx.rollback()
  }
}

/** Bindings as often as the statement names them. */
const inOrder = (sql: string, bindings: unknown[]): unknown[] =>
  [...sql.matchAll(/\$(\d+)/g)].map(([, place]) => bindings[Number(place) - 1])

function lookedAt(plan: Plan): number {
  const inside = (plan.Plans ?? []).reduce((sum, part) => sum + lookedAt(part), 0)
  if (plan['Relation Name'] !== T.runs) return inside
  const thrownAway =
    (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0)
  return inside + (plan['Actual Rows'] + thrownAway) * plan['Actual Loops']
}

/** A table of the numbers from 0, as a query of every dialect. `end` is a power of ten. */
function numbersBelow(end: number): string {
  const digits = Array.from({ length: 10 }, (_, d) => `SELECT ${d} AS d`).join(' UNION ALL ')
  const places = Array.from({ length: Math.round(Math.log10(end)) }, (_, place) => place)
  const sum = places.map((place) => `${10 ** place} * p${place}.d`).join(' + ')
  return `SELECT ${sum} AS n FROM ${places.map((place) => `(${digits}) p${place}`).join(', ')}`
}

/** As SQLite and MySQL tell it. */
const SCAN_OF_RUNS = new RegExp(`"SCAN ${T.runs}|"table":"${T.runs}","type":"ALL"`)

for (const kind of await countedStores()) {
  test.group(`Polls that find nothing | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)
    const database = () => rig.world.opened.database!.db

    /** Runs that wait: every second one for a signal, the others for a time that is far away. */
    async function suspend(from: number, to: number): Promise<void> {
      const { store, time } = rig.world.current
      const at = new Date(time.now)
      const pattern: WorkflowRun = {
        id: 'pattern',
        workflow: 'w',
        workflowVersion: '1',
        status: 'suspended',
        turns: 1,
        wakeAt: time.now + DAY,
        input: null,
        createdAt: at,
        updatedAt: at,
      }
      await store.createRun(pattern)
      const row = (await database().from(T.runs).where('id', 'pattern').firstOrFail()) as object
      // By the database itself: a hundred thousand rows take a second or two.
      const columns = Object.keys(row)
      const own: Record<string, string> = {
        id: kind.dialect === 'mysql' ? "CONCAT('r', s.n)" : "'r' || s.n",
        wake_at: 'CASE WHEN s.n % 2 = 0 THEN p.wake_at + s.n END',
      }
      const values = columns.map((column) => own[column] ?? `p.${column}`)
      await database().rawQuery(
        `INSERT INTO ${T.runs} (${columns.join(', ')})
         SELECT ${values.join(', ')} FROM ${T.runs} p, (${numbersBelow(MANY)}) s
         WHERE p.id = 'pattern' AND s.n >= ${from} AND s.n < ${to}`
      )
      await store.deleteRun('pattern')
    }

    test('one tick costs the same with ten and with a hundred thousand suspended runs', async ({
      assert,
    }) => {
      const engine = rig.engine()
      engine.register('w', '1', async () => 'done')
      const counter = rig.counter(engine)
      await suspend(0, 10)
      const few = await counter.of(() => runTick(engine))
      await suspend(10, MANY)
      const many = await counter.of(() => runTick(engine))
      assert.equal(many.statements, few.statements)
      assert.isAtMost(many.statements, GATE)
    }).timeout(2 * MINUTE)

    test('a pass takes what is due and reads no other run', async ({ assert }) => {
      const engine = rig.engine()
      engine.register('w', '1', async () => 'done')
      const { world } = rig
      await suspend(0, 1_000)
      const due = [3, 500, 996].map((i) => `r${i}`)
      for (const id of due) await world.store.updateRun(id, { wakeAt: world.time.now - 1 })
      const read: string[] = []
      world.gate(engine).around('claimDueRuns', async (proceed) => {
        const claimed = (await proceed()) as ClaimedRun[]
        read.push(...claimed.map(({ run }) => run.id))
        return claimed
      })
      const results = await engine.resumeDueTimers()
      assert.sameMembers(read, due)
      assert.lengthOf(results, due.length)
      for (const member of ['getRun', 'listRuns', 'listDueTimers', 'listIncompleteRuns']) {
        assert.isUndefined(world.gate(engine).calls.get(member), member)
      }
    }).timeout(MINUTE)

    if (kind.dialect === 'postgres') {
      test('no statement of a tick looks at a run', async ({ assert }) => {
        await suspend(0, MANY)
        const db = database()
        await db.rawQuery(`ANALYZE ${T.runs}`)
        const engine = rig.engine()
        const { sent, stop } = record(db)
        await runTick(engine)
        stop()
        assert.isNotEmpty(sent)
        for (const statement of sent) {
          assert.equal(await runsLookedAt(db, statement), 0, statement.sql)
        }
      }).timeout(2 * MINUTE)
    } else {
      test('no statement of a tick scans the runs', async ({ assert }) => {
        const db = database()
        const engine = rig.engine()
        const { sent, stop } = record(db)
        await runTick(engine)
        stop()
        assert.isNotEmpty(sent)
        for (const { sql, bindings } of sent) {
          const explain = kind.dialect === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
          const plan: unknown = await db.rawQuery(`${explain} ${sql}`, bindings as never)
          assert.notMatch(JSON.stringify(plan), SCAN_OF_RUNS, sql)
        }
      }).timeout(MINUTE)
    }
  })
}
