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

/**
 * User code swallowed an error of the database after which the transaction can only be undone. It was:
 * nothing of it was written.
 */
export class TransactionSpoiledError extends DurableError {
  static override readonly code: string = 'transaction_spoiled'

  constructor(cause: unknown) {
    super(
      'the transaction was undone by the database: a statement in it failed, and its error was caught. ' +
        'Let such an error out, or use a savepoint for what may fail.',
      { cause }
    )
  }
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
  /** Commits `work`'s writes and its checkpoint together; rolls both back when it throws. */
  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T>
}
