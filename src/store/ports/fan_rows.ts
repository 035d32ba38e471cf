/*
 * Role: fans and their waiters. Optional.
 */
import type { SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'

export interface FanRows {
  /** One transaction: each waiter and its placeholder; a settled position is left alone. */
  registerChildWaits(waits: { waiter: SignalWaiter; checkpoint: StepCheckpoint }[]): Promise<void>
  /** Replaces a fully settled range by one row inside it; false, nothing changed, if any is open. */
  compactCheckpoints(
    runId: string,
    range: { fromSeq: number; toSeq: number },
    folded: StepCheckpoint
  ): Promise<boolean>
  hasSignalWaiter(token: string): Promise<boolean>
  listSignalWaitersByRunIds(runIds: string[]): Promise<SignalWaiter[]>
}
