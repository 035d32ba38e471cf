/*
 * Role: transactions that user code takes part in. Optional; without it `ctx.transaction` throws.
 */
import { DurableError } from '../../foundation/failure.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'

/** The lease a write is made under. */
export interface LeaseFence {
  owner: string
  turn: number
}

/** A write under a lease that is gone: another turn holds the run, or it ended. Nothing was written. */
export class LeaseLostError extends DurableError {
  static override readonly code: string = 'lease_lost'

  constructor(
    readonly runId: string,
    readonly owner: string
  ) {
    super(`run ${runId} is no longer held by ${owner}: nothing was written`)
  }
}

export interface StoreTransaction {
  /** The store's native transaction handle; user writes go through it. */
  readonly raw: unknown
  /**
   * Writes a checkpoint inside the transaction. With `fence` it first locks the run row and throws
   * `LeaseLostError`, so that everything rolls back, unless the run is live and still under that lease
   * and turn.
   */
  saveCheckpoint(checkpoint: StepCheckpoint, fence?: LeaseFence): Promise<void>
}

export interface Transactions {
  /** Commits `work`'s writes and its checkpoint together; rolls both back when it throws. */
  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T>
}
