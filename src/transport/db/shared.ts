/*
 * What the sides of a `db` transport share: the way to the database, its clock, and the names it uses now.
 */
import type { Clock, Timers } from '../../foundation/clock.ts'
import type { Session } from '../../sql/session.ts'
import type { KeyNames } from '../../wire/names.ts'
import type { ConcurrencyController } from '../concurrency.ts'
import type { ConsumerGate } from '../consumer_gate.ts'
import type { TransportErrorHandler } from '../ports.ts'
import type { LaneOptions } from './claim_lane.ts'
import type { Nudges } from './nudges.ts'

export interface Tuning {
  pollIntervalMs: number
  idleBackoffMax: number
  leaseMs: number
  batchSize: number
  resultConcurrency: number
  maxStalledCount: number
  inboxTtlMs: number
  tenantSubscribersCacheMs: number
  inboxSweepIntervalMs: number
}

export interface Shared {
  session: Session
  nudges: Nudges
  instanceId: string
  tuning: Tuning
  concurrency: ConcurrencyController
  gate: ConsumerGate
  clock: Clock
  timers: Timers
  onError: TransportErrorHandler
  /** Of every row; `default` when none was given. */
  namespace(): string
  keyNames(): KeyNames
  /** Resolves once the tables are there; rejects with why they are not, and tries again next time. */
  ready(): Promise<void>
  readonly closed: boolean
}

/** How a lane of this transport takes its time. */
export const pace = ({
  instanceId,
  tuning,
  clock,
  timers,
  onError,
}: Shared): Pick<
  LaneOptions,
  'instanceId' | 'leaseMs' | 'pollIntervalMs' | 'clock' | 'timers' | 'onError'
> => ({
  instanceId,
  leaseMs: tuning.leaseMs,
  pollIntervalMs: tuning.pollIntervalMs,
  clock,
  timers,
  onError,
})
