/*
 * What every state store does, as a table without a test runner. Cases of members that a store does not
 * have do not apply to it, but for those that the kit requires.
 */
import { AGGREGATE_CASES } from './state_store/aggregates.ts'
import { CHAIN_CASES } from './state_store/chains.ts'
import { CHECKPOINT_CASES } from './state_store/checkpoints.ts'
import { CHILD_CASES } from './state_store/children.ts'
import { CLAIM_CASES } from './state_store/claims.ts'
import { CONDITIONAL_RUN_CASES } from './state_store/conditional_runs.ts'
import { DELETE_CASES } from './state_store/deletes.ts'
import { DELIVERY_CASES } from './state_store/deliveries.ts'
import { FAN_CASES } from './state_store/fans.ts'
import { LEASE_CASES } from './state_store/leases.ts'
import { QUERY_CASES } from './state_store/queries.ts'
import { RACE_CASES } from './state_store/races.ts'
import { RUN_CASES } from './state_store/runs.ts'
import { SCAN_CASES } from './state_store/scans.ts'
import { SETTLE_CASES } from './state_store/settles.ts'
import { SIGNAL_CASES } from './state_store/signals.ts'
import { SINGLETON_CASES } from './state_store/singletons.ts'
import type { StoreCase } from './state_store/support.ts'
import { TURN_CLAIM_CASES } from './state_store/turn_claims.ts'
import { TURN_COMMIT_CASES } from './state_store/turn_commits.ts'
import { TURN_SETTLE_CASES } from './state_store/turn_settles.ts'
import { TURN_WAIT_CASES } from './state_store/turn_waits.ts'
import { VIEW_CASES } from './state_store/views.ts'
import { WAVE_CASES } from './state_store/waves.ts'

export type { StoreCase, StoreUnderTest } from './state_store/support.ts'

export const STATE_STORE_CASES: readonly StoreCase[] = [
  ...RUN_CASES,
  ...CONDITIONAL_RUN_CASES,
  ...CHECKPOINT_CASES,
  ...SETTLE_CASES,
  ...SCAN_CASES,
  ...LEASE_CASES,
  ...QUERY_CASES,
  ...AGGREGATE_CASES,
  ...DELETE_CASES,
  ...SIGNAL_CASES,
  ...FAN_CASES,
  ...SINGLETON_CASES,
  ...VIEW_CASES,
  ...TURN_COMMIT_CASES,
  ...TURN_WAIT_CASES,
  ...TURN_CLAIM_CASES,
  ...TURN_SETTLE_CASES,
  ...CHILD_CASES,
  ...CHAIN_CASES,
  ...DELIVERY_CASES,
  ...WAVE_CASES,
  ...CLAIM_CASES,
  ...RACE_CASES,
]
