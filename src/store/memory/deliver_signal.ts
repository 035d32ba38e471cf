/*
 * Delivery of a payload and the deliverer's second look. Waiter, row and wake request change together, so
 * that neither a payload nor a waiter is ever only in a deliverer's memory (invariants 2, 5).
 */
import { isSettledStatus, type SignalWaiter } from '../../types/checkpoint.ts'
import { isTerminalStatus } from '../../types/run.ts'
import {
  deliveredRow,
  heldByWave,
  type SettleTarget,
  type SignalDelivery,
  type SignalOutcome,
} from '../ports/turn_commits.ts'
import type { CheckpointKey } from '../../types/query.ts'
import { decodeWithoutInput } from './checkpoint_table.ts'
import { assertStorable } from './columns.ts'
import { decodeRun } from './run_table.ts'
import type { Tables } from './tables.ts'

export function deliverSignal(tables: Tables, delivery: SignalDelivery): SignalOutcome {
  assertStorable(delivery.payload, 'payload')
  const waiter = tables.signals.take(delivery.token)
  if (waiter && isOpen(tables, waiter)) {
    return complete(tables, waiter, delivery)
  }
  if (delivery.buffer) tables.signals.buffer(delivery.token, delivery.payload)
  return { delivered: false, buffered: delivery.buffer }
}

export function pairSignal(tables: Tables, token: string, nowMs: number): SignalOutcome {
  const waiter = tables.signals.waiter(token)
  if (!waiter || !tables.signals.hasBuffered(token)) return { delivered: false, buffered: false }
  tables.signals.remove(waiter)
  if (!isOpen(tables, waiter)) return { delivered: false, buffered: false }
  const { payload } = tables.signals.takeBuffered(token)!
  return complete(tables, waiter, { payload, nowMs })
}

/** The rows a batch of results settles, with what is needed of their runs. */
export function settleTargets(tables: Tables, keys: CheckpointKey[]): SettleTarget[] {
  const targets = new Map<string, SettleTarget>()
  for (const { runId, seq } of keys) {
    const row = tables.checkpoints.get(runId, seq)
    const stored = row && tables.runs.get(runId)
    if (!row || !stored) continue
    const run = decodeRun(stored)
    targets.set(`${seq}:${runId}`, {
      checkpoint: decodeWithoutInput(row),
      runStatus: run.status,
      workflow: run.workflow,
      workflowVersion: run.workflowVersion,
      namespace: stored.namespace,
      ...(run.waitSeqs ? { waitSeqs: run.waitSeqs } : {}),
    })
  }
  return [...targets.values()]
}

/** True while the run lives and the position has no outcome. */
function isOpen(tables: Tables, waiter: SignalWaiter): boolean {
  const run = tables.runs.get(waiter.runId)
  if (!run || isTerminalStatus(run.status)) return false
  const row = tables.checkpoints.get(waiter.runId, waiter.seq)
  return !row || !isSettledStatus(row.status)
}

function complete(
  tables: Tables,
  waiter: SignalWaiter,
  { payload, nowMs, urgent }: Pick<SignalDelivery, 'payload' | 'nowMs' | 'urgent'>
): SignalOutcome {
  tables.checkpoints.write(deliveredRow(waiter, payload, nowMs))
  const { runId, seq } = waiter
  const wave = heldByWave(tables.runs.read(runId)?.waitSeqs, waiter, urgent)
  if (wave) return { delivered: true, runId, seq, wave }
  tables.runs.patch(runId, { wakeRequestedAt: nowMs })
  return { delivered: true, runId, seq }
}
