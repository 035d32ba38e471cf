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

/**
 * The row at the call's position `index`, counted from its first one. A row in flight may still lose
 * against another one: who keeps something of it asks for what has `landed`.
 */
export type RowsOfCall = (index: number, landed?: boolean) => StepCheckpoint | undefined

/**
 * Reads the rows of a call. `changed` tells the indexes that are not as the last reading saw them; without
 * it any may be.
 */
export type Read = (rows: RowsOfCall, changed?: readonly number[]) => Reading

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

/** What must stand at the positions of a call, one by one; asked for where there is a row. */
export interface Marks {
  length: number
  at(index: number): Mark | undefined
}

/** What a ctx primitive asks for. `at` is called once, synchronously, with the first position. */
export interface Call {
  primitive: Primitive
  /** Positions it takes; 0 only with `minted`. */
  width: number
  /** A position taken before, by `Replay.mint`: the call's last one. */
  minted?: number
  at(seq: number): {
    marks: Marks
    command: Command
    read: Read
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
    readonly read: Read,
    readonly deferred: Deferred,
    /** Its last position, when that was taken before the others. */
    readonly minted?: number
  ) {}

  /** The position at `index`, counted from the first one. */
  seqAt(index: number): number {
    return index < this.width || this.minted === undefined ? this.seq + index : this.minted
  }

  /** The opposite of `seqAt`. */
  indexOf(seq: number): number {
    return seq === this.minted ? this.width : seq - this.seq
  }

  /**
   * Positions whose rows may still change: a completed row stays as it is, and those of a fan's members
   * are written by turns, oldest first.
   */
  changeable(rowAt: (seq: number) => StepCheckpoint | undefined): number[] {
    const { command } = this
    const found: number[] = []
    for (let index = command.kind === 'fan' ? command.oldest : 0; index < this.#size; index++) {
      const seq = this.seqAt(index)
      const row = rowAt(seq)
      if (!row && command.kind === 'fan') break
      if (row?.status !== 'completed') found.push(seq)
    }
    return found
  }

  get #size(): number {
    return this.width + (this.minted === undefined ? 0 : 1)
  }

  *seqs(): IterableIterator<number> {
    for (let i = 0; i < this.width; i++) yield this.seq + i
    if (this.minted !== undefined) yield this.minted
  }
}
