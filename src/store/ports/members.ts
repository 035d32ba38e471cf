/*
 * The members of the port as data, for whoever has to treat all of them alike: completing a store, wrapping
 * it, stripping it. A new member does not compile until it is listed here.
 */
import type { OptionalRoles, RequiredRoles } from '../state_store.ts'

export type RequiredMember = keyof RequiredRoles
export type OptionalMember = keyof OptionalRoles

const REQUIRED: Record<RequiredMember, true> = {
  createRun: true,
  updateRun: true,
  updateRunIf: true,
  getRun: true,
  deleteRun: true,
  listRuns: true,
  saveCheckpoint: true,
  getCheckpoint: true,
  listCheckpoints: true,
  listIncompleteRuns: true,
  listPendingRuns: true,
  listDueTimers: true,
  tryLockRun: true,
  renewRunLock: true,
  releaseRunLock: true,
  putSignalWaiter: true,
  takeSignalWaiter: true,
  listSignalWaiters: true,
  removeSignalWaiter: true,
  bufferSignal: true,
  takeBufferedSignal: true,
  bufferEvent: true,
  listBufferedEvents: true,
  removeBufferedEvent: true,
}

const OPTIONAL: Record<OptionalMember, true> = {
  ensureSchema: true,
  close: true,
  transaction: true,
  saveCheckpointIfPending: true,
  saveCheckpointsIfPending: true,
  settleCheckpointsIfPending: true,
  getCheckpointsForSettle: true,
  listCheckpointsForReplay: true,
  listCheckpointsAt: true,
  getCheckpoints: true,
  getRuns: true,
  hasCheckpoints: true,
  countCheckpoints: true,
  getLatestCheckpointByName: true,
  listCheckpointsByNamePrefix: true,
  registerChildWaits: true,
  compactCheckpoints: true,
  hasSignalWaiter: true,
  listSignalWaitersByRunIds: true,
  countRuns: true,
  runFacets: true,
  runValueFacets: true,
  checkpointStats: true,
  queryCheckpoints: true,
  deleteRuns: true,
  deleteRunsIf: true,
  listBufferedTokens: true,
  dropBufferedSignals: true,
  pruneBufferedEvents: true,
  listOrphanedRuns: true,
  listUnfinishedCancels: true,
  listOverdueRuns: true,
  recordStepHeartbeat: true,
  tryAdmitSingleton: true,
  createSchedule: true,
  updateSchedule: true,
  getSchedule: true,
  listSchedules: true,
  deleteSchedule: true,
  commitTurn: true,
  deliverSignal: true,
  pairSignal: true,
  settleTargets: true,
  claimRun: true,
  claimDueRuns: true,
  notifyWake: true,
  onWake: true,
  withScope: true,
}

export const REQUIRED_MEMBERS = Object.keys(REQUIRED) as RequiredMember[]
export const OPTIONAL_MEMBERS = Object.keys(OPTIONAL) as OptionalMember[]

/** The members of persisted schedules: a store has all five or none. */
export const SCHEDULE_MEMBERS = [
  'createSchedule',
  'updateSchedule',
  'getSchedule',
  'listSchedules',
  'deleteSchedule',
] as const satisfies OptionalMember[]
