/*
 * Role: conditional checkpoint writes. Optional; the fallback reads before it writes.
 */
import type { StepError } from '../../foundation/failure.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { CheckpointKey } from '../../types/query.ts'
import type { StepEvent } from '../../types/step.ts'

/** The columns a result writes; whatever it does not carry stays as stored. */
export interface CheckpointSettlement {
  runId: string
  seq: number
  status: 'completed' | 'failed'
  finishedAt: Date
  output?: unknown
  error?: StepError
  events?: StepEvent[]
  startedAt?: Date
  /** null clears; absent keeps. */
  wakeAt?: null
  /** Only while the row has no more attempts than that: a later one is not its to end. */
  upToAttempt?: number
}

export interface PendingSettles {
  /** Replaces the whole row only while it is `pending`; never inserts. */
  saveCheckpointIfPending(checkpoint: StepCheckpoint): Promise<boolean>
  /** The same for many, one verdict per entry in input order; of two with one key the first wins. */
  saveCheckpointsIfPending(checkpoints: StepCheckpoint[]): Promise<boolean[]>
  /** Settles `pending` rows; same verdict rules. */
  settleCheckpointsIfPending(settlements: CheckpointSettlement[]): Promise<boolean[]>
  /** The rows at these keys, each without its input; missing ones are absent, order unspecified. */
  getCheckpointsForSettle(keys: CheckpointKey[]): Promise<StepCheckpoint[]>
}
