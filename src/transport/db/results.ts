/*
 * Statements on results and heartbeats. A result is deleted under the token of the claim that delivered
 * it, at the latest when its claim would be renewed; deletes ride along with the next claim where the
 * dialect allows that. Heartbeats may be lost: whoever takes one deletes it.
 */
import type { Binding } from '../../sql/dialect.ts'
import type { Row, Session } from '../../sql/session.ts'
import { decode } from '../../wire/codec.ts'
import type { Heartbeat } from '../../wire/messages.ts'
import { encodeJson } from '../../foundation/json.ts'
import { RESULT_COLUMNS } from './task_rows.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'
import type { Claim, ClaimedRows, Held } from './claims.ts'

const HELD = { id: 'text', token: 'text' } as const
const COLUMNS = RESULT_COLUMNS.join(', ')
const NEXT = `SELECT step_id, created_at FROM ${T.results}
  WHERE namespace = ? AND claimed_at IS NULL ORDER BY created_at LIMIT ?`

/** Deletes delivered results and takes the next ones, oldest first. */
export async function claimResults(
  session: Session,
  { namespace, token, nowMs, limit }: Claim,
  delivered: Held[]
): Promise<ClaimedRows> {
  const byAge = (rows: Row[], more = rows.length >= limit) => ({
    rows: rows.sort((a, b) => Number(a.created_at) - Number(b.created_at)),
    more,
  })
  if (session.dialect.name === 'postgres') {
    const gone = delivered.length > 0 ? `gone AS (${deletion(session)}), ` : ''
    const acks = delivered.length > 0 ? [JSON.stringify(delivered)] : []
    const rows = await session.run(
      `WITH ${gone}free AS (${NEXT} FOR UPDATE SKIP LOCKED),
       next AS (SELECT step_id, row_number() OVER (ORDER BY created_at) AS place FROM free)
       UPDATE ${T.results} r SET claimed_by = ?, claimed_at = ? FROM next
       WHERE r.step_id = next.step_id AND next.place <= ?
       RETURNING ${RESULT_COLUMNS.map((name) => `r.${name}`).join(', ')},
         (SELECT count(*) FROM next) AS seen`,
      [...acks, namespace, limit + 1, token, nowMs, limit]
    )
    // One more than is taken, to know without asking again whether there is one.
    return byAge(rows, Number(rows[0]?.seen ?? 0) > limit)
  }
  if (delivered.length > 0) await deleteResults(session, delivered)
  if (limit <= 0) return byAge([], false)
  if (session.dialect.name === 'sqlite') {
    const rows = await session.run(
      `UPDATE ${T.results} SET claimed_by = ?, claimed_at = ?
       WHERE step_id IN (SELECT step_id FROM (${NEXT})) RETURNING ${COLUMNS}`,
      [token, nowMs, namespace, limit]
    )
    return byAge(rows)
  }
  const found = await session.run(NEXT, [namespace, limit])
  if (found.length === 0) return byAge([], false)
  const ids = session.dialect.list(found.map((row) => String(row.step_id)))
  await session.change(
    `UPDATE ${T.results} SET claimed_by = ?, claimed_at = ? WHERE step_id IN (?) AND claimed_at IS NULL`,
    [token, nowMs, ids]
  )
  return byAge(
    await session.run(
      `SELECT ${COLUMNS} FROM ${T.results} WHERE step_id IN (?) AND claimed_by = ?`,
      [ids, token]
    )
  )
}

const deletion = ({ dialect }: Session): string => {
  const source = dialect.jsonRows('h', HELD)
  const on = 'r.step_id = h.id AND r.claimed_by = h.token'
  if (dialect.name === 'mysql') return `DELETE r FROM ${T.results} r JOIN ${source} ON ${on}`
  if (dialect.name === 'postgres') return `DELETE FROM ${T.results} r USING ${source} WHERE ${on}`
  return `DELETE FROM ${T.results} AS r WHERE EXISTS (SELECT 1 FROM ${source} WHERE ${on})
    AND r.step_id IN (SELECT value ->> '$.id' FROM json_each(?))`
}

/** Deletes results that their consumer took, each only under the claim that delivered it. */
export async function deleteResults(session: Session, delivered: Held[]): Promise<void> {
  const json = JSON.stringify(delivered)
  const bindings = session.dialect.name === 'sqlite' ? [json, json] : [json]
  await session.change(deletion(session), bindings)
}

const BEAT_COLUMNS = ['run_id', 'seq', 'step_id', 'grp', 'at', 'progress'] as const
const BEATS = {
  run_id: 'text',
  seq: 'int',
  step_id: 'text',
  grp: 'text',
  at: 'bigint',
  progress: 'long',
} as const

/** In the order given. */
export async function insertBeats(
  session: Session,
  beats: Heartbeat[],
  { namespace, nowMs }: { namespace: string; nowMs: number }
): Promise<void> {
  const rows = beats.map((beat) => ({
    run_id: beat.runId,
    seq: beat.seq,
    step_id: beat.stepId ?? null,
    grp: beat.group,
    at: beat.at ?? null,
    progress: beat.progress === undefined ? null : encodeJson(beat.progress, 'progress', Infinity),
  }))
  const listed = BEAT_COLUMNS.join(', ')
  const from = BEAT_COLUMNS.map((name) => `b."${name}"`).join(', ')
  await session.change(
    `INSERT INTO ${T.heartbeats} (${listed}, namespace, created_at)
     SELECT ${from}, ?, ${session.dialect.name === 'postgres' ? '?::bigint' : '?'}
     FROM ${session.dialect.jsonRows('b', BEATS)}`,
    [namespace, nowMs, JSON.stringify(rows)]
  )
}

/** Takes heartbeats away, oldest first. */
export async function takeBeats(
  session: Session,
  namespace: string,
  limit: number
): Promise<Heartbeat[]> {
  const columns = ['id', ...BEAT_COLUMNS].join(', ')
  const next = (what: string) =>
    `SELECT ${what} FROM ${T.heartbeats} WHERE namespace = ? ORDER BY id LIMIT ?`
  const bindings: Binding[] = [namespace, limit]
  let rows: Row[]
  if (session.dialect.returns) {
    const lock = session.dialect.skipLocked
    rows = await session.run(
      `DELETE FROM ${T.heartbeats} WHERE id IN (${next('id')} ${lock}) RETURNING ${columns}`,
      bindings
    )
  } else {
    // Two engines may read the same ones here: a beat that is heard twice does no harm.
    rows = await session.run(next(columns), bindings)
    const ids = session.dialect.list(rows.map((row) => Number(row.id)))
    if (rows.length > 0) await session.change(`DELETE FROM ${T.heartbeats} WHERE id IN (?)`, [ids])
  }
  return rows
    .sort((a, b) => Number(a.id) - Number(b.id))
    .map((row) =>
      decode('heartbeat', {
        runId: row.run_id,
        seq: Number(row.seq),
        stepId: row.step_id ?? undefined,
        group: row.grp,
        at: row.at === null ? undefined : Number(row.at),
        progress: typeof row.progress === 'string' ? JSON.parse(row.progress) : undefined,
      })
    )
}

/** Beats that nobody took are old news. */
export async function dropOldBeats(
  session: Session,
  namespace: string,
  beforeMs: number
): Promise<void> {
  await session.change(`DELETE FROM ${T.heartbeats} WHERE namespace = ? AND created_at < ?`, [
    namespace,
    beforeMs,
  ])
}
