/*
 * An open await: a ctx call that history has not answered yet, and how to read its rows. The reading is
 * a pure function of rows; time enters only as the moments it names.
 */
import type { Deferred } from '../foundation/deferred.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { Command } from './commands.ts'
import type { Mark, Primitive } from './guard.ts'

/** What the rows of a call say. Times are epoch ms. */
export type Reading =
  /** Not settled. At `dueAt` its performer must look at it again. */
  { state: 'open'; dueAt?: number } | ({ state: 'answered' } & Answer)

export interface Answer {
  /** How the body sees it. */
  result: { ok: true; value: unknown } | { ok: false; error: unknown }
  /** The position whose row carries the delivery order. */
  orderSeq: number
  /** When it settled: decides between answers without a recorded order. */
  at: number
  /** Not deliverable earlier, unless its order is recorded. */
  notBefore?: number
  /** This member decided a fail-fast fan: it is stamped even when nothing else is open. */
  decided?: boolean
}

/** The row at the call's position `index`, counted from its first one. */
export type RowsOfCall = (index: number) => StepCheckpoint | undefined

/** How to undo a completed call: an in-process closure or a dispatched step. */
export type Undo =
  | { kind: 'local'; name: string; run: () => Promise<void> | void }
  | {
      kind: 'dispatch'
      name: string
      step: string
      policy: Record<string, unknown>
      input: unknown
    }

/** What a ctx primitive asks for. `at` is called once, synchronously, with the first position. */
export interface Call {
  primitive: Primitive
  /** Positions it takes; 0 only with `minted`. */
  width: number
  /** A position taken before, by `Replay.mint`: the call's last one. */
  minted?: number
  at(seq: number): {
    marks: Mark[]
    command: Command
    read(rows: RowsOfCall): Reading
    undo?: Undo
  }
}

export class OpenAwait {
  /** Counts readings, so that what was queued for an earlier one is recognised as stale. */
  version = 0
  reading: Reading = { state: 'open' }

  constructor(
    readonly seq: number,
    readonly width: number,
    readonly command: Command,
    readonly read: (rows: RowsOfCall) => Reading,
    readonly deferred: Deferred,
    /** Its last position, when that was taken before the others. */
    readonly minted?: number
  ) {}

  /** The position at `index`, counted from the first one. */
  seqAt(index: number): number {
    return index < this.width || this.minted === undefined ? this.seq + index : this.minted
  }

  *seqs(): IterableIterator<number> {
    for (let i = 0; i < this.width; i++) yield this.seq + i
    if (this.minted !== undefined) yield this.minted
  }
}
