/*
 * The roles of the Lucid store that know no namespace: checkpoints, commits, signals, events, schedules.
 * One line each into the family of statements.
 */
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type {
  CheckpointKey,
  CheckpointQuery,
  CheckpointRange,
  CheckpointStats,
} from '../../types/query.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import type {
  SettleTarget,
  SignalDelivery,
  SignalOutcome,
  TurnCommit,
  TurnVerdict,
} from '../ports/turn_commits.ts'
import * as aggregates from './aggregates.ts'
import * as checkpoints from './checkpoints.ts'
import * as deliveries from './deliveries.ts'
import * as fans from './fans.ts'
import * as folds from './folds.ts'
import * as schedules from './schedules.ts'
import type { Session } from '../../sql/session.ts'
import * as settles from './settles.ts'
import * as signals from './signals.ts'
import { commitTurn } from './turn_commit.ts'

export class LucidRows {
  /** Shared by every view of one store. */
  protected session: Session

  constructor(session: Session) {
    this.session = session
  }

  // Checkpoints

  saveCheckpoint(checkpoint: StepCheckpoint): Promise<void> {
    return checkpoints.saveCheckpoint(this.session, checkpoint)
  }

  getCheckpoint(runId: string, seq: number): Promise<StepCheckpoint | null> {
    return checkpoints.getCheckpoint(this.session, runId, seq)
  }

  listCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpoints(this.session, runId)
  }

  listCheckpointsForReplay(runId: string): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsForReplay(this.session, runId)
  }

  listCheckpointsAt(runId: string, seqs: number[], fromSeq: number): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsAt(this.session, runId, seqs, fromSeq)
  }

  getCheckpoints(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return checkpoints.getCheckpoints(this.session, keys)
  }

  getCheckpointsForSettle(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return checkpoints.getCheckpointsForSettle(this.session, keys)
  }

  compactCheckpoints(
    runId: string,
    range: { fromSeq: number; toSeq: number },
    folded: StepCheckpoint
  ): Promise<boolean> {
    return folds.compactCheckpoints(this.session, runId, range, folded)
  }

  registerChildWaits(waits: { waiter: SignalWaiter; checkpoint: StepCheckpoint }[]): Promise<void> {
    return fans.registerChildWaits(this.session, waits)
  }

  hasCheckpoints(runId: string, range: CheckpointRange): Promise<boolean> {
    return checkpoints.hasCheckpoints(this.session, runId, range)
  }

  countCheckpoints(runId: string, range: CheckpointRange): Promise<number> {
    return checkpoints.countCheckpoints(this.session, runId, range)
  }

  getLatestCheckpointByName(runId: string, name: string): Promise<StepCheckpoint | undefined> {
    return checkpoints.getLatestCheckpointByName(this.session, runId, name)
  }

  listCheckpointsByNamePrefix(runId: string, prefixes: string[]): Promise<StepCheckpoint[]> {
    return checkpoints.listCheckpointsByNamePrefix(this.session, runId, prefixes)
  }

  checkpointStats(runId: string): Promise<CheckpointStats> {
    return aggregates.checkpointStats(this.session, runId)
  }

  queryCheckpoints(runId: string, query: CheckpointQuery): Promise<StepCheckpoint[]> {
    return aggregates.queryCheckpoints(this.session, runId, query)
  }

  recordStepHeartbeat(runId: string, seq: number, at: Date, progress?: unknown): Promise<void> {
    return checkpoints.recordStepHeartbeat(this.session, runId, seq, at, progress)
  }

  // Settles and commits

  saveCheckpointIfPending(checkpoint: StepCheckpoint): Promise<boolean> {
    return settles.saveCheckpointIfPending(this.session, checkpoint)
  }

  saveCheckpointsIfPending(list: StepCheckpoint[]): Promise<boolean[]> {
    return settles.saveCheckpointsIfPending(this.session, list)
  }

  settleCheckpointsIfPending(settlements: CheckpointSettlement[]): Promise<boolean[]> {
    return settles.settleCheckpointsIfPending(this.session, settlements)
  }

  settleTargets(keys: CheckpointKey[]): Promise<SettleTarget[]> {
    return settles.settleTargets(this.session, keys)
  }

  commitTurn(commit: TurnCommit): Promise<TurnVerdict> {
    return commitTurn(this.session, commit)
  }

  // Signals and events

  deliverSignal(delivery: SignalDelivery): Promise<SignalOutcome> {
    return deliveries.deliverSignal(this.session, delivery)
  }

  pairSignal(token: string, nowMs: number): Promise<SignalOutcome> {
    return deliveries.pairSignal(this.session, token, nowMs)
  }

  putSignalWaiter(waiter: SignalWaiter): Promise<void> {
    return signals.putSignalWaiter(this.session, waiter)
  }

  takeSignalWaiter(token: string): Promise<SignalWaiter | null> {
    return signals.takeSignalWaiter(this.session, token)
  }

  listSignalWaiters(prefix: string): Promise<SignalWaiter[]> {
    return signals.listSignalWaiters(this.session, prefix)
  }

  async removeSignalWaiter(waiter: SignalWaiter): Promise<void> {
    await signals.removeSignalWaiter(this.session, waiter)
  }

  hasSignalWaiter(token: string): Promise<boolean> {
    return signals.hasSignalWaiter(this.session, token)
  }

  listSignalWaitersByRunIds(runIds: string[]): Promise<SignalWaiter[]> {
    return signals.listSignalWaitersByRunIds(this.session, runIds)
  }

  bufferSignal(token: string, payload: unknown): Promise<void> {
    return signals.bufferSignal(this.session, token, payload)
  }

  takeBufferedSignal(token: string): Promise<{ payload: unknown } | null> {
    return signals.takeBufferedSignal(this.session, token)
  }

  listBufferedTokens(prefixes: string[]): Promise<string[]> {
    return signals.listBufferedTokens(this.session, prefixes)
  }

  dropBufferedSignals(tokens: string[]): Promise<void> {
    return signals.dropBufferedSignals(this.session, tokens)
  }

  bufferEvent(event: BufferedEvent & { name: string }): Promise<void> {
    return signals.bufferEvent(this.session, event)
  }

  listBufferedEvents(name: string, limit: number): Promise<BufferedEvent[]> {
    return signals.listBufferedEvents(this.session, name, limit)
  }

  removeBufferedEvent(id: string): Promise<boolean> {
    return signals.removeBufferedEvent(this.session, id)
  }

  pruneBufferedEvents(publishedBefore: number, limit?: number): Promise<number> {
    return signals.pruneBufferedEvents(this.session, publishedBefore, limit)
  }

  // Schedules

  createSchedule(record: ScheduleRecord): Promise<boolean> {
    return schedules.createSchedule(this.session, record)
  }

  updateSchedule(
    id: string,
    patch: Partial<Omit<ScheduleRecord, 'id' | 'createdAt'>>
  ): Promise<boolean> {
    return schedules.updateSchedule(this.session, id, patch)
  }

  getSchedule(id: string): Promise<ScheduleRecord | null> {
    return schedules.getSchedule(this.session, id)
  }

  listSchedules(query: { paused?: boolean } = {}): Promise<ScheduleRecord[]> {
    return schedules.listSchedules(this.session, query)
  }

  deleteSchedule(id: string): Promise<boolean> {
    return schedules.deleteSchedule(this.session, id)
  }
}
