/*
 * History: what is recorded at each position of one run, as far as this turn knows. It owns the rows a
 * turn works on, which of them are written but not durable yet, and the next place in the delivery order.
 * A row this turn wrote is never replaced by an older reading of it.
 */
import { isSettledStatus, type StepCheckpoint } from '../types/checkpoint.ts'
import { membersOf } from './folds.ts'

export class History {
  readonly #rows = new Map<number, StepCheckpoint>()
  /** Few histories ever need these: made on first use, so that a kept one stays small. */
  #inFlight?: Set<number>
  #thrown?: Map<number, unknown>
  #folded?: Set<number>
  #frontier = 0
  #nextOrder = 0
  #bytes = 0

  constructor(rows: Iterable<StepCheckpoint> = []) {
    for (const row of rows) {
      const members = membersOf(row)
      if (members.length > 1) this.markFolded(row.seq, row.seq + members.length - 1)
      for (const member of members) this.#set(member)
    }
  }

  /** One past the highest body position that holds a row. */
  get frontier(): number {
    return this.#frontier
  }

  get size(): number {
    return this.#rows.size
  }

  /** Roughly what the rows take in memory. */
  get bytes(): number {
    return this.#bytes
  }

  at(seq: number): StepCheckpoint | undefined {
    return this.#rows.get(seq)
  }

  rows(): IterableIterator<StepCheckpoint> {
    return this.#rows.values()
  }

  /**
   * A row this turn writes. `inFlight`: it answers its await only once it is durable. `thrown`: the very
   * error that a failed row records.
   */
  put(row: StepCheckpoint, options: { inFlight?: boolean; thrown?: unknown } = {}): void {
    this.#set(row)
    if (options.thrown !== undefined) {
      this.#thrown ??= new Map()
      this.#thrown.set(row.seq, options.thrown)
    }
    if (options.inFlight) {
      this.#inFlight ??= new Set()
      this.#inFlight.add(row.seq)
    } else this.#inFlight?.delete(row.seq)
  }

  /** Positions that one row stands for in the store. */
  markFolded(fromSeq: number, toSeq: number): void {
    this.#folded ??= new Set()
    for (let seq = fromSeq; seq <= toSeq; seq++) this.#folded.add(seq)
  }

  isFolded(seq: number): boolean {
    return this.#folded?.has(seq) ?? false
  }

  isInFlight(seq: number): boolean {
    return this.#inFlight?.has(seq) ?? false
  }

  /** The row at this position became durable. */
  landed(seq: number): void {
    this.#inFlight?.delete(seq)
  }

  /** The error behind a failure of this process, once. */
  takeThrown(seq: number): unknown {
    const thrown = this.#thrown?.get(seq)
    this.#thrown?.delete(seq)
    return thrown
  }

  /** Takes the next place in the delivery order (invariant 7). */
  takeOrder(): number {
    return this.#nextOrder++
  }

  /**
   * Rows read from the store; answers the positions that changed. A completion in flight, a settled
   * local row and a later attempt of ours stand; an order given here and not yet written is kept.
   */
  merge(rows: Iterable<StepCheckpoint>): number[] {
    const changed: number[] = []
    for (const read of rows) {
      if (read.order !== undefined) this.#nextOrder = Math.max(this.#nextOrder, read.order + 1)
      const mine = this.#rows.get(read.seq)
      if (mine && this.#stands(mine, read)) continue
      this.#set(mine?.order === undefined ? read : { ...read, order: read.order ?? mine.order })
      changed.push(read.seq)
    }
    return changed
  }

  #stands(mine: StepCheckpoint, read: StepCheckpoint): boolean {
    if (this.isInFlight(read.seq) || read.attempts < mine.attempts) return true
    if (!isSettledStatus(mine.status)) return false
    const reset = mine.attempts === 0
    if (mine.kind === 'local' && !reset) return true
    return mine.status === read.status && mine.attempts === read.attempts
  }

  #set(written: StepCheckpoint): void {
    const row = written.status === 'completed' ? slim(written) : written
    const replaced = this.#rows.get(row.seq)
    this.#bytes += bytesOf(row) - (replaced ? bytesOf(replaced) : 0)
    this.#rows.set(row.seq, row)
    if (row.seq >= this.#frontier) this.#frontier = row.seq + 1
    if (row.order !== undefined) this.#nextOrder = Math.max(this.#nextOrder, row.order + 1)
  }
}

/** A completed row as replay needs it. */
function slim(row: StepCheckpoint): StepCheckpoint {
  if (row.input === undefined && row.events === undefined) return row
  const kept = { ...row }
  delete kept.input
  delete kept.events
  return kept
}

const ROW_BYTES = 400

function bytesOf(row: StepCheckpoint): number {
  return ROW_BYTES + jsonBytes(row.input) + jsonBytes(row.output)
}

function jsonBytes(value: unknown): number {
  if (typeof value === 'string') return 2 * value.length
  if (value === null || typeof value !== 'object') return 8
  let bytes = 32
  for (const [key, member] of Object.entries(value)) bytes += key.length + 8 + jsonBytes(member)
  return bytes
}
