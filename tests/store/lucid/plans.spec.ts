/*
 * The statements that polls and turns repeat are served by their indexes, over 20,000 runs and as many
 * rows of a timeline: custom plans, and on Postgres the generic ones that kept statements end up with.
 */
import type { Database } from '@adonisjs/lucid/database'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { test } from '@japa/runner'
import type { Binding } from '../../../src/sql/dialect.ts'
import type { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { DURABLE_TABLES as T } from '../../../src/store/lucid/schema/tables.ts'
import { Session } from '../../../src/sql/session.ts'
import type { AttributeOperator, RunQuery } from '../../../src/types/query.ts'
import { CONNECTION, type Dialect, reachableDialects } from '../../helpers/databases.ts'
import { asTurn, at, makeRow, makeWait, ms, provisionedStore } from './support.ts'

const RUNS = 20_000

interface Case {
  name: string
  call: (store: LucidStateStore) => Promise<unknown>
  /** Indexes the plan names; on SQLite a primary key shows as an automatic one. */
  indexes: string[]
  /** What MySQL, which has no partial indexes, takes instead. */
  onMysql?: string[]
  /** Put together for one call, so it never has a generic plan. */
  adhoc?: true
}

const claim = { owner: 'me', leaseUntilMs: ms(99), nowMs: ms(10), limit: 20 }
const RUN_KEY = 'durable_workflow_runs_pkey'
const ROW_KEY = 'durable_step_checkpoints_pkey'

const CASES: Case[] = [
  {
    name: 'pending runs of a namespace',
    call: (s) => s.listPendingRuns(20, 'default'),
    indexes: ['durable_runs_by_namespace_idx'],
    onMysql: ['durable_runs_by_status_idx'],
  },
  {
    name: 'claim of pending runs of a namespace',
    call: (s) => s.claimDueRuns({ ...claim, kind: 'pending', namespace: 'default' }),
    indexes: ['durable_runs_by_namespace_idx', RUN_KEY],
    onMysql: ['durable_runs_by_status_idx'],
  },
  {
    name: 'due timers',
    call: (s) => s.listDueTimers(ms(10), undefined, 20),
    indexes: ['durable_runs_due_idx', 'durable_runs_requested_idx'],
  },
  {
    name: 'claim of due runs',
    call: (s) => s.claimDueRuns({ ...claim, kind: 'due' }),
    indexes: ['durable_runs_due_idx', 'durable_runs_requested_idx', RUN_KEY],
  },
  {
    name: 'orphans',
    call: (s) => s.listOrphanedRuns(ms(10), undefined, 20),
    indexes: ['durable_runs_orphans_idx'],
    onMysql: ['durable_runs_orphans_idx', 'durable_runs_unheld_idx'],
  },
  {
    name: 'overdue runs',
    call: (s) => s.listOverdueRuns(ms(10), undefined, 20),
    indexes: ['durable_runs_deadline_idx'],
  },
  {
    name: 'a page of runs, newest first',
    adhoc: true,
    call: (s) => s.listRuns({ size: 20, before: { createdAt: ms(500), id: 'run-500' } }),
    indexes: ['durable_runs_created_idx'],
  },
  {
    name: 'retention',
    adhoc: true,
    call: (s) => s.listRuns({ statuses: ['failed'], updatedBefore: ms(100), size: 100 }),
    indexes: ['durable_runs_updated_idx'],
  },
  {
    name: 'settle targets',
    call: (s) => s.settleTargets([{ runId: 'run-7', seq: 1 }]),
    indexes: [ROW_KEY, RUN_KEY],
  },
  {
    name: 'a batch of results',
    call: (s) =>
      s.settleCheckpointsIfPending([
        { runId: 'run-7', seq: 1, status: 'completed', finishedAt: at(1) },
        { runId: 'run-7', seq: 2, status: 'completed', finishedAt: at(1) },
      ]),
    indexes: [ROW_KEY],
  },
  {
    name: 'what a warm turn reads',
    call: (s) => s.listCheckpointsAt('run-7', [5, 7], 19_990),
    indexes: [ROW_KEY],
  },
  {
    name: 'open rows of a wave',
    call: (s) => s.hasCheckpoints('run-7', { fromSeq: 5, toSeq: 9_000, statuses: ['pending'] }),
    indexes: ['durable_checkpoints_pending_idx'],
  },
  {
    name: 'the latest row of a name',
    call: (s) => s.getLatestCheckpointByName('run-7', 'step-7'),
    indexes: ['durable_checkpoints_named_idx'],
  },
  {
    name: 'rows by a prefix of their name',
    adhoc: true,
    call: (s) => s.listCheckpointsByNamePrefix('run-7', ['step-77']),
    indexes: ['durable_checkpoints_named_idx'],
  },
  {
    name: 'waiters by a prefix',
    call: (s) => s.listSignalWaiters('token-77'),
    indexes: ['durable_signal_waiters_pkey'],
  },
  {
    name: 'a claim of one run',
    call: (s) =>
      s.claimRun({ ...claim, runId: 'run-7', from: ['pending', 'suspended', 'completed'] }),
    indexes: [RUN_KEY],
  },
  {
    name: 'a commit with everything in it',
    call: (s) =>
      s.commitTurn({
        ...asTurn('run-7'),
        rows: [{ row: makeRow('run-7', 30_000) }, { row: makeRow('run-7', 30_001) }],
        waits: [makeWait('run-7', 30_002, 'fresh')],
        stamps: [{ seq: 1, order: 1 }],
        settle: { status: 'suspended', patch: {}, looks: [makeWait('run-7', 30_003, 'other')] },
      }),
    indexes: [RUN_KEY, ROW_KEY],
  },
  {
    name: 'a delivery',
    call: (s) => s.deliverSignal({ token: 'token-7', payload: 1, nowMs: ms(1), buffer: true }),
    indexes: ['durable_signal_waiters_pkey', RUN_KEY],
  },
  {
    name: 'the oldest payload of a token',
    call: (s) => s.takeBufferedSignal('token-7'),
    indexes: ['durable_buffered_signals_token_idx'],
  },
  {
    name: 'the aggregates of a timeline',
    call: (s) => s.checkpointStats('run-9'),
    // By either index that begins with the run.
    indexes: [],
  },
  {
    name: 'a page of a timeline',
    adhoc: true,
    call: (s) => s.queryCheckpoints('run-7', { group: 'all:1', fromSeq: 19_000, limit: 500 }),
    indexes: [ROW_KEY],
  },
  {
    name: 'a page of rows by a prefix of their name',
    adhoc: true,
    call: (s) => s.queryCheckpoints('run-7', { namePrefixes: ['step-77'], limit: 500 }),
    indexes: ['durable_checkpoints_named_idx'],
  },
  {
    name: 'buffered tokens by prefixes',
    call: (s) => s.listBufferedTokens(['token-7', 'token-9']),
    indexes: ['durable_buffered_signals_token_idx'],
  },
  {
    name: 'the waits of a fan',
    call: (s) =>
      s.registerChildWaits(
        [30_000, 30_001].map((seq) => {
          const { waiter, row } = makeWait('run-7', seq, `child:${seq}`)
          return { waiter, checkpoint: { ...row, status: 'running' as const } }
        })
      ),
    indexes: [],
  },
  {
    name: 'a claim of a slot',
    call: (s) =>
      s.tryAdmitSingleton({
        runId: 'run-1000',
        workflow: 'w0',
        tag: 'singleton:k',
        limit: 1,
        retryAt: ms(99),
        nowMs: ms(10),
      }),
    indexes: [RUN_KEY, 'durable_runs_by_workflow_idx'],
  },
  {
    name: 'a run through a view',
    call: (s) => s.withScope({ namespace: 'default' }).getRun('run-7'),
    indexes: [RUN_KEY],
  },
  {
    name: 'runs through a view',
    call: (s) => s.withScope({ namespace: 'default' }).getRuns(['run-7', 'run-9']),
    indexes: [RUN_KEY],
  },
  {
    name: 'a schedule',
    call: (s) => s.updateSchedule('schedule-7', { paused: true }),
    indexes: ['durable_schedules_pkey'],
  },
  {
    name: 'a conditional delete',
    call: (s) => s.deleteRunsIf(['run-9'], ['completed']),
    indexes: [RUN_KEY, 'durable_signal_waiters_run_idx'],
  },
]

/** Of 20,000 runs twenty are pending, running or due; one timeline has 20,000 rows, forty of them open. */
async function populate(db: Database, dialect: Dialect): Promise<void> {
  await db.transaction(async (trx) => {
    // The texts below are those of the other two.
    const modes = dialect === 'mysql' ? [`sql_mode = 'ANSI'`, ...RECURSION] : []
    for (const mode of modes) await trx.rawQuery(`SET SESSION ${mode}`)
    await insertAll(trx, dialect)
    if (dialect === 'mysql') await trx.rawQuery('SET SESSION sql_mode = DEFAULT')
  })
  const analyze = dialect === 'mysql' ? 'ANALYZE TABLE' : 'ANALYZE'
  for (const table of Object.values(T)) await db.rawQuery(`${analyze} ${table}`)
}

/** Of MariaDB. */
const RECURSION = [`max_recursive_iterations = ${RUNS}`]

async function insertAll(db: TransactionClientContract, dialect: Dialect): Promise<void> {
  const numbers =
    dialect === 'postgres'
      ? `generate_series(0, ${RUNS - 1}) AS s(n)`
      : `(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < ${RUNS - 1})
          SELECT n FROM s) AS s`
  await db.rawQuery(
    `INSERT INTO ${T.runs} (id, workflow, workflow_version, status, namespace, wake_at,
       wake_requested_at, locked_by, locked_until, created_at, updated_at)
     SELECT 'run-' || n, 'w' || (n % 10), '1',
       CASE n % 1000 WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'blocked' WHEN 3 THEN 'failed'
         ELSE CASE WHEN n % 2 = 0 THEN 'suspended' ELSE 'completed' END END,
       'default', CASE WHEN n % 2 = 0 THEN ${ms(0)} + CASE WHEN n % 1000 = 4 THEN 0 ELSE 1000000 + n END END,
       CASE WHEN n % 1000 = 6 THEN ${ms(0)} END, CASE WHEN n % 1000 = 1 THEN 'gone' END,
       CASE WHEN n % 1000 = 1 THEN ${ms(5)} END, ${ms(0)} + n, ${ms(0)} + n FROM ${numbers}`
  )
  await db.rawQuery(
    `INSERT INTO ${T.checkpoints} (run_id, seq, name, kind, step_id, status, attempts, started_at, finished_at)
     SELECT CASE WHEN n % 2 = 0 THEN 'run-7' ELSE 'run-' || n END, n, 'step-' || n, 'remote', 'run:' || n,
       CASE WHEN n % 500 = 2 THEN 'pending' ELSE 'completed' END, 1, 1, 1 FROM ${numbers}`
  )
  await db.rawQuery(
    `INSERT INTO ${T.signalWaiters} (token, run_id, seq)
     SELECT 'token-' || n, 'run-' || n, n FROM ${numbers}`
  )
  await db.rawQuery(
    `INSERT INTO ${T.bufferedSignals} (token, payload) SELECT 'token-' || (n % 100), '1' FROM ${numbers}`
  )
  await db.rawQuery(
    `INSERT INTO ${T.attributes} (run_id, "key", num_value) SELECT 'run-' || n, 'size', n FROM ${numbers}`
  )
  await db.rawQuery(
    `INSERT INTO ${T.schedules} (id, workflow, created_at, updated_at)
     SELECT 'schedule-' || n, 'w1', 1, 1 FROM ${numbers}`
  )
}

const size = (op: AttributeOperator, value: number) => ({
  attributes: [{ key: 'size', op, value }],
})

/** Pages by values of an attribute: of many, few, or many of which none comes early. */
const PAGES: [RunQuery, [number, number, number]][] = [
  [size('lt', 19_000), [18_999, 18_998, 18_997]],
  [{ ...size('lt', 19_000), page: 2 }, [18_996, 18_995, 18_994]],
  [{ ...size('lt', 19_000), before: { createdAt: ms(900), id: 'run-900' } }, [899, 898, 897]],
  [{ ...size('gte', 1500), oldestFirst: true }, [1500, 1501, 1502]],
  [{ ...size('gt', 1500), status: 'failed' }, [19_003, 18_003, 17_003]],
  [{ ...size('gt', 1500), statuses: ['failed', 'blocked'] }, [19_003, 19_002, 18_003]],
  [size('ne', 19_998), [19_999, 19_997, 19_996]],
  [{ attributes: [...size('gt', 2).attributes, ...size('lt', 900).attributes] }, [899, 898, 897]],
  [size('lt', 4000), [3999, 3998, 3997]],
  [size('lt', 3), [2, 1, 0]],
]

interface Sent {
  sql: string
  bindings: Binding[]
}

/** The statements of a call that touch the tables. */
async function statementsOf(db: Database, call: () => Promise<unknown>): Promise<Sent[]> {
  const sent: Sent[] = []
  const client = db.getRawConnection(CONNECTION)!.connection!.client!
  const record = ({ sql, bindings }: Sent) => void sent.push({ sql, bindings })
  client.on('query', record)
  try {
    await call()
  } finally {
    client.removeListener('query', record)
  }
  return sent.filter(({ sql }) => sql.includes('durable_'))
}

async function explainSqlite(session: Session, { sql, bindings }: Sent): Promise<string[]> {
  const rows = await session.adhoc(`EXPLAIN QUERY PLAN ${sql}`, bindings)
  return [rows.map((row) => row.detail).join('\n')]
}

const quoted = (value: Binding): string => {
  if (value === null || typeof value === 'number') return String(value)
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  return `'{${value.join(',')}}'`
}

async function explainPostgres(session: Session, { sql, bindings }: Sent): Promise<string[]> {
  const rows = await session.adhoc(`EXPLAIN ${sql}`, bindings)
  const custom = rows.map((row) => row['QUERY PLAN']).join('\n')
  const generic = await session.atomically(async (transaction) => {
    await transaction.adhoc('SET LOCAL plan_cache_mode = force_generic_plan', [])
    await transaction.adhoc(`PREPARE explained AS ${sql}`, [])
    const lines = await transaction.adhoc(
      `EXPLAIN EXECUTE explained(${bindings.map(quoted).join(', ')})`,
      []
    )
    await transaction.adhoc('DEALLOCATE explained', [])
    return lines.map((line) => line['QUERY PLAN']).join('\n')
  })
  return [custom, generic]
}

/** A line a table: its name in the statement, how it is read, by which key. */
async function explainMysql(session: Session, { sql, bindings }: Sent): Promise<string[]> {
  // An insert shows as a read of its whole table.
  const rows = sql.trim().startsWith('INSERT')
    ? []
    : await session.adhoc(`EXPLAIN ${sql}`, bindings)
  const tables = rows.filter(({ Extra }) => !/Table function/.test(String(Extra)))
  return [tables.map(({ table, type, key }) => `${table} ${type} ${key}`).join('\n')]
}

const EXPLAIN = { postgres: explainPostgres, sqlite: explainSqlite, mysql: explainMysql }

for (const dialect of await reachableDialects()) {
  test(`plans over ${RUNS} runs (${dialect})`, async ({ assert, cleanup }) => {
    const { db, store } = await provisionedStore(dialect, cleanup, { plain: true })
    await populate(db, dialect)
    const session = new Session(db)
    const explain = EXPLAIN[dialect]
    for (const { name, call, indexes: named, adhoc, onMysql } of CASES) {
      const indexes = dialect === 'mysql' ? (onMysql ?? named) : named
      const sent = await statementsOf(db, () => call(store))
      const variants: string[][] = []
      for (const statement of sent) variants.push(await explain(session, statement))
      for (let variant = 0; variant < (adhoc ? 1 : variants[0].length); variant++) {
        const plan = variants.map((plans) => plans[variant]).join('\n')
        for (const index of indexes) {
          assert.include(plan, indexName(dialect, index), `${name} (${variant})\n${plan}`)
        }
        assert.notMatch(plan, SCANS[dialect], `${name} (${variant})\n${plan}`)
      }
    }
    const pages = PAGES.map(async ([query, first]) => {
      const runs = await store.listRuns({ ...query, size: 3 })
      assert.deepEqual(
        runs.map(({ id }) => id),
        first.map((n) => `run-${n}`),
        JSON.stringify(query)
      )
    })
    await Promise.all(pages)
  }).timeout(120_000)
}

/** SQLite numbers the indexes of a table's keys, MySQL has one name for all of them. */
function indexName(dialect: Dialect, index: string): string {
  if (dialect === 'postgres' || !index.endsWith('_pkey')) return index
  return dialect === 'mysql' ? 'PRIMARY' : `sqlite_autoindex_${index.replace('_pkey', '')}_1`
}

/** A durable table read from end to end. */
const SCANS: Record<Dialect, RegExp> = {
  postgres: /Seq Scan on durable_/,
  sqlite: /SCAN (?!.*USING (COVERING )?INDEX)(durable_|[a-z]\b(?! VIRTUAL))/,
  mysql: /^(durable_\w+|[a-z]) ALL/m,
}
