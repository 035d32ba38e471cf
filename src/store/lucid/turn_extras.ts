/*
 * The rarer parts of a commit, the same on every dialect: statements that follow the others in a
 * transaction which holds the run row, so that nothing they read changes before they write.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { EventClaim, TurnCommit } from '../ports/turn_commits.ts'
import { IS_SETTLED, saveCheckpoint } from './checkpoints.ts'
import { getRun, reindex } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Sql } from '../../sql/session.ts'
import { removeSignalWaiter } from './signals.ts'
import { rowsAt } from './turn_verdict.ts'

export const hasExtras = ({ claims, searchAttributes }: TurnCommit): boolean =>
  (claims !== undefined && claims.length > 0) || searchAttributes !== undefined

/** `stored` gets the rows of the claimed events, and what stands where a position was settled. */
export async function applyExtras(
  sql: Sql,
  commit: TurnCommit,
  stored: StepCheckpoint[]
): Promise<void> {
  for (const claim of commit.claims ?? []) await claimEvent(sql, claim, stored)
  if (commit.searchAttributes) await mergeAttributes(sql, commit)
}

async function claimEvent(
  sql: Sql,
  { event, waiter, row }: EventClaim,
  stored: StepCheckpoint[]
): Promise<void> {
  const taken = await sql.change(
    `DELETE FROM ${T.bufferedEvents} WHERE id = ? AND NOT EXISTS (SELECT 1 FROM ${T.checkpoints} c
       WHERE c.run_id = ? AND c.seq = ? AND c.${IS_SETTLED})`,
    [event.id.toWellFormed(), row.runId.toWellFormed(), row.seq]
  )
  if (taken.rows === 0) {
    const standing = await rowsAt(sql, row.runId, [row.seq])
    stored.push(...standing.filter(({ status }) => status === 'completed' || status === 'failed'))
    return
  }
  await saveCheckpoint(sql, row)
  await removeSignalWaiter(sql, waiter)
  stored.push(row)
}

async function mergeAttributes(sql: Sql, commit: TurnCommit): Promise<void> {
  const run = await getRun(sql, commit.runId)
  const searchAttributes = { ...run?.searchAttributes, ...commit.searchAttributes }
  const id = commit.runId.toWellFormed()
  await sql.change(`UPDATE ${T.runs} SET search_attributes = ? WHERE id = ?`, [
    JSON.stringify(searchAttributes),
    id,
  ])
  await reindex(sql, id, { searchAttributes })
}
