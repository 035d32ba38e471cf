/*
 * Statements on tasks. A task is taken by one claim and recorded under its token: the answer is written,
 * and the task deleted, only while that claim stands, in one statement or one transaction. So a worker
 * that lost its claim changes nothing (invariant 4). A claim reads rows by the list of each group, in
 * the order in which they are taken: what it reads does not grow with what waits.
 */
import type { Binding } from '../../sql/dialect.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'
import type { RemoteTask, StepResult, WorkflowDecision, WorkflowTask } from '../../wire/messages.ts'
import { encode } from '../../wire/codec.ts'
import type { Claim, ClaimedRows, Held } from './claims.ts'
import { insertMessage, type NewMessage } from './messages.ts'
import {
  RESULT_COLUMNS,
  resultValues,
  type RowContext,
  TASK_COLUMNS,
  taskValues,
  turnValues,
} from './task_rows.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'

const placeholders = (columns: readonly string[]): string => columns.map(() => '?').join(', ')

const INSERT_TASK = `INSERT INTO ${T.tasks} (${TASK_COLUMNS.join(', ')}) VALUES (${placeholders(TASK_COLUMNS)})`

/**
 * A redispatch finds its row: the same attempt is there already, a later one takes the row over, also
 * from a worker that still holds an earlier attempt, whose answer nobody waits for any more.
 */
const TAKEN_OVER = ['grp', 'input', 'traceparent', 'context', 'transport', 'priority', 'attempt']
const ON_CONFLICT = `ON CONFLICT (step_id) DO UPDATE SET
  ${TAKEN_OVER.map((name) => `${name} = excluded.${name}`).join(', ')}, claimed_by = NULL, claimed_at = NULL
  WHERE ${T.tasks}.attempt < excluded.attempt`
/** MySQL assigns from left to right: `attempt` decides for the others and so comes last. */
const ON_DUPLICATE = `ON DUPLICATE KEY UPDATE ${['claimed_by', 'claimed_at']
  .map((name) => `${name} = IF(attempt < VALUES(attempt), NULL, ${name})`)
  .concat(
    TAKEN_OVER.map((name) => `${name} = IF(attempt < VALUES(attempt), VALUES(${name}), ${name})`)
  )
  .join(', ')}`

const insertTask = (sql: Sql, values: Binding[]) =>
  sql.run(`${INSERT_TASK} ${sql.dialect.name === 'mysql' ? ON_DUPLICATE : ON_CONFLICT}`, values)

export async function insertStep(sql: Sql, task: RemoteTask, context: RowContext): Promise<void> {
  await insertTask(sql, taskValues(task, context))
}

export async function insertTurn(sql: Sql, task: WorkflowTask, context: RowContext): Promise<void> {
  await insertTask(sql, turnValues(task, context))
}

const ORDER = 'ORDER BY priority DESC, created_at'
const CLAIMED = [...TASK_COLUMNS, 'reclaims'].join(', ')

/** Takes unclaimed tasks of these groups, most urgent and oldest first. */
export async function claimTasks(
  session: Session,
  claim: Claim,
  groups: string[]
): Promise<ClaimedRows> {
  const { namespace, token, nowMs, limit } = claim
  if (groups.length === 0 || limit <= 0) return { rows: [], more: false }
  const postgres = session.dialect.name === 'postgres'
  // One more than is taken, to know without asking again whether there is one.
  const seen = limit + 1
  const rows = postgres
    ? await session.run(CLAIM_ON_POSTGRES, [groups, namespace, seen, seen, token, nowMs, limit])
    : await claimByList(session, claim, groups)
  const more = postgres ? Number(rows[0]?.seen ?? 0) > limit : rows.length >= limit
  rows.sort(
    (a, b) => Number(b.priority) - Number(a.priority) || Number(a.created_at) - Number(b.created_at)
  )
  return { rows, more }
}

const CLAIM_ON_POSTGRES = `
  WITH next AS (
    SELECT f.step_id, row_number() OVER (${ORDER}) AS place FROM unnest(?::text[]) AS g(grp)
    CROSS JOIN LATERAL (
      SELECT step_id, priority, created_at FROM ${T.tasks}
      WHERE namespace = ? AND grp = g.grp AND claimed_at IS NULL
      ${ORDER} LIMIT ? FOR UPDATE SKIP LOCKED
    ) f ${ORDER} LIMIT ?
  )
  UPDATE ${T.tasks} t SET claimed_by = ?, claimed_at = ? FROM next
  WHERE t.step_id = next.step_id AND next.place <= ?
  RETURNING ${[...TASK_COLUMNS, 'reclaims'].map((name) => `t.${name}`).join(', ')},
    (SELECT count(*) FROM next) AS seen`

/**
 * The list of each group, then the best of all. On MySQL workers see each other's candidates: those
 * beyond the limit are what is left when somebody else was faster.
 */
async function claimByList(session: Session, claim: Claim, groups: string[]): Promise<Row[]> {
  const { namespace, token, nowMs, limit } = claim
  const candidates = session.dialect.name === 'mysql' ? limit * 2 + SPARE : limit
  const lists = groups.map(
    () => `SELECT * FROM (SELECT step_id, priority, created_at FROM ${T.tasks}
      WHERE namespace = ? AND grp = ? AND claimed_at IS NULL ${ORDER} LIMIT ?) l`
  )
  const next = `SELECT step_id FROM (${lists.join(' UNION ALL ')}) c ${ORDER} LIMIT ?`
  const bindings = groups.flatMap((group): Binding[] => [namespace, group, candidates])
  if (session.dialect.name === 'sqlite') {
    return session.run(
      `UPDATE ${T.tasks} SET claimed_by = ?, claimed_at = ?
       WHERE step_id IN (${next}) RETURNING ${CLAIMED}`,
      [token, nowMs, ...bindings, limit]
    )
  }
  const found = await session.run(next, [...bindings, candidates])
  if (found.length === 0) return []
  const ids = session.dialect.list(found.map((row) => String(row.step_id)))
  const { rows } = await session.change(
    `UPDATE ${T.tasks} SET claimed_by = ?, claimed_at = ?
     WHERE step_id IN (?) AND claimed_at IS NULL ${ORDER} LIMIT ${Math.floor(limit)}`,
    [token, nowMs, ids]
  )
  if (rows === 0) return []
  return session.run(`SELECT ${CLAIMED} FROM ${T.tasks} WHERE step_id IN (?) AND claimed_by = ?`, [
    ids,
    token,
  ])
}

const SPARE = 4

const RESULT_UPDATES = [...RESULT_COLUMNS.filter((name) => name !== 'step_id')]
const INSERT_RESULT = `INSERT INTO ${T.results} (${RESULT_COLUMNS.join(', ')})`
/** The row of an attempt before may still wait for its consumer's delete: this one replaces it. */
const REPLACE_RESULT = `ON CONFLICT (step_id) DO UPDATE SET
  ${RESULT_UPDATES.map((name) => `${name} = excluded.${name}`).join(', ')}, claimed_by = NULL, claimed_at = NULL`
const REPLACE_ON_MYSQL = `ON DUPLICATE KEY UPDATE
  ${RESULT_UPDATES.map((name) => `${name} = VALUES(${name})`).join(', ')}, claimed_by = NULL, claimed_at = NULL`

const DELETE_TASK = `DELETE FROM ${T.tasks} WHERE step_id = ? AND claimed_by = ?`

const RESULT_TYPES: Record<string, string> = {
  seq: 'int',
  attempt: 'int',
  started_at: 'bigint',
  created_at: 'bigint',
}

const RECORD_ON_POSTGRES = `
  WITH done AS (${DELETE_TASK} RETURNING 1)
  ${INSERT_RESULT}
  SELECT ${RESULT_COLUMNS.map((name) => `?::${RESULT_TYPES[name] ?? 'text'}`).join(', ')} FROM done
  ${REPLACE_RESULT} RETURNING 1 AS recorded`

/** Ends a task with its result. False: the claim was lost, and nothing was written. */
export async function recordResult(
  session: Session,
  held: Held,
  result: StepResult,
  context: RowContext
): Promise<boolean> {
  const values = resultValues(result, context)
  if (session.dialect.name === 'postgres') {
    const rows = await session.run(RECORD_ON_POSTGRES, [held.id, held.token, ...values])
    return rows.length > 0
  }
  const replace = session.dialect.name === 'mysql' ? REPLACE_ON_MYSQL : REPLACE_RESULT
  return session.atomically(async (sql) => {
    const { rows } = await sql.change(DELETE_TASK, [held.id, held.token])
    if (rows === 0) return false
    await sql.change(`${INSERT_RESULT} VALUES (${placeholders(RESULT_COLUMNS)}) ${replace}`, values)
    return true
  })
}

/** Ends a turn with its decision. False: the claim was lost, and nothing was written. */
export function recordDecision(
  session: Session,
  held: Held,
  decision: WorkflowDecision,
  message: Omit<NewMessage, 'kind' | 'payload'>
): Promise<boolean> {
  return session.atomically(async (sql) => {
    const { rows } = await sql.change(DELETE_TASK, [held.id, held.token])
    if (rows === 0) return false
    await insertMessage(sql, {
      ...message,
      kind: 'decision',
      payload: encode('decision', decision),
    })
    return true
  })
}

/** Deletes a task that can never be recorded. */
export async function dropTask(session: Session, held: Held): Promise<void> {
  await session.change(DELETE_TASK, [held.id, held.token])
}

/** Tasks of a group that wait or run. */
export async function depthOf(session: Session, namespace: string, group: string): Promise<number> {
  const [row] = await session.run(
    `SELECT count(*) AS depth FROM ${T.tasks} WHERE namespace = ? AND grp = ?`,
    [namespace, group]
  )
  return Number(row.depth)
}
