/*
 * Why a run is where it is, as this engine would treat it: its windows, its flow-control queues.
 */
import { explainRun } from '../../insight/explain_run.ts'
import type { StepQueues } from '../../flow/step_queues.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { RunExplanation } from '../../types/explanation.ts'
import type { EngineConfig } from '../deps.ts'

export function explained(
  { store, queues }: { store: FullStore; queues: StepQueues },
  { clock, stalledAfterMs, maxRecoveryAttempts, turns }: EngineConfig,
  runId: string
): Promise<RunExplanation | null> {
  const { reconcileMs, remoteRedispatchMs } = turns
  const windows = { reconcileMs, remoteRedispatchMs, stalledAfterMs, maxRecoveryAttempts }
  const slotsOf = (id: string) => queues.waitsOf(id)
  return explainRun({ store, windows, nowMs: clock(), slotsOf }, runId)
}
