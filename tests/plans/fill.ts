/*
 * A big installation in a minute: runs, checkpoints and attributes made by the database itself. The indexes
 * come after the rows, from the store's own schema.
 *
 * What a plan must not fall for is in the data: a backlog (pending, due and requested runs, many more than a
 * poll asks for), a workflow and a namespace whose every run is old, values that a few runs have and values
 * that most have, one run with a long timeline.
 */
import type { Database } from '@adonisjs/lucid/database'
import { createDurableTables } from '../../src/store/lucid/schema/ensure.ts'
import { indexesOf } from '../../src/sql/ddl.ts'
import { DURABLE_TABLES as T, SCHEMA } from '../../src/store/lucid/schema/tables.ts'
import type { Dialect } from '../helpers/databases.ts'

/** The clock of the data: runs were started in the ninety days before. */
export const NOW = 1_800_000_000_000
export const DAY = 86_400_000
const DAYS = 90
export const LONG_RUN = 'long'
export const LONG_TIMELINE = 20_000
/** Live members of the long run's fan. */
export const LONG_PENDING = 10
const CHUNK = 50_000

export const runId = (n: number): string => `run-${String(n).padStart(8, '0')}`

/** Small texts that the dialects write differently. */
interface Words {
  numbers(from: number, to: number): string
  divided(a: string, b: number): string
  join(...parts: string[]): string
}

const piped = (...parts: string[]) => parts.map((part) => `(${part})`).join(' || ')

const WORDS: Record<Dialect, Words> = {
  postgres: {
    numbers: (from, to) => `generate_series(${from}::bigint, ${to}::bigint) AS s(n)`,
    divided: (a, b) => `(${a} / ${b})`,
    join: piped,
  },
  sqlite: {
    numbers: (from, to) => `(WITH RECURSIVE c(n) AS (
      SELECT ${from} UNION ALL SELECT n + 1 FROM c WHERE n < ${to}) SELECT n FROM c) AS s`,
    divided: (a, b) => `(${a} / ${b})`,
    join: piped,
  },
  mysql: {
    numbers: (from, to) => `(SELECT seq AS n FROM seq_${from}_to_${to}) AS s`,
    divided: (a, b) => `(${a} DIV ${b})`,
    join: (...parts) => `concat(${parts.join(', ')})`,
  },
}

/** Fills an empty database; every dialect gets the same rows. */
export async function fill(db: Database, dialect: Dialect, runs: number): Promise<void> {
  await createDurableTables(db)
  const send = (text: string) => db.rawQuery(text)
  for (const table of SCHEMA) {
    for (const { name } of indexesOf(dialect, table)) {
      await send(`DROP INDEX ${name}${dialect === 'mysql' ? ` ON ${table.name}` : ''}`)
    }
  }
  for (let from = 1; from <= runs; from += CHUNK) {
    const to = Math.min(runs, from + CHUNK - 1)
    for (const text of insertions(WORDS[dialect], runs, from, to)) await send(text)
  }
  for (const text of longRun(WORDS[dialect])) await send(text)
  await createDurableTables(db, undefined, { force: true })
}

export async function analyze(db: Database, dialect: Dialect): Promise<void> {
  const tables = [T.runs, T.checkpoints, T.attributes, T.signalWaiters, T.bufferedEvents]
  if (dialect === 'sqlite') await db.rawQuery('ANALYZE')
  for (const table of dialect === 'sqlite' ? [] : tables) {
    await db.rawQuery(`${dialect === 'postgres' ? 'VACUUM ANALYZE' : 'ANALYZE TABLE'} ${table}`)
  }
}

const STATUS = `CASE
  WHEN h < 10 THEN 'pending' WHEN h < 15 THEN 'running' WHEN h < 75 THEN 'suspended'
  WHEN h < 77 THEN 'blocked' WHEN h < 107 THEN 'failed' WHEN h < 122 THEN 'cancelled'
  WHEN h < 124 THEN 'dead' ELSE 'completed' END`

function* insertions(words: Words, runs: number, from: number, to: number): Generator<string> {
  const { divided, join } = words
  const few = Math.ceil(runs / 25)
  const padded = `right(${join(`'0000000'`, 'n')}, 8)`
  const id = join(`'run-'`, words === WORDS.sqlite ? `printf('%08d', n)` : padded)
  const text = (prefix: string, n: string) => join(`'${prefix}'`, n)
  const source = `(SELECT n, ${id} AS id, (n * 7919 + ${divided('n', 100)} * 577) % 1000 AS h,
    ${NOW - DAYS * DAY} + ${divided(`n * ${DAYS * DAY}`, runs)} AS at,
    CASE WHEN n <= ${few} THEN 'retired' WHEN n % 100 = 50 THEN 'mutex' WHEN n % 4999 = 7 THEN 'rare'
      WHEN n % 2 = 0 THEN 'order' ELSE ${text('job-', `${divided('n', 3)} % 10`)} END AS flow
    FROM ${words.numbers(from, to)}) AS runs`
  const tags = `CASE WHEN flow = 'mutex'
      THEN ${join(`'["singleton:'`, `${divided('n', 100)} % 20`, `'","durable:singleton:tracked"]'`)}
    WHEN n % 3 = 0 THEN ${join(`'["vip","customer:'`, `n % 500`, `'"]'`)} END`
  yield `INSERT INTO ${T.runs} (id, workflow, workflow_version, status, namespace, origin, input, output,
      wake_at, wake_requested_at, locked_by, locked_until, tags, turns, cancel_requested_at, deadline_at,
      wait_from, wait_to, created_at, updated_at)
    SELECT id, flow, CASE WHEN n % 5 = 0 THEN '2' ELSE '1' END, ${STATUS},
      CASE WHEN n <= ${few} THEN 'moved' WHEN n % 10 < 7 THEN 'default' ELSE ${text('tenant-', 'n % 10')} END,
      CASE WHEN n % 4 = 0 THEN ${text('package-', `${divided('n', 4)} % 3`)} END,
      ${join(`'{"order":'`, 'n', `',"lines":["a","b","c"]}'`)},
      CASE WHEN h >= 124 THEN '{"ok":true}' END,
      CASE WHEN h >= 15 AND h < 25 THEN at + 1000 WHEN h = 76 THEN ${NOW} - n WHEN h >= 27 AND h < 77 THEN ${NOW} + 60000 + n END,
      CASE WHEN h = 25 OR h = 30 THEN ${NOW} - n END,
      CASE WHEN h >= 10 AND h < 15 THEN ${text('worker-', 'n % 20')} END,
      CASE WHEN h = 10 THEN ${NOW} - n WHEN h > 10 AND h < 15 THEN ${NOW} + 30000 END,
      ${tags}, CASE WHEN h >= 10 THEN 2 END, CASE WHEN h = 107 AND n % 7 = 0 THEN at END,
      CASE WHEN n % 10 = 0 THEN ${NOW} + 1000 + n WHEN h < 77 AND n % 197 = 0 THEN ${NOW} - n END,
      CASE WHEN h >= 27 AND h < 77 THEN 3 END, CASE WHEN h >= 27 AND h < 77 THEN 3 END,
      at, at + 5000 FROM ${source}`
  yield `INSERT INTO ${T.checkpoints} (run_id, seq, name, kind, step_id, status, input, output, attempts,
      started_at, finished_at, parallel_group)
    SELECT id, seq, ${text('step-', 'seq')}, 'remote', ${join('id', `':'`, 'seq')},
      CASE WHEN seq = 3 AND h < 77 THEN 'pending' ELSE 'completed' END, '{"a":1}', '{"b":[1,2,3]}', 1,
      at + seq, at + seq + 100, NULL
    FROM ${source} CROSS JOIN (SELECT 1 AS seq UNION ALL SELECT 2 UNION ALL SELECT 3) AS seqs`
  const attribute = (key: string, column: string, value: string, where: string) =>
    `INSERT INTO ${T.attributes} (run_id, ${words === WORDS.mysql ? '`key`' : '"key"'}, ${column}, created_at)
     SELECT id, '${key}', ${value}, at FROM ${source} WHERE ${where}`
  yield attribute('customer', 'str_value', text('c-', 'n % 5000'), 'n % 2 = 0')
  yield attribute('amount', 'num_value', 'n % 10000', 'n % 2 = 0')
  yield attribute('tier', 'num_value', 'n % 30', 'n % 10 = 0')
  yield attribute('region', 'str_value', `CASE WHEN n % 8 = 0 THEN 'eu' ELSE 'us' END`, 'n % 4 = 0')
  yield `INSERT INTO ${T.signalWaiters} (token, run_id, seq, created_at)
    SELECT ${join(`'signal:'`, 'id', `':go'`)}, id, 3, at FROM ${source} WHERE h >= 27 AND h < 77`
  yield `INSERT INTO ${T.bufferedSignals} (token, payload)
    SELECT ${join(`'early:'`, 'n % 100')}, '{"a":1}' FROM ${source} WHERE n % 50 = 0`
  yield `INSERT INTO ${T.bufferedEvents} (id, name, payload, published_at)
    SELECT ${text('event-', 'n')}, ${text('topic-', `${divided('n', 10)} % 20`)}, '{"a":1}', at FROM ${source} WHERE n % 10 = 0`
}

/** One run with a fan that is nearly done, and entity commands between. */
function* longRun(words: Words): Generator<string> {
  yield `INSERT INTO ${T.runs} (id, workflow, workflow_version, status, namespace, turns, wait_from, wait_to,
      created_at, updated_at)
    VALUES ('${LONG_RUN}', 'order', '1', 'suspended', 'default', 7, 1, ${LONG_TIMELINE}, ${NOW}, ${NOW})`
  yield `INSERT INTO ${T.checkpoints} (run_id, seq, name, kind, step_id, status, output, attempts,
      started_at, finished_at, parallel_group)
    SELECT '${LONG_RUN}', n, CASE WHEN n % 100 = 0 AND n <= ${LONG_TIMELINE / 2} THEN 'mark' ELSE ${words.join(`'member-'`, 'n')} END,
      'remote', ${words.join(`'${LONG_RUN}:'`, 'n')},
      CASE WHEN n > ${LONG_TIMELINE - LONG_PENDING} THEN 'pending' ELSE 'completed' END, '{"b":1}', 1,
      ${NOW}, ${NOW}, 'all:1'
    FROM ${words.numbers(1, LONG_TIMELINE)}`
}
