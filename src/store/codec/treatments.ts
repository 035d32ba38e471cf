/*
 * Every member of the port and how it is treated: when the wrapper has it, and where its arguments and its
 * answer hold payloads. A new member does not compile until it is listed here.
 */
import type { OptionalMember, RequiredMember } from '../ports/members.ts'
import {
  BUFFERED_SIGNAL,
  CHECKPOINT,
  CHILD_WAIT,
  CLAIMED,
  COMMIT,
  DELIVERY,
  EVENT,
  list,
  RUN,
  SCHEDULE,
  SETTLEMENT,
  type Shape,
  TARGET,
  VERDICT,
} from './shapes.ts'

export interface Treatment {
  /** `stand-in`: there is one where the inner store lacks the member. `inner`: there only when it has it. */
  presence: 'required' | 'inner' | 'stand-in'
  /** By place; what is not listed is clear. */
  args?: Shape[]
  answer?: Shape
  /**
   * Needs more than a conversion. `work`: what is due is answered although its payloads cannot be read, so
   * that one run never hides the others; whoever takes it is told. `claim`: likewise, and says so itself.
   * `take`: what was taken and cannot be read is put back.
   */
  special?: 'work' | 'claim' | 'take' | 'transaction' | 'scope'
}

const CLEAR = 'clear'
const RUNS = list(RUN)
const CHECKPOINTS = list(CHECKPOINT)

const required = (more: Partial<Treatment> = {}): Treatment => ({ presence: 'required', ...more })
const inner = (more: Partial<Treatment> = {}): Treatment => ({ presence: 'inner', ...more })
const always = (more: Partial<Treatment> = {}): Treatment => ({ presence: 'stand-in', ...more })

export const TREATMENTS: Record<RequiredMember | OptionalMember, Treatment> = {
  createRun: required({ args: [RUN] }),
  updateRun: required({ args: [CLEAR, RUN] }),
  updateRunIf: required({ args: [CLEAR, CLEAR, RUN] }),
  getRun: required({ answer: RUN }),
  deleteRun: required(),
  listRuns: required({ answer: RUNS }),
  saveCheckpoint: required({ args: [CHECKPOINT] }),
  getCheckpoint: required({ answer: CHECKPOINT }),
  listCheckpoints: required({ answer: CHECKPOINTS }),
  listIncompleteRuns: required({ answer: RUNS, special: 'work' }),
  listPendingRuns: required({ answer: RUNS, special: 'work' }),
  listDueTimers: required({ answer: RUNS, special: 'work' }),
  tryLockRun: required(),
  renewRunLock: required(),
  releaseRunLock: required(),
  putSignalWaiter: required(),
  takeSignalWaiter: required(),
  listSignalWaiters: required(),
  removeSignalWaiter: required(),
  bufferSignal: required({ args: [CLEAR, 'payload'] }),
  takeBufferedSignal: required({ answer: BUFFERED_SIGNAL, special: 'take' }),
  bufferEvent: required({ args: [EVENT] }),
  listBufferedEvents: required({ answer: list(EVENT) }),
  removeBufferedEvent: required(),

  ensureSchema: always(),
  close: always(),
  transaction: always({ special: 'transaction' }),
  saveCheckpointIfPending: inner({ args: [CHECKPOINT] }),
  saveCheckpointsIfPending: inner({ args: [CHECKPOINTS] }),
  settleCheckpointsIfPending: inner({ args: [list(SETTLEMENT)] }),
  getCheckpointsForSettle: inner({ answer: CHECKPOINTS }),
  listCheckpointsForReplay: inner({ answer: CHECKPOINTS }),
  listCheckpointsAt: inner({ answer: CHECKPOINTS }),
  getCheckpoints: inner({ answer: CHECKPOINTS }),
  getRuns: inner({ answer: RUNS }),
  hasCheckpoints: inner(),
  countCheckpoints: inner(),
  getLatestCheckpointByName: always({ answer: CHECKPOINT }),
  listCheckpointsByNamePrefix: always({ answer: CHECKPOINTS }),
  registerChildWaits: inner({ args: [list(CHILD_WAIT)] }),
  compactCheckpoints: inner({ args: [CLEAR, CLEAR, CHECKPOINT] }),
  hasSignalWaiter: inner(),
  listSignalWaitersByRunIds: always(),
  countRuns: always(),
  runFacets: inner(),
  runValueFacets: always(),
  checkpointStats: inner(),
  queryCheckpoints: inner({ answer: CHECKPOINTS }),
  deleteRuns: inner(),
  deleteRunsIf: inner(),
  listBufferedTokens: inner(),
  dropBufferedSignals: inner(),
  pruneBufferedEvents: inner(),
  listOrphanedRuns: always({ answer: RUNS, special: 'work' }),
  listUnfinishedCancels: inner({ answer: RUNS, special: 'work' }),
  listOverdueRuns: inner({ answer: RUNS, special: 'work' }),
  recordStepHeartbeat: always({ args: [CLEAR, CLEAR, CLEAR, 'extended'] }),
  tryAdmitSingleton: inner(),
  createSchedule: inner({ args: [SCHEDULE] }),
  updateSchedule: inner({ args: [CLEAR, SCHEDULE] }),
  getSchedule: inner({ answer: SCHEDULE }),
  listSchedules: inner({ answer: list(SCHEDULE) }),
  deleteSchedule: inner(),
  commitTurn: inner({ args: [COMMIT], answer: VERDICT }),
  deliverSignal: inner({ args: [DELIVERY] }),
  pairSignal: inner(),
  settleTargets: inner({ answer: list(TARGET) }),
  claimRun: inner({ answer: CLAIMED, special: 'claim' }),
  claimDueRuns: inner({ answer: list(CLAIMED), special: 'claim' }),
  notifyWake: inner(),
  onWake: inner(),
  withScope: inner({ special: 'scope' }),
}
