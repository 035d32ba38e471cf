/*
 * Deliveries on MySQL and MariaDB: one look at the waiter, then one script under the lock of its run, which
 * applies while everything is as it was seen; otherwise the long way.
 */
import {
  deliveredRow,
  heldByWave,
  type SignalDelivery,
  type SignalOutcome,
} from '../ports/turn_commits.ts'
import { isFailFastGroup } from '../../foundation/ids.ts'
import { IS_LIVE } from './checkpoints.ts'
import { deliverLocked, type Found, findWaiter } from './deliveries_locked.ts'
import { mysql } from '../../sql/dialect.ts'
import { positionsOpen, waiterStands } from './mysql_checks.ts'
import { columnsOf, puttingRows } from './row_writes.ts'
import { waitOf } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import { runScript, type Script } from './scripts.ts'
import type { Session } from '../../sql/session.ts'
import { bufferSignal, exactWaiter, REMOVE_WAITER } from './signals.ts'

export async function deliverOnMysql(
  session: Session,
  delivery: SignalDelivery
): Promise<SignalOutcome> {
  const { token, payload, buffer, urgent } = delivery
  const found = await findWaiter(session, token)
  if (!found) {
    if (buffer) await bufferSignal(session, token, payload)
    return { delivered: false, buffered: buffer }
  }
  if (!found.open) return deliverLocked(session, delivery)
  const outcome = await runScript(session, deliveryScript(found, delivery))
  if (!outcome.held || !outcome.applied) return deliverLocked(session, delivery)
  const { runId, seq } = found.waiter
  const wave = heldByWave(waitOf(outcome.row), found.waiter, urgent)
  return { delivered: true, runId, seq, ...(wave ? { wave } : {}) }
}

function deliveryScript({ waiter }: Found, { payload, nowMs, urgent }: SignalDelivery): Script {
  const runId = waiter.runId.toWellFormed()
  const through = urgent && isFailFastGroup(waiter.parallelGroup) ? 1 : 0
  return {
    hold: {
      held: { text: IS_LIVE, bindings: [] },
      answers: { wait_from: 'wait_from', wait_to: 'wait_to' },
      from: { text: `FROM ${T.runs} WHERE id = ? FOR UPDATE`, bindings: [runId] },
    },
    clear: [waiterStands(waiter), positionsOpen(runId, [{ row: { seq: waiter.seq } }])],
    writes: [
      { text: REMOVE_WAITER, bindings: exactWaiter(waiter) },
      ...puttingRows(mysql, columnsOf(runId, [{ row: deliveredRow(waiter, payload, nowMs) }])),
      {
        text: `UPDATE ${T.runs} SET wake_requested_at = ? WHERE id = ?
          AND (? = 1 OR NOT coalesce(? BETWEEN wait_from AND wait_to, 0))`,
        bindings: [nowMs, runId, through, waiter.seq],
      },
    ],
  }
}
