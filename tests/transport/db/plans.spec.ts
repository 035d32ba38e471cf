/*
 * What a claim reads does not grow with what waits: 100,000 tasks, most of them in one group, judged by the
 * rows that Postgres counts while it runs the statement.
 */
import { test } from '@japa/runner'
import { Session } from '../../../src/sql/session.ts'
import { createDurableTransportTables } from '../../../src/transport/db/schema.ts'
import { TRANSPORT_TABLES as T } from '../../../src/transport/db/tables.ts'
import { claimTasks } from '../../../src/transport/db/tasks.ts'
import {
  CONNECTION,
  createDatabase,
  reachableDialects,
  type TestDatabase,
} from '../../helpers/databases.ts'
import { capture, takenBack } from '../../plans/capture.ts'
import { addTo, newPlan } from '../../plans/explain.ts'
import { explainPg } from '../../plans/explain_pg.ts'

const TASKS = 100_000
const NOW = 1_767_225_600_000

/** One task in ten belongs to one of ten small groups, one in a hundred is held, half are of another namespace. */
const FILL = `INSERT INTO ${T.tasks}
  (step_id, run_id, seq, name, grp, namespace, kind, input, attempt, priority, created_at, claimed_by, claimed_at)
  SELECT 'run ' || i || ':0', 'run ' || i, 0, 'work',
    CASE WHEN i % 10 = 0 THEN 'small ' || (i / 10) % 10 ELSE 'large' END,
    CASE WHEN i % 2 = 0 THEN 'default' ELSE 'other' END,
    'step', repeat('x', 200), 1, i % 7 / 3, ${NOW} + i,
    CASE WHEN i % 100 = 4 THEN 'worker' END, CASE WHEN i % 100 = 4 THEN ${NOW} END
  FROM generate_series(1, ${TASKS}) i`

const SMALL = Array.from({ length: 10 }, (_, i) => `small ${i}`)

const dialects = await reachableDialects()
if (dialects.includes('postgres')) {
  test.group('Plans of the db transport | postgres, 100,000 tasks', (group) => {
    let database: TestDatabase
    group.setup(async () => {
      database = await createDatabase('postgres')
      await createDurableTransportTables(database.db, CONNECTION)
      await database.db.rawQuery(FILL)
      await database.db.rawQuery(`ANALYZE ${T.tasks}`)
      return () => database.cleanup()
    })
    group.tap((each) => each.timeout(60_000))

    for (const { title, groups, limit } of [
      { title: 'one task of the large group', groups: ['large'], limit: 1 },
      { title: 'fifty tasks of the large group', groups: ['large'], limit: 50 },
      { title: 'one task of many groups', groups: [...SMALL, 'large'], limit: 1 },
      { title: 'fifty tasks of many groups', groups: [...SMALL, 'large'], limit: 50 },
      { title: 'a group without tasks', groups: ['nobody'], limit: 50 },
    ]) {
      for (const generic of [false, true]) {
        const plans = generic ? 'the plan for any values' : 'the plan for these'
        test(`${title}: ${plans}`, async ({ assert }) => {
          const { db } = database
          const { sent, answer } = await capture(db, () => {
            const session = new Session(db, CONNECTION)
            const claim = { namespace: 'default', token: 'me', nowMs: NOW, limit }
            return claimTasks(session, claim, groups)
          })
          const plan = newPlan()
          await takenBack(db, async (send) => {
            for (const statement of sent) addTo(plan, await explainPg(send, statement, generic))
          })
          assert.lengthOf(sent, 1)
          assert.lengthOf(answer.rows, groups[0] === 'nobody' ? 0 : limit)
          // One more than asked for of each group, each row twice: to lock it, and to claim it.
          assert.isAtMost(plan.read, 2 * groups.length * (limit + 1) + limit)
          assert.deepEqual(plan.scans, [])
          assert.includeMembers(plan.indexes, ['transport_tasks_free'])
          if (answer.rows.length > 0) assert.isAbove(plan.read, 0)
        })
      }
    }
  })
}
