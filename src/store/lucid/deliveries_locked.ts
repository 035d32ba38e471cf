/*
 * Deliveries under the lock of the run that waits, or SQLite's write lock. When nobody waits one statement
 * is all: on SQLite the one that keeps the payload, on MySQL the look, whose answer may be old; whoever
 * begins to wait meanwhile is found by the deliverer's second look.
 */
import type { SeqRange } from '../../foundation/control_flow.ts'
import type { SignalWaiter } from '../../types/checkpoint.ts'
import {
  deliveredRow,
  heldByWave,
  type SignalDelivery,
  type SignalOutcome,
} from '../ports/turn_commits.ts'
import { IS_SETTLED, saveCheckpoint } from './checkpoints.ts'
import { jsonText, listed, readWaiter, waitOf, WAITER_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from '../../sql/session.ts'
import {
  bufferSignal,
  hasSignalWaiter,
  oldestOf,
  removeSignalWaiter,
  takeBufferedSignal,
} from './signals.ts'

const NOBODY: SignalOutcome = { delivered: false, buffered: false }

export async function deliverOnSqlite(
  session: Session,
  delivery: SignalDelivery
): Promise<SignalOutcome> {
  const { token, payload, buffer } = delivery
  const nobody = buffer
    ? await bufferUnlessAwaited(session, token, payload)
    : !(await hasSignalWaiter(session, token))
  if (nobody) return { delivered: false, buffered: buffer }
  return deliverLocked(session, delivery)
}

export function deliverLocked(session: Session, delivery: SignalDelivery): Promise<SignalOutcome> {
  const { token, payload, buffer } = delivery
  return session.atomically(async (sql) => {
    const found = await findAndLock(sql, token)
    if (found) await removeSignalWaiter(sql, found.waiter)
    if (found?.open) return complete(sql, found, delivery)
    if (buffer) await bufferSignal(sql, token, payload)
    return { delivered: false, buffered: buffer }
  })
}

export async function pairLocked(
  session: Session,
  token: string,
  nowMs: number
): Promise<SignalOutcome> {
  const seen = await findWaiter(session, token)
  if (!seen?.payloadLies) return NOBODY
  return session.atomically(async (sql) => {
    const found = await findAndLock(sql, token)
    if (!found?.payloadLies) return NOBODY
    if (!found.open) {
      await removeSignalWaiter(sql, found.waiter)
      return NOBODY
    }
    const taken = await takeBufferedSignal(sql, token)
    if (!taken) return NOBODY
    await removeSignalWaiter(sql, found.waiter)
    return complete(sql, found, { payload: taken.payload, nowMs })
  })
}

async function bufferUnlessAwaited(sql: Sql, token: string, payload: unknown): Promise<boolean> {
  const id = token.toWellFormed()
  const { rows } = await sql.change(
    `INSERT INTO ${T.bufferedSignals} (token, payload) SELECT ?, ?
     WHERE NOT EXISTS (SELECT 1 FROM ${T.signalWaiters} WHERE token = ?)`,
    [id, jsonText(payload, 'payload'), id]
  )
  return rows > 0
}

export interface Found {
  waiter: SignalWaiter
  /** The range its run awaits. */
  waitSeqs?: SeqRange
  /** Its run lives and its position has no outcome. */
  open: boolean
  payloadLies: boolean
}

/** The waiter as it is once its run, and with it everything of that run, stands still. */
async function findAndLock(sql: Sql, token: string): Promise<Found | undefined> {
  let seen = await findWaiter(sql, token)
  if (sql.dialect.name === 'sqlite') return seen
  const locked = new Set<string>()
  while (seen && !locked.has(seen.waiter.runId)) {
    const { runId, seq } = seen.waiter
    const id = runId.toWellFormed()
    await sql.run(`SELECT id FROM ${T.runs} WHERE id = ? FOR UPDATE`, [id])
    // A result may settle the position without that lock.
    await sql.run(`SELECT seq FROM ${T.checkpoints} WHERE run_id = ? AND seq = ? FOR UPDATE`, [
      id,
      seq,
    ])
    locked.add(runId)
    seen = await findWaiter(sql, token)
  }
  return seen
}

export async function findWaiter(sql: Sql, token: string): Promise<Found | undefined> {
  const [row] = await sql.run(
    `SELECT ${listed(WAITER_COLUMNS, 'w')}, (${oldestOf(sql, 'w.token')}) AS payload_id,
       r.status IN ('pending', 'running', 'suspended', 'blocked') AS live, r.wait_from, r.wait_to,
       EXISTS (SELECT 1 FROM ${T.checkpoints} c
         WHERE c.run_id = w.run_id AND c.seq = w.seq AND c.${IS_SETTLED}) AS settled
     FROM ${T.signalWaiters} w LEFT JOIN ${T.runs} r ON r.id = w.run_id WHERE w.token = ?`,
    [token.toWellFormed()]
  )
  return (
    row && {
      waiter: readWaiter(row),
      waitSeqs: waitOf(row),
      open: row.live === 1 && row.settled === 0,
      payloadLies: row.payload_id !== null,
    }
  )
}

async function complete(
  sql: Sql,
  { waiter, waitSeqs }: Found,
  { payload, nowMs, urgent }: Pick<SignalDelivery, 'payload' | 'nowMs' | 'urgent'>
): Promise<SignalOutcome> {
  await saveCheckpoint(sql, deliveredRow(waiter, payload, nowMs))
  const { runId, seq } = waiter
  const wave = heldByWave(waitSeqs, waiter, urgent)
  if (wave) return { delivered: true, runId, seq, wave }
  await sql.change(`UPDATE ${T.runs} SET wake_requested_at = ? WHERE id = ?`, [
    nowMs,
    runId.toWellFormed(),
  ])
  return { delivered: true, runId, seq }
}
