/*
 * Role: transactions that user code takes part in. Optional; without it `ctx.transaction` throws.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'

/** The lease a write is made under. */
export interface LeaseFence {
  owner: string
  turn: number
}

export interface StoreTransaction {
  /** The store's native transaction handle; user writes go through it. */
  readonly raw: unknown
  /**
   * Writes a checkpoint inside the transaction. With `fence` it first locks the run row and throws
   * `LeaseLostError`, so that everything rolls back, unless the run is live and still under that lease
   * and turn. Throws `TransactionSpoiledError` when the database has given the transaction up.
   */
  saveCheckpoint(checkpoint: StepCheckpoint, fence?: LeaseFence): Promise<void>
}

export interface Transactions {
  /**
   * Commits `work`'s writes and its checkpoint together; rolls both back when it throws, and rejects with
   * what it threw. Where its connection was lost meanwhile it rejects with `StoreUnavailableError` instead:
   * that the work failed says nothing about the work.
   */
  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T>
}
