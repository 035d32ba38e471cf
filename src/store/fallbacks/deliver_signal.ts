/*
 * Fallback of delivery: the waiter is taken first, which decides between deliverers; what it cannot finish
 * it puts back, so that a failed delivery keeps waiter and payload.
 */
import { bestEffort } from '../../foundation/failure.ts'
import { isSettledStatus, type SignalWaiter } from '../../types/checkpoint.ts'
import type { CheckpointKey } from '../../types/query.ts'
import { LIVE_RUN_STATUSES, isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { withoutInput } from '../ports/checkpoint_rules.ts'
import { storedNamespace } from '../ports/run_rules.ts'
import {
  deliveredRow,
  heldByWave,
  type SettleTarget,
  type SignalDelivery,
  type SignalOutcome,
} from '../ports/turn_commits.ts'
import type { CompleteRoles } from './complete_roles.ts'

export async function deliverSignal(
  store: CompleteRoles,
  { token, payload, nowMs, buffer, urgent }: SignalDelivery
): Promise<SignalOutcome> {
  for (;;) {
    const waiter = await store.takeSignalWaiter(token)
    if (!waiter) break
    const outcome = await complete(store, waiter, { payload, nowMs, urgent })
    if (outcome) return outcome
  }
  if (buffer) await store.bufferSignal(token, payload)
  return { delivered: false, buffered: buffer }
}

export async function pairSignal(
  store: CompleteRoles,
  token: string,
  nowMs: number
): Promise<SignalOutcome> {
  if (!(await store.hasSignalWaiter(token))) return { delivered: false, buffered: false }
  const taken = await store.takeBufferedSignal(token)
  if (!taken) return { delivered: false, buffered: false }
  let outcome: SignalOutcome
  try {
    outcome = await deliverSignal(store, { token, payload: taken.payload, nowMs, buffer: false })
  } catch (error) {
    await bestEffort(
      'the store is failing; the payload may be lost with it',
      store.bufferSignal(token, taken.payload)
    )
    throw error
  }
  if (!outcome.delivered) await store.bufferSignal(token, taken.payload)
  return outcome
}

export async function settleTargets(
  store: CompleteRoles,
  keys: CheckpointKey[]
): Promise<SettleTarget[]> {
  const rows = await store.getCheckpointsForSettle(keys)
  const targets: SettleTarget[] = []
  for (const runId of new Set(rows.map((row) => row.runId))) {
    const run = await store.getRun(runId)
    if (!run) continue
    for (const row of rows.filter((each) => each.runId === runId)) {
      targets.push({
        checkpoint: withoutInput(row),
        runStatus: run.status,
        workflow: run.workflow,
        workflowVersion: run.workflowVersion,
        namespace: storedNamespace(run.namespace),
        ...(run.waitSeqs ? { waitSeqs: run.waitSeqs } : {}),
      })
    }
  }
  return targets
}

/** Completes the position of a waiter already taken; undefined when its run or its wait is over. */
async function complete(
  store: CompleteRoles,
  waiter: SignalWaiter,
  { payload, nowMs, urgent }: Pick<SignalDelivery, 'payload' | 'nowMs' | 'urgent'>
): Promise<SignalOutcome | undefined> {
  const { runId, seq } = waiter
  let run: WorkflowRun | null
  try {
    run = await store.getRun(runId)
    if (!run || isTerminalStatus(run.status)) return undefined
    const stored = await store.getCheckpoint(waiter.runId, waiter.seq)
    if (stored && isSettledStatus(stored.status)) return undefined
    await store.saveCheckpoint(deliveredRow(waiter, payload, nowMs))
  } catch (error) {
    await bestEffort(
      'the store is failing; a replay registers the waiter again',
      store.putSignalWaiter(waiter)
    )
    throw error
  }
  const wave = heldByWave(run.waitSeqs, waiter, urgent)
  if (wave) return { delivered: true, runId, seq, wave }
  await store.updateRunIf(runId, [...LIVE_RUN_STATUSES], { wakeRequestedAt: nowMs })
  return { delivered: true, runId, seq }
}
