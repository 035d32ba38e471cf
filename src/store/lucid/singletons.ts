/*
 * Singleton admission: a decision over the live runs of a key, made while no other claim of the key is
 * being decided. Postgres has an advisory lock for that and MySQL a named one, taken before anything is
 * read: locks on the rows that a read found would miss the run that another claim admits in between. SQLite
 * has its write lock. What is read does not grow with the queue: of those who wait, only the oldest can
 * matter.
 */
import { createHash } from 'node:crypto'
import { StoreUnavailableError } from '../../errors.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import type { SingletonClaim, SingletonVerdict } from '../ports/singleton_claims.ts'
import {
  SINGLETON_ADMITTED,
  SINGLETON_TRACKED,
  singletonAdmissionDenialPatch,
  singletonAdmissionTags,
} from '../ports/singleton_rules.ts'
import { IS_LIVE } from './checkpoints.ts'
import type { Binding } from '../../sql/dialect.ts'
import { underName } from '../../sql/named_lock.ts'
import { listed, readRun } from './rows.ts'
import { hasTag } from './run_query.ts'
import { patchColumns } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from '../../sql/session.ts'

const READ = ['id', 'workflow', 'status', 'turns', 'wake_at', 'created_at', 'tags']
const OWN = `SELECT ${listed(READ)} FROM ${T.runs} WHERE id = ?`

/** At most six statements, one to confirm a holder. */
export async function tryAdmitSingleton(
  session: Session,
  given: SingletonClaim
): Promise<SingletonVerdict> {
  const claim = { ...given, runId: given.runId.toWellFormed() }
  const [row] = await session.run(OWN, [claim.runId])
  if (!row) return { admitted: false, status: null }
  const own = readRun(row)
  if (isTerminalStatus(own.status)) return { admitted: false, status: own.status }
  // Only its end takes a slot from a holder, so there is nothing to decide.
  if (holds(own, claim)) return { admitted: true }
  if (session.dialect.name === 'mysql') return decideUnderName(session, claim)
  return session.atomically((sql) => decide(sql, claim))
}

/** How long a claim waits for those before it, in seconds. */
const PATIENCE = 20

/**
 * MySQL: the named lock belongs to the connection, and the decision is one write that commits by itself, so
 * that whoever has the lock next sees it.
 */
function decideUnderName(session: Session, claim: SingletonClaim): Promise<SingletonVerdict> {
  const key = JSON.stringify([claim.workflow, claim.tag])
  const name = `durable:${createHash('sha1').update(key).digest('hex').slice(0, 24)}`
  return session.pinned((sql) =>
    underName(sql, name, PATIENCE, async (locked) => {
      if (!locked) throw new StoreUnavailableError(`claims of "${claim.tag}" take too long`)
      return decide(sql, claim)
    })
  )
}

const holds = ({ workflow, tags = [] }: WorkflowRun, claim: SingletonClaim): boolean =>
  workflow === claim.workflow &&
  [claim.tag, SINGLETON_ADMITTED, SINGLETON_TRACKED].every((tag) => tags.includes(tag))

async function decide(sql: Sql, claim: SingletonClaim): Promise<SingletonVerdict> {
  if (sql.dialect.name === 'postgres') await lockKey(sql, claim)
  const rows = await readContenders(sql, claim)
  const own = rows.find((run) => run.id === claim.runId)
  if (!own) return { admitted: false, status: null }
  const tags = singletonAdmissionTags(rows, claim)
  if (tags) {
    if (tags.length !== own.tags?.length) await patchLive(sql, own.id, { tags })
    return { admitted: true }
  }
  const denial = singletonAdmissionDenialPatch(own, claim)
  if (denial) await patchLive(sql, own.id, denial)
  return { admitted: false, status: denial?.status ?? own.status }
}

/** Until the end of the transaction. A hash that two keys share only makes them wait. */
async function lockKey(sql: Sql, { workflow, tag }: SingletonClaim): Promise<void> {
  await sql.run(`SELECT pg_advisory_xact_lock(hashtext('durable_singleton'), hashtext(?))`, [
    JSON.stringify([workflow, tag]),
  ])
}

/**
 * The claimant, its row locked, and of the others all who hold a slot and the oldest of the rest: as many
 * as could be counted as holders, and as many as could come first.
 */
async function readContenders(sql: Sql, claim: SingletonClaim): Promise<WorkflowRun[]> {
  const { dialect } = sql
  const key = hasTag(dialect, claim.tag)
  const admitted = hasTag(dialect, SINGLETON_ADMITTED)
  const tracked = hasTag(dialect, SINGLETON_TRACKED)
  const most = Math.min(Math.max(0, claim.limit), 2 ** 30)
  const columns = listed(READ)
  const oldest = 'ORDER BY created_at, id LIMIT ?'
  const bindings: Binding[] = [
    claim.runId,
    ...admitted.bindings,
    ...tracked.bindings,
    claim.workflow.toWellFormed(),
    claim.runId,
    ...key.bindings,
    most,
    claim.nowMs,
    // Those who count as holders may be among them.
    2 * most,
  ]
  const rows = await sql.run(
    `WITH own AS (${OWN} ${dialect.name === 'postgres' ? dialect.forUpdate : ''}),
     others AS (
       SELECT ${listed(READ, 'r')}, CASE WHEN ${admitted.text} THEN 1 ELSE 0 END AS admitted,
         CASE WHEN ${tracked.text} THEN 1 ELSE 0 END AS tracked
       FROM ${T.runs} r
       WHERE r.workflow = ? AND r.${IS_LIVE} AND r.id <> ? AND ${key.text}),
     waiting AS (SELECT * FROM others WHERE admitted = 0)
     SELECT ${columns} FROM own
     UNION ALL SELECT ${columns} FROM others WHERE admitted = 1
     UNION ALL SELECT ${columns} FROM (
       SELECT ${columns} FROM (SELECT * FROM waiting
         WHERE tracked = 0 AND status IN ('running', 'suspended') ${oldest}) begun
       UNION SELECT ${columns} FROM (SELECT * FROM waiting
         WHERE NOT (status = 'suspended' AND turns IS NULL AND coalesce(wake_at, 0) > ?) ${oldest}) next
     ) rest`,
    bindings
  )
  return rows.map(readRun)
}

async function patchLive(sql: Sql, runId: string, patch: Partial<WorkflowRun>): Promise<void> {
  const columns = patchColumns(patch)
  const sets = Object.keys(columns).map((column) => `${column} = ?`)
  await sql.change(`UPDATE ${T.runs} SET ${sets.join(', ')} WHERE id = ? AND ${IS_LIVE}`, [
    ...Object.values(columns),
    runId,
  ])
}
