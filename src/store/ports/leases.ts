/*
 * Role: leases. Required of every store. Time always comes from the caller.
 */
import type { RunStatus } from '../../types/run.ts'

export interface Leases {
  /**
   * Takes a free or expired (`lockedUntil <= nowMs`) lease; a live one refuses everybody. With `from`, only
   * of a run in one of these statuses. A store may ignore `from`: whoever asks looks at the run afterwards,
   * and all that is lost is that a taker who dies in between leaves its lease on a run that is over.
   */
  tryLockRun(
    runId: string,
    owner: string,
    leaseUntilMs: number,
    nowMs: number,
    from?: RunStatus[]
  ): Promise<boolean>
  /** Extends a lease this owner still holds; false means that it is lost. */
  renewRunLock(runId: string, owner: string, leaseUntilMs: number): Promise<boolean>
  /** Frees the lease if `owner` still holds it; without `owner`, whoever holds it. */
  releaseRunLock(runId: string, owner?: string): Promise<void>
}
