/*
 * A turn's commit on SQLite: one statement for one row or a bare settle, otherwise a transaction that holds
 * the write lock from its begin.
 */
import {
  refusedByIntent,
  type RowWrite,
  type TurnCommit,
  type TurnVerdict,
} from '../ports/turn_commits.ts'
import { reindexes } from './attributes.ts'
import { IS_LIVE } from './checkpoints.ts'
import type { Binding } from '../../sql/dialect.ts'
import { CHECKPOINT_COLUMNS, checkpointColumns, listed } from './rows.ts'
import { assignments, patchColumns } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'
import { RETRIES, UNLESS_SETTLED } from './row_writes.ts'
import { hasExtras } from './turn_extras.ts'
import { commitAll, MARKS } from './turn_commit_locked.ts'
import { settlePatch, verdict } from './turn_verdict.ts'

export async function commitOnSqlite(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  const done = await commitAtOnce(session, commit)
  if (done) return verdict(done, true, [])
  return session.atomically((sql) => commitAll(sql, commit))
}

const HELD = `id = ? AND locked_by = ? AND turns = ? AND ${IS_LIVE}`

const heldValues = ({ runId, owner, turn }: TurnCommit): Binding[] => [
  runId.toWellFormed(),
  owner.toWellFormed(),
  turn,
]

const COLUMNS = listed(CHECKPOINT_COLUMNS)

/** The run after a commit that one statement can make; undefined when it cannot, or nothing was written. */
async function commitAtOnce(sql: Sql, commit: TurnCommit): Promise<Row | undefined> {
  const { rows = [], stamps, waits, expiries, runs, children, settle: end } = commit
  const others = [stamps, waits, expiries, runs, children]
  if (end?.rekey || hasExtras(commit) || others.some((part) => part?.length)) return undefined
  if (!end) return rows.length === 1 ? writeOne(sql, commit, rows[0]) : undefined
  const reindexed = reindexes(end.patch)
  return rows.length > 0 || end.looks?.length || reindexed ? undefined : settleOnly(sql, commit)
}

async function settleOnly(sql: Sql, commit: TurnCommit): Promise<Row | undefined> {
  const patch = settlePatch(commit)
  const columns = { ...patchColumns(patch), locked_by: null, locked_until: null }
  const yields = refusedByIntent(commit.settle, { cancelRequestedAt: 0 })
  const [run] = await sql.run(
    `UPDATE ${T.runs} SET ${assignments(columns, patch)}
     WHERE ${HELD} ${yields ? 'AND cancel_requested_at IS NULL' : ''} RETURNING ${listed(MARKS)}`,
    [...Object.values(columns), ...heldValues(commit)]
  )
  return run
}

/** Lease check, write and verdict in one statement. */
async function writeOne(sql: Sql, commit: TurnCommit, { row, retryOf }: RowWrite) {
  const columns = { ...checkpointColumns(row), run_id: commit.runId.toWellFormed() }
  const answers = MARKS.map(
    (mark) => `(SELECT r.${mark} FROM ${T.runs} r WHERE r.id = run_id) AS "run_${mark}"`
  )
  const [written] = await sql.run(
    `INSERT INTO ${T.checkpoints} AS c (${COLUMNS})
     SELECT ${CHECKPOINT_COLUMNS.map(() => '?').join(', ')} FROM ${T.runs} WHERE ${HELD}
     ${UNLESS_SETTLED} ${retryOf === undefined ? '' : RETRIES} RETURNING ${answers.join(', ')}`,
    [
      ...CHECKPOINT_COLUMNS.map((column) => columns[column as keyof typeof columns]),
      ...heldValues(commit),
      ...(retryOf === undefined ? [] : [retryOf]),
    ]
  )
  return written && Object.fromEntries(MARKS.map((mark) => [mark, written[`run_${mark}`]]))
}
