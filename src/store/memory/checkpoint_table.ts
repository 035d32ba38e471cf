/*
 * Checkpoint rows, one timeline a run with its positions in order, so that no read ever scans another
 * run's rows. Owns every change of a row: what replaces what is decided here.
 */
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import type { CheckpointKey, CheckpointRange } from '../../types/query.ts'
import { inRange, mayReplace, type RowTimes } from '../ports/checkpoint_rules.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import { CHECKPOINT_COLUMNS, decodeRow, encodeRow, type StoredCheckpoint } from './columns.ts'

interface Timeline {
  rows: Map<number, StoredCheckpoint>
  /** Positions, ascending. */
  seqs: number[]
}

export class CheckpointTable {
  readonly #timelines = new Map<string, Timeline>()
  /** How many rows the last read of several looked at. */
  lastRowsRead = 0

  get(runId: string, seq: number): StoredCheckpoint | undefined {
    return this.#timelines.get(runId)?.rows.get(seq)
  }

  /** Rows of a run, ascending, from a position on. */
  list(runId: string, fromSeq?: number): StoredCheckpoint[] {
    const timeline = this.#timelines.get(runId)
    if (!timeline) {
      this.lastRowsRead = 0
      return []
    }
    const from = fromSeq === undefined ? 0 : lowerBound(timeline.seqs, fromSeq)
    const rows = timeline.seqs.slice(from).map((seq) => timeline.rows.get(seq)!)
    this.lastRowsRead = rows.length
    return rows
  }

  /** Rows of a range, ascending. */
  range(runId: string, range: CheckpointRange): StoredCheckpoint[] {
    return this.list(runId, range.fromSeq).filter((row) => inRange(row, range))
  }

  /** Looks from the end: the last members of a fan are the likeliest to be open. */
  hasOne(runId: string, range: CheckpointRange): boolean {
    this.lastRowsRead = 0
    const timeline = this.#timelines.get(runId)
    if (!timeline) return false
    const { rows, seqs } = timeline
    const end = range.toSeq === undefined ? seqs.length : lowerBound(seqs, range.toSeq + 1)
    for (let i = end - 1; i >= 0 && seqs[i] >= (range.fromSeq ?? -Infinity); i--) {
      this.lastRowsRead += 1
      if (inRange(rows.get(seqs[i])!, range)) return true
    }
    return false
  }

  /** The rows at `seqs` and every row from `fromSeq` on, ascending, each once. */
  at(runId: string, seqs: number[], fromSeq: number): StoredCheckpoint[] {
    const rest = this.list(runId, fromSeq)
    const open = [...new Set(seqs)]
      .filter((seq) => seq < fromSeq)
      .sort((a, b) => a - b)
      .flatMap((seq) => this.get(runId, seq) ?? [])
    this.lastRowsRead = open.length + rest.length
    return [...open, ...rest]
  }

  /** The rows at these keys that exist, each once. */
  several(keys: CheckpointKey[]): StoredCheckpoint[] {
    const rows = new Set(keys.flatMap(({ runId, seq }) => this.get(runId, seq) ?? []))
    this.lastRowsRead = rows.size
    return [...rows]
  }

  /** Writes a row; the heartbeat columns are kept unless the object carries their keys. */
  save(checkpoint: StepCheckpoint): void {
    const next = encodeCheckpoint(checkpoint)
    const old = this.get(next.runId, next.seq)
    if (old && !('lastHeartbeatAt' in checkpoint)) keep(next, old, 'lastHeartbeatAt')
    if (old && !('heartbeatProgress' in checkpoint)) keep(next, old, 'heartbeatProgress')
    this.#put(next)
  }

  /** Writes a row only while it is pending. */
  saveIfPending(checkpoint: StepCheckpoint): boolean {
    if (this.get(checkpoint.runId, checkpoint.seq)?.status !== 'pending') return false
    this.save(checkpoint)
    return true
  }

  /** Writes what a result carries, only while the row is pending. */
  settleIfPending(settlement: CheckpointSettlement): boolean {
    const old = this.get(settlement.runId, settlement.seq)
    const { wakeAt, upToAttempt = Infinity, ...carried } = settlement
    if (old?.status !== 'pending' || old.attempts > upToAttempt) return false
    const next = {
      ...old,
      ...encodeRow<StepCheckpoint, typeof CHECKPOINT_COLUMNS>(CHECKPOINT_COLUMNS, carried),
    }
    if (wakeAt === null) delete next.wakeAt
    this.#put(next)
    return true
  }

  /**
   * A write of a turn: replaces what stands unless that is settled (but for the attempt it retries). The
   * heartbeat columns of a row that stands are kept. Answers the row that won against it.
   */
  write(checkpoint: StepCheckpoint, retryOf?: number): StoredCheckpoint | undefined {
    const old = this.get(checkpoint.runId, checkpoint.seq)
    if (!mayReplace(old, retryOf)) return old
    const next = encodeCheckpoint(checkpoint)
    if (old) {
      keep(next, old, 'lastHeartbeatAt')
      keep(next, old, 'heartbeatProgress')
    }
    this.#put(next)
    return undefined
  }

  /** Gives a row its place in the delivery order unless it has one. */
  stamp(runId: string, seq: number, order: number): void {
    const row = this.get(runId, seq)
    if (row && row.order === undefined) this.#put({ ...row, order })
  }

  /** Notes a sign of life on a row that exists. */
  beat(runId: string, seq: number, at: Date, progress: unknown): void {
    const row = this.get(runId, seq)
    if (!row) return
    const { lastHeartbeatAt, heartbeatProgress, ...rest } = row
    const beat = encodeRow<StepCheckpoint, typeof CHECKPOINT_COLUMNS>(CHECKPOINT_COLUMNS, {
      lastHeartbeatAt: at,
      heartbeatProgress: progress,
    })
    this.#put({ ...rest, ...beat } as StoredCheckpoint)
  }

  /** Replaces a settled range by one row inside it. */
  compact(runId: string, fromSeq: number, toSeq: number, folded: StepCheckpoint): boolean {
    const rows = this.range(runId, { fromSeq, toSeq })
    if (folded.seq < fromSeq || folded.seq > toSeq) return false
    if (rows.length === 0 || !rows.every((row) => isSettledStatus(row.status))) return false
    const timeline = this.#timelines.get(runId)!
    for (const row of rows) timeline.rows.delete(row.seq)
    timeline.seqs.splice(lowerBound(timeline.seqs, fromSeq), rows.length)
    this.#put({ ...encodeCheckpoint(folded), runId })
    return true
  }

  remove(runId: string): void {
    this.#timelines.delete(runId)
  }

  #put(row: StoredCheckpoint): void {
    let timeline = this.#timelines.get(row.runId)
    if (!timeline) this.#timelines.set(row.runId, (timeline = { rows: new Map(), seqs: [] }))
    if (!timeline.rows.has(row.seq)) {
      timeline.seqs.splice(lowerBound(timeline.seqs, row.seq), 0, row.seq)
    }
    timeline.rows.set(row.seq, row)
  }
}

export const decodeCheckpoint = (row: StoredCheckpoint): StepCheckpoint =>
  decodeRow<StepCheckpoint, typeof CHECKPOINT_COLUMNS>(CHECKPOINT_COLUMNS, row)

/** A row as read without its input, which is not even decoded. */
export function decodeWithoutInput(row: StoredCheckpoint): StepCheckpoint {
  const { input, ...rest } = row
  return decodeCheckpoint(rest)
}

/** A row as a replay reads it. */
export const decodeForReplay = (row: StoredCheckpoint): StepCheckpoint =>
  row.status === 'completed' ? decodeWithoutInput(row) : decodeCheckpoint(row)

export const storedTimes = (row: StoredCheckpoint): RowTimes => ({
  seq: row.seq,
  name: row.name,
  status: row.status,
  parallelGroup: row.parallelGroup,
  attempts: row.attempts,
  enqueuedAtMs: row.enqueuedAt,
  startedAtMs: row.startedAt,
  finishedAtMs: row.finishedAt,
  lastHeartbeatAtMs: row.lastHeartbeatAt,
})

function encodeCheckpoint(checkpoint: StepCheckpoint): StoredCheckpoint {
  const row = encodeRow<StepCheckpoint, typeof CHECKPOINT_COLUMNS>(CHECKPOINT_COLUMNS, checkpoint)
  return { ...row, enqueuedAt: row.enqueuedAt ?? row.startedAt } as StoredCheckpoint
}

function keep<K extends 'lastHeartbeatAt' | 'heartbeatProgress'>(
  next: StoredCheckpoint,
  old: StoredCheckpoint,
  column: K
): void {
  if (old[column] === undefined) delete next[column]
  else next[column] = old[column]
}

function lowerBound(seqs: number[], seq: number): number {
  let low = 0
  let high = seqs.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (seqs[middle] < seq) low = middle + 1
    else high = middle
  }
  return low
}
