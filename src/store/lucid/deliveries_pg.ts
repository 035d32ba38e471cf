/*
 * Deliveries on Postgres, one statement each. The waiter as the snapshot shows it names the run; the run is
 * locked, then exactly that waiter is deleted, and the row and the wake request follow from what the
 * delete answers. When the waiter changed in between, nothing was written, and the next look begins.
 */
import type { SignalDelivery, SignalOutcome } from '../ports/turn_commits.ts'
import { signalName } from '../../foundation/ids.ts'
import { assigned, IS_LIVE, IS_SETTLED, REPLACED_COLUMNS } from './checkpoints.ts'
import { StoreUnavailableError } from '../../errors.ts'
import { mustBeFresh } from '../../sql/dialect.ts'
import { jsonText, waitOf } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session } from '../../sql/session.ts'

const NOBODY: SignalOutcome = { delivered: false, buffered: false }

/** `$1` is the token. */
const LOCKED = `seen AS (SELECT token, run_id, seq FROM ${T.signalWaiters} WHERE token = $1),
  run AS (
    SELECT r.id, r.${IS_LIVE} AS live, r.wait_from, r.wait_to FROM ${T.runs} r JOIN seen ON seen.run_id = r.id
    FOR NO KEY UPDATE OF r)`

/** Deletes the waiter that was seen, once its run is locked. */
const removed = (condition: string) => `gone AS (
  DELETE FROM ${T.signalWaiters} w USING seen LEFT JOIN run ON run.id = seen.run_id
  WHERE w.token = seen.token AND w.run_id = seen.run_id AND w.seq = seen.seq ${condition}
  RETURNING w.run_id, w.seq, w.parallel_group, w.created_at, coalesce(run.live, false) AS live)`

/** The row of `deliveredRow`. `$2` is the time, `$3` the row's name. */
const completed = (payload: string, from: string, urgent: string) => `put AS (
    INSERT INTO ${T.checkpoints} AS c (run_id, seq, name, kind, step_id, status, output, attempts,
      parallel_group, enqueued_at, started_at, finished_at)
    SELECT gone.run_id, gone.seq, $3, 'signal', gone.run_id || ':' || gone.seq, 'completed', ${payload},
      1, gone.parallel_group, coalesce(gone.created_at, $2::bigint), $2::bigint, $2::bigint
    FROM ${from} WHERE gone.live
    ON CONFLICT (run_id, seq) DO UPDATE SET ${assigned(REPLACED_COLUMNS, 'excluded')}
    WHERE NOT c.${IS_SETTLED} RETURNING c.run_id, c.seq, c.parallel_group),
  held AS (
    SELECT run.wait_from, run.wait_to FROM put JOIN run ON run.id = put.run_id
    WHERE put.seq BETWEEN run.wait_from AND run.wait_to
      AND NOT (${urgent} AND coalesce(put.parallel_group, '') LIKE '%:ff')),
  woken AS (
    UPDATE ${T.runs} r SET wake_requested_at = $2::bigint FROM put
    WHERE r.id = put.run_id AND NOT EXISTS (SELECT 1 FROM held))`

const ANSWERS = `EXISTS (SELECT 1 FROM seen) AS seen, EXISTS (SELECT 1 FROM gone) AS gone,
  (SELECT run_id FROM put) AS run_id, (SELECT seq FROM put) AS seq,
  (SELECT wait_from FROM held) AS wait_from, (SELECT wait_to FROM held) AS wait_to`

const deliver = (
  buffer: boolean
) => `WITH ${LOCKED}, ${removed('')}, ${completed('$4', 'gone', '$5::int = 1')}
  ${
    buffer
      ? `, kept AS (
          INSERT INTO ${T.bufferedSignals} (token, payload)
          SELECT $1, $4 WHERE NOT EXISTS (SELECT 1 FROM seen)
            OR (EXISTS (SELECT 1 FROM gone) AND NOT EXISTS (SELECT 1 FROM put)))`
      : ''
  }
  SELECT ${ANSWERS}`

const DELIVER = deliver(false)
const DELIVER_OR_BUFFER = deliver(true)

/** Looks at a waiter that keeps changing: a put replaced it each time. */
const LOOKS = 20

export async function deliverOnPostgres(
  session: Session,
  { token, payload, nowMs, buffer, urgent }: SignalDelivery
): Promise<SignalOutcome> {
  const values = [
    token.toWellFormed(),
    nowMs,
    signalName(token).toWellFormed(),
    jsonText(payload, 'payload'),
    urgent ? 1 : 0,
  ]
  for (let look = 0; look < LOOKS; look++) {
    const [row] = await session.run(buffer ? DELIVER_OR_BUFFER : DELIVER, values)
    if (row.run_id !== null) return delivered(row)
    if (!row.seen || row.gone) return { delivered: false, buffered: buffer }
  }
  throw new StoreUnavailableError(
    `the waiter on "${token}" changed ${LOOKS} times while it was read`
  )
}

/** `lying` is the oldest payload, locked; it goes with the row it completes or stays. */
const PAIR = `WITH ${LOCKED},
  lying AS (
    SELECT b.id, b.payload FROM ${T.bufferedSignals} b, seen LEFT JOIN run ON run.id = seen.run_id
    WHERE b.token = seen.token ORDER BY b.id LIMIT 1 FOR UPDATE OF b),
  ${removed('AND EXISTS (SELECT 1 FROM lying)')},
  ${completed('lying.payload', 'gone, lying', 'false')},
  spent AS (
    DELETE FROM ${T.bufferedSignals} b USING lying, put WHERE b.id = lying.id RETURNING b.id)
  SELECT ${ANSWERS}, ${mustBeFresh(
    'NOT EXISTS (SELECT 1 FROM put) OR EXISTS (SELECT 1 FROM spent)'
  )} AS fresh`

export async function pairOnPostgres(
  session: Session,
  token: string,
  nowMs: number
): Promise<SignalOutcome> {
  const values = [token.toWellFormed(), nowMs, signalName(token).toWellFormed()]
  const [row] = await session.run(PAIR, values)
  return row.run_id === null ? NOBODY : delivered(row)
}

function delivered(row: Row): SignalOutcome {
  const outcome = { delivered: true as const, runId: String(row.run_id), seq: Number(row.seq) }
  const wave = waitOf(row)
  return wave ? { ...outcome, wave } : outcome
}
