/*
 * Role: taking a run for a turn. Ours, optional. A claim is the lease, the flip to `running`, the turn
 * count and the read of the row in one act.
 */
import type { RunStatus, WorkflowRun } from '../../types/run.ts'

export interface RunClaim {
  runId: string
  owner: string
  leaseUntilMs: number
  nowMs: number
  /** Statuses it may be taken from: pending, suspended, blocked; `failed` for an explicit resume. */
  from: RunStatus[]
  /** Only a run of this namespace. */
  namespace?: string
}

/** A claimed run as it is now, and what it was. */
export interface ClaimedRun {
  /**
   * `running`, leased, `turns` counted up, `claimedAt` and `updatedAt` set, wake request and awaited
   * range cleared.
   */
  run: WorkflowRun
  previousStatus: RunStatus
  /** Turn count before the claim; undefined for a run that never began. */
  previousTurns: number | undefined
  /** The claim stands, but payloads of the run cannot be read here and are absent: give it back. */
  unreadable?: Error
}

export interface DueClaim {
  /**
   * `pending`: pending runs, oldest first by `(createdAt, id)`. `due`: suspended runs with
   * `wakeAt <= nowMs` or a wake request, and blocked ones with `wakeAt <= nowMs`, most overdue first.
   */
  kind: 'pending' | 'due'
  owner: string
  leaseUntilMs: number
  nowMs: number
  namespace?: string
  limit: number
  /** Runs to leave alone: this process cannot run them. */
  exclude?: string[]
}

export interface RunClaims {
  /** Null when the run is gone, in another status, or leased (`lockedUntil > nowMs`). */
  claimRun(claim: RunClaim): Promise<ClaimedRun | null>
  /** As `claimRun` for up to `limit` runs, skipping those another claimer holds; in the kind's order. */
  claimDueRuns(claim: DueClaim): Promise<ClaimedRun[]>
}
