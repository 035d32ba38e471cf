/*
 * The roles of the in-memory store that know no namespace: checkpoints, signals, events, schedules, hints.
 * One line each into the tables.
 */
import { isolate } from '../../foundation/failure.ts'
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type {
  CheckpointKey,
  CheckpointQuery,
  CheckpointRange,
  CheckpointStats,
} from '../../types/query.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'
import { aggregateRows, firstOfEachKey, hasPrefix, selectRows } from '../ports/checkpoint_rules.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import type { SignalDelivery, SignalOutcome } from '../ports/turn_commits.ts'
import type { WakeHint } from '../ports/wake_hints.ts'
import {
  decodeCheckpoint,
  decodeForReplay,
  decodeWithoutInput,
  storedTimes,
} from './checkpoint_table.ts'
import { assertStorable } from './columns.ts'
import { deliverSignal, pairSignal } from './deliver_signal.ts'
import { registerChildWaits } from './fans.ts'
import { Tables } from './tables.ts'

export class MemoryRows {
  /** Shared by every view of one store. */
  protected tables = new Tables()

  // Checkpoints

  async saveCheckpoint(checkpoint: StepCheckpoint): Promise<void> {
    this.tables.checkpoints.save(checkpoint)
  }

  async getCheckpoint(runId: string, seq: number): Promise<StepCheckpoint | null> {
    const row = this.tables.checkpoints.get(runId, seq)
    return row ? decodeCheckpoint(row) : null
  }

  async listCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints.list(runId).map(decodeCheckpoint)
  }

  async listCheckpointsForReplay(runId: string): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints.list(runId).map(decodeForReplay)
  }

  async listCheckpointsAt(
    runId: string,
    seqs: number[],
    fromSeq: number
  ): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints.at(runId, seqs, fromSeq).map(decodeForReplay)
  }

  async getCheckpoints(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints.several(keys).map(decodeCheckpoint)
  }

  async getCheckpointsForSettle(keys: CheckpointKey[]): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints.several(keys).map(decodeWithoutInput)
  }

  async hasCheckpoints(runId: string, range: CheckpointRange): Promise<boolean> {
    return this.tables.checkpoints.hasOne(runId, range)
  }

  async countCheckpoints(runId: string, range: CheckpointRange): Promise<number> {
    return this.tables.checkpoints.range(runId, range).length
  }

  async getLatestCheckpointByName(
    runId: string,
    name: string
  ): Promise<StepCheckpoint | undefined> {
    const row = this.tables.checkpoints.list(runId).findLast((each) => each.name === name)
    return row && decodeCheckpoint(row)
  }

  async listCheckpointsByNamePrefix(runId: string, prefixes: string[]): Promise<StepCheckpoint[]> {
    return this.tables.checkpoints
      .list(runId)
      .filter((row) => hasPrefix(row.name, prefixes))
      .map(decodeCheckpoint)
  }

  async saveCheckpointIfPending(checkpoint: StepCheckpoint): Promise<boolean> {
    return this.tables.checkpoints.saveIfPending(checkpoint)
  }

  async saveCheckpointsIfPending(checkpoints: StepCheckpoint[]): Promise<boolean[]> {
    assertStorable(checkpoints, 'checkpoints')
    const first = firstOfEachKey(checkpoints)
    return checkpoints.map((row, i) => first[i] && this.tables.checkpoints.saveIfPending(row))
  }

  async settleCheckpointsIfPending(settlements: CheckpointSettlement[]): Promise<boolean[]> {
    assertStorable(settlements, 'settlements')
    return settlements.map((settlement) => this.tables.checkpoints.settleIfPending(settlement))
  }

  async recordStepHeartbeat(
    runId: string,
    seq: number,
    at: Date,
    progress?: unknown
  ): Promise<void> {
    this.tables.checkpoints.beat(runId, seq, at, progress)
  }

  async checkpointStats(runId: string): Promise<CheckpointStats> {
    return aggregateRows(this.tables.checkpoints.list(runId).map(storedTimes))
  }

  async queryCheckpoints(runId: string, query: CheckpointQuery): Promise<StepCheckpoint[]> {
    return selectRows(this.tables.checkpoints.list(runId), query).map(decodeCheckpoint)
  }

  async registerChildWaits(
    waits: { waiter: SignalWaiter; checkpoint: StepCheckpoint }[]
  ): Promise<void> {
    registerChildWaits(this.tables, waits)
  }

  async compactCheckpoints(
    runId: string,
    range: { fromSeq: number; toSeq: number },
    folded: StepCheckpoint
  ): Promise<boolean> {
    return this.tables.checkpoints.compact(runId, range.fromSeq, range.toSeq, folded)
  }

  // Signals and events

  async deliverSignal(delivery: SignalDelivery): Promise<SignalOutcome> {
    return deliverSignal(this.tables, delivery)
  }

  async pairSignal(token: string, nowMs: number): Promise<SignalOutcome> {
    return pairSignal(this.tables, token, nowMs)
  }

  async putSignalWaiter(waiter: SignalWaiter): Promise<void> {
    this.tables.signals.put(waiter)
  }

  async takeSignalWaiter(token: string): Promise<SignalWaiter | null> {
    return this.tables.signals.take(token)
  }

  async hasSignalWaiter(token: string): Promise<boolean> {
    return this.tables.signals.hasWaiter(token)
  }

  async listSignalWaiters(prefix: string): Promise<SignalWaiter[]> {
    return this.tables.signals.withPrefix(prefix)
  }

  async listSignalWaitersByRunIds(runIds: string[]): Promise<SignalWaiter[]> {
    return this.tables.signals.ofRuns(runIds)
  }

  async removeSignalWaiter(waiter: SignalWaiter): Promise<void> {
    this.tables.signals.remove(waiter)
  }

  async bufferSignal(token: string, payload: unknown): Promise<void> {
    this.tables.signals.buffer(token, payload)
  }

  async takeBufferedSignal(token: string): Promise<{ payload: unknown } | null> {
    return this.tables.signals.takeBuffered(token)
  }

  async listBufferedTokens(prefixes: string[]): Promise<string[]> {
    return this.tables.signals.bufferedTokens(prefixes)
  }

  async dropBufferedSignals(tokens: string[]): Promise<void> {
    for (const token of tokens) this.tables.signals.dropBuffered(token)
  }

  async bufferEvent(event: BufferedEvent & { name: string }): Promise<void> {
    this.tables.events.put(event)
  }

  async listBufferedEvents(name: string, limit: number): Promise<BufferedEvent[]> {
    return this.tables.events.list(name, limit)
  }

  async removeBufferedEvent(id: string): Promise<boolean> {
    return this.tables.events.remove(id)
  }

  async pruneBufferedEvents(publishedBefore: number, limit?: number): Promise<number> {
    return this.tables.events.prune(publishedBefore, limit)
  }

  // Schedules

  async createSchedule(record: ScheduleRecord): Promise<boolean> {
    return this.tables.schedules.create(record)
  }

  async updateSchedule(
    id: string,
    patch: Partial<Omit<ScheduleRecord, 'id' | 'createdAt'>>
  ): Promise<boolean> {
    return this.tables.schedules.update(id, patch)
  }

  async getSchedule(id: string): Promise<ScheduleRecord | null> {
    return this.tables.schedules.get(id)
  }

  async listSchedules(query: { paused?: boolean } = {}): Promise<ScheduleRecord[]> {
    return this.tables.schedules.list(query.paused)
  }

  async deleteSchedule(id: string): Promise<boolean> {
    return this.tables.schedules.delete(id)
  }

  // Wake hints

  async notifyWake(hint: WakeHint): Promise<void> {
    for (const listener of this.tables.listeners) {
      isolate(() => listener({ namespace: hint.namespace, runIds: [...hint.runIds] }))
    }
  }

  async onWake(listener: (hint: WakeHint) => void): Promise<() => Promise<void>> {
    const own = (hint: WakeHint) => listener(hint)
    this.tables.listeners.add(own)
    return async () => void this.tables.listeners.delete(own)
  }
}
