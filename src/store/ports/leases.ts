/*
 * Role: leases. Required of every store. Time always comes from the caller.
 */
export interface Leases {
  /** Takes a free or expired (`lockedUntil <= nowMs`) lease; a live one refuses everybody. */
  tryLockRun(runId: string, owner: string, leaseUntilMs: number, nowMs: number): Promise<boolean>
  /** Extends a lease this owner still holds; false means that it is lost. */
  renewRunLock(runId: string, owner: string, leaseUntilMs: number): Promise<boolean>
  /** Frees the lease if `owner` still holds it; without `owner`, whoever holds it. */
  releaseRunLock(runId: string, owner?: string): Promise<void>
}
