/*
 * The port to durable state: required roles and optional ones. A store without an optional member is
 * complete; `full_store.ts` is the only place that asks what is there.
 * Writing one: docs/stores/custom.md.
 */
import type { Aggregates } from './ports/aggregates.ts'
import type { CheckpointRows } from './ports/checkpoints.ts'
import type { DueWork } from './ports/due_work.ts'
import type { EventBuffer } from './ports/events.ts'
import type { FanRows } from './ports/fan_rows.ts'
import type { Housekeeping } from './ports/housekeeping.ts'
import type { Leases } from './ports/leases.ts'
import type { PendingSettles } from './ports/pending_settles.ts'
import type { ReplayReads } from './ports/replay_reads.ts'
import type { RunClaims } from './ports/run_claims.ts'
import type { RunRows } from './ports/runs.ts'
import type { ScheduleRows } from './ports/schedule_rows.ts'
import type { SchemaOwner } from './ports/schema_owner.ts'
import type { SignalRows } from './ports/signals.ts'
import type { SingletonClaims } from './ports/singleton_claims.ts'
import type { Transactions } from './ports/transactions.ts'
import type { TurnCommits } from './ports/turn_commits.ts'
import type { WakeHints } from './ports/wake_hints.ts'

/** What every store has. */
export interface RequiredRoles
  extends RunRows, CheckpointRows, Leases, DueWork, SignalRows, EventBuffer {}

/** What a store may have; each member by itself. */
export interface OptionalRoles
  extends
    SchemaOwner,
    Transactions,
    PendingSettles,
    ReplayReads,
    FanRows,
    Aggregates,
    Housekeeping,
    SingletonClaims,
    ScheduleRows,
    TurnCommits,
    RunClaims,
    WakeHints {
  /** A view whose run reads see one namespace; `{}` is unrestricted. Writes are unaffected. */
  withScope(scope: { namespace?: string }): StateStore
}

export interface StateStore extends RequiredRoles, Partial<OptionalRoles> {}
