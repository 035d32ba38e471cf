/*
 * The plans of every hot statement, on a big table: by which index, reading how many rows for how many that
 * were asked for.
 *
 *   npm run test:plans                              a million runs on servers, 200,000 on SQLite
 *   npm run test:plans -- --runs=20000              the same on small tables
 *   npm run test:plans -- --dialect=postgres --only=retention
 *
 * Ends with one plain line: `N passed, N failed`.
 */
import { parseArgs } from 'node:util'
import type { Database } from '@adonisjs/lucid/database'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { DURABLE_TABLES as T } from '../../src/store/lucid/schema/tables.ts'
import { createDatabase, type Dialect, reachableDialects } from '../helpers/databases.ts'
import { capture, type Send, type Sent, takenBack } from './capture.ts'
import type { Case, Samples } from './case.ts'
import { addTo, newPlan, type Plan } from './explain.ts'
import { explainMysql } from './explain_mysql.ts'
import { explainPg } from './explain_pg.ts'
import { SqliteExplainer } from './explain_sqlite.ts'
import { analyze, fill } from './fill.ts'
import { QUERY_CASES } from './query_cases.ts'
import { Report } from './report.ts'
import { TURN_CASES } from './turn_cases.ts'
import { UPKEEP_CASES } from './upkeep_cases.ts'

const { values } = parseArgs({
  options: {
    dialect: { type: 'string' },
    runs: { type: 'string' },
    only: { type: 'string' },
    verbose: { type: 'boolean' },
  },
})
const SIZES: Record<Dialect, number> = { postgres: 1_000_000, mysql: 1_000_000, sqlite: 200_000 }

type Explain = (send: Send, sent: Sent, connection: object) => Promise<Plan | undefined>

const report = new Report()
for (const dialect of await reachableDialects()) {
  if (values.dialect === undefined || values.dialect === dialect) await plansOf(dialect)
}
report.end()
process.exitCode = report.failed > 0 || report.passed === 0 ? 1 : 0

async function plansOf(dialect: Dialect): Promise<void> {
  const { db, cleanup } = await createDatabase(dialect)
  const stop = () => void cleanup().finally(() => process.exit(130))
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    const runs = Number(values.runs ?? SIZES[dialect])
    report.say(`${dialect}: ${runs} runs, ${3 * runs} checkpoints`)
    await fill(db, dialect, runs)
    // Few ever run ANALYZE on SQLite.
    if (dialect === 'sqlite') await table(db, 'sqlite, not analyzed', sqlite())
    await analyze(db, dialect)
    if (dialect === 'sqlite') await table(db, 'sqlite', sqlite())
    if (dialect === 'mysql') await table(db, 'mysql', explainMysql)
    if (dialect === 'postgres') {
      await table(db, 'postgres', (send, sent) => explainPg(send, sent, false))
      await table(db, 'postgres, plans for any values', async (send, sent) =>
        sent.kept ? explainPg(send, sent, true) : undefined
      )
    }
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await cleanup()
  }
}

function sqlite(): Explain {
  const explainers = new WeakMap<object, SqliteExplainer>()
  return async (send, sent, connection) => {
    let explainer = explainers.get(connection)
    if (!explainer) explainers.set(connection, (explainer = new SqliteExplainer(connection)))
    return explainer.explain(send, sent)
  }
}

async function table(db: Database, title: string, explain: Explain): Promise<void> {
  report.begin(title)
  const store = new LucidStateStore(db)
  const samples = await sampled(db)
  for (const hot of [...TURN_CASES, ...UPKEEP_CASES, ...QUERY_CASES]) {
    const one = { ...hot, basis: hot.elsewhere?.[title] ?? hot.basis }
    if (values.only !== undefined && !one.name.includes(values.only)) continue
    try {
      const { sent, answer } = await capture(db, () => one.call(store, samples))
      const total = newPlan()
      let explained = 0
      await takenBack(db, async (send, connection) => {
        for (const statement of sent) {
          const plan = await explain(send, statement, connection)
          if (values.verbose) console.log(statement.sql, plan)
          if (plan) addTo(total, plan)
          explained += plan ? 1 : 0
        }
      })
      if (explained > 0) report.add(one, total, answer, await allowed(db, one, answer))
      else if (sent.length === 0) report.broken(one.name, new Error('it sends no statement'))
    } catch (error) {
      report.broken(one.name, error)
    }
  }
}

async function allowed(
  db: Database,
  { basis, times, plus }: Case,
  answered: number
): Promise<number> {
  const rows = basis ? await counted(db, basis.where) : answered
  return times * rows + plus
}

async function counted(db: Database, where: string): Promise<number> {
  const [row] = await db.from(T.runs).whereRaw(where).count('* as total')
  return Number(row.total)
}

async function sampled(db: Database): Promise<Samples> {
  const ids = async (where: string, limit: number): Promise<string[]> => {
    const rows = await db
      .from(T.runs)
      .whereRaw(where)
      .select('id')
      .orderBy('id')
      .offset(50)
      .limit(limit)
    return rows.map((row) => String(row.id))
  }
  const waits = `workflow = 'mutex' AND status = 'suspended'`
  const [own] = await db.from(T.runs).whereRaw(waits).select('id', 'tags').orderBy('id').limit(1)
  const [pending] = await ids(`status = 'pending'`, 1)
  return {
    waiting: await ids(`status = 'suspended' AND wait_from = 3`, 100),
    ended: await ids(`status = 'completed'`, 100),
    singleton: { runId: String(own.id), tag: JSON.parse(own.tags)[0] },
    pending,
  }
}
