/*
 * The replay core: history in, commands out. A sans-IO machine: it never reads a store or a clock, and
 * waits for nothing but its own quiescence. It owns positions, the open awaits of one body, the order in
 * which the body sees results (invariant 7) and the fence after an unwind (invariant 8).
 *
 * ctx calls `open`; a driver calls `start`, `settle`, `takeAttention`, `takeStamps`, `unwind`.
 * The rules: docs/internals/replay.md.
 */
import type { NonDeterminismError } from '../errors.ts'
import {
  isContinueAsNew,
  isWorkflowControlFlowSignal,
  type ContinueAsNew,
  WorkflowSuspended,
} from '../foundation/control_flow.ts'
import { deferred } from '../foundation/deferred.ts'
import { DurableError, InvariantError, presentable } from '../foundation/failure.ts'
import { cloneJson } from '../foundation/json.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import { Delivery } from './delivery.ts'
import type { Command } from './commands.ts'
import { type Mark, mismatch } from './guard.ts'
import type { History } from './history.ts'
import { type Answer, type Call, OpenAwait, type Undo } from './open_await.ts'
import type { BodyEnd } from './outcome.ts'
import { Owners } from './owners.ts'
import { macrotaskPassed, microtasksDrained } from './quiescence.ts'

export interface Stamp {
  seq: number
  order: number
}

export interface ReplayOptions {
  runId: string
  history: History
  /** Told of every await that is delivered, in order. */
  onDelivered?: (entry: OpenAwait) => void
}

/** What the branches of a body that ended are told; one for all, since making an error is not cheap. */
const OVER = new WorkflowSuspended()

export class Replay {
  readonly runId: string
  readonly history: History
  readonly #delivery: Delivery
  readonly #open = new Map<number, OpenAwait>()
  readonly #owners = new Owners()
  /** Told of every await that is delivered, in order. */
  onDelivered?: (entry: OpenAwait) => void
  /** Told when the body asks for something or ends: also while nobody drives the machine. */
  onActivity?: () => void
  /** Made on first use, as few kept bodies need them. */
  #undos?: Map<number, Undo>
  #attention?: Set<OpenAwait>
  #stamps: Stamp[] = []
  #position = 0
  #lastOrder = -1
  #fence?: WorkflowSuspended | NonDeterminismError
  #broken?: NonDeterminismError
  #end?: BodyEnd
  #lastRejection?: { error: unknown; seq: number }

  constructor(options: ReplayOptions) {
    this.runId = options.runId
    this.history = options.history
    this.onDelivered = options.onDelivered
    this.#delivery = new Delivery(options.history)
  }

  /** How the body ended; undefined while it runs, waits, or was unwound. */
  get end(): BodyEnd | undefined {
    return this.#end
  }

  /** The mismatch that ended this replay, whatever the body made of it. */
  get broken(): NonDeterminismError | undefined {
    return this.#broken
  }

  /** The position the next call takes. */
  get position(): number {
    return this.#position
  }

  get openCount(): number {
    return this.#open.size
  }

  openAwaits(): IterableIterator<OpenAwait> {
    return this.#open.values()
  }

  /** Positions of open awaits whose rows may still change: a completed row stays as it is. */
  openSeqs(): number[] {
    return [...this.#open.values()].flatMap((entry) =>
      entry.changeable((seq) => this.history.at(seq))
    )
  }

  /** The step whose failure this very error is, if it was the last one the body saw. */
  stepOf(error: unknown): { seq: number; name: string } | undefined {
    if (!this.#lastRejection || this.#lastRejection.error !== error) return undefined
    const { seq } = this.#lastRejection
    const name = this.history.at(seq)?.name
    return name === undefined ? undefined : { seq, name }
  }

  /** How to undo what completes at this position. */
  undoAt(seq: number): Undo | undefined {
    return this.#undos?.get(seq)
  }

  /** Positions of the compensable calls made so far. */
  compensable(): Iterable<number> {
    return this.#undos?.keys() ?? []
  }

  /* ---- for ctx ---- */

  /** Takes the positions of a call, guards them, and answers when the call is delivered. */
  open<T>(call: Call): Promise<T> {
    if (this.#fence) return rejected(this.#fence)
    const seq = this.#position
    this.#position += call.width
    const { marks, command, read, undo } = call.at(seq)
    for (let i = 0; i < marks.length; i++) {
      const row = this.history.at(seq + i)
      const error = row && mismatch(this.runId, row, marks.at(i)!)
      if (error) return this.breakOff(error)
    }
    const entry = this.#entryOf(call, seq, command, read)
    this.#open.set(entry.seq, entry)
    this.#owners.add(entry)
    if (undo) (this.#undos ??= new Map<number, Undo>()).set(seq, undo)
    this.#delivery.assess(entry)
    if (entry.reading.state === 'open') this.#note(entry)
    this.onActivity?.()
    return entry.deferred.promise as Promise<T>
  }

  /** Takes a position for a call that comes later; answers it, or the mismatch. */
  mint(markAt: (seq: number) => Mark): { seq: number } | { error: Error } {
    if (this.#fence) return { error: this.#fence }
    const seq = this.#position
    const row = this.history.at(seq)
    const error = row && mismatch(this.runId, row, markAt(seq))
    if (error) {
      void this.breakOff(error)
      return { error: this.#broken! }
    }
    this.#position += 1
    return { seq }
  }

  /** Somebody waits at this position. */
  isOpen(seq: number): boolean {
    return this.#owners.at(seq) !== undefined
  }

  /** The row at the next position, without taking it. */
  peek(): StepCheckpoint | undefined {
    return this.history.at(this.#position)
  }

  /** What a fenced body must see instead of the answer to a new call. */
  get fence(): Error | undefined {
    return this.#fence
  }

  /** Ends this replay as not deterministic; nothing the body does afterwards counts. */
  breakOff<T>(error: NonDeterminismError): Promise<T> {
    this.#broken ??= error
    this.#fence ??= error
    this.#attention = undefined
    return rejected(this.#broken)
  }

  /* ---- for a driver ---- */

  start(body: () => Promise<unknown>): void {
    void Promise.resolve()
      .then(body)
      .then(
        (value) => this.#finish({ kind: 'returned', value }),
        (thrown: unknown) => {
          const error = presentable(thrown)
          if (isContinueAsNew(error)) {
            this.#finish({ kind: 'continued', input: (error as ContinueAsNew).input })
          } else {
            // A suspension before this body was unwound is none of its own; nothing would wake it.
            const foreign = isWorkflowControlFlowSignal(error)
            this.#finish({ kind: 'threw', error: foreign ? foreignSuspension(error) : error })
          }
        }
      )
  }

  /** Delivers by the rule until nothing more can be delivered at `now()` and the body is quiet. */
  async settle(now: () => number): Promise<void> {
    await microtasksDrained()
    for (let quiet = false; ;) {
      while (!this.#over() && this.#deliver(now())) {
        quiet = false
        await microtasksDrained()
      }
      if (quiet || this.#over()) return
      await macrotaskPassed()
      quiet = true
    }
  }

  /** Open awaits that need their performer: new ones, changed ones, those that fell due. */
  takeAttention(now: number): OpenAwait[] {
    for (const entry of this.#delivery.advance(now)) this.#note(entry)
    const noted = [...(this.#attention ?? [])]
    this.#attention = undefined
    return noted.filter((entry) => entry.reading.state === 'open')
  }

  /** Asks for attention to an open await whose answer may lie outside its rows. */
  attend(entry: OpenAwait): void {
    if (this.#open.get(entry.seq) === entry) this.#note(entry)
  }

  /** Orders given since the last call that are not part of a row's own write. */
  takeStamps(): Stamp[] {
    const stamps = this.#stamps
    this.#stamps = []
    return stamps
  }

  /** The rows at these positions changed. */
  changed(seqs: Iterable<number>): void {
    const changes = new Map<OpenAwait, number[]>()
    for (const seq of seqs) {
      const entry = this.#owners.at(seq)
      if (!entry) continue
      const changed = changes.get(entry)
      if (changed) changed.push(entry.indexOf(seq))
      else changes.set(entry, [entry.indexOf(seq)])
    }
    for (const [entry, changed] of changes) {
      this.#delivery.assess(entry, changed)
      if (entry.reading.state === 'open') this.#note(entry)
    }
  }

  /** Something can be delivered at `now` without further writes. */
  deliverable(now: number): boolean {
    for (const entry of this.#delivery.advance(now)) this.#note(entry)
    const entry = this.#delivery.take()
    if (!entry) return false
    this.#delivery.assess(entry)
    return true
  }

  /** The earliest time at which something falls due; undefined when only news can move the body. */
  nextDeadline(): number | undefined {
    return this.#delivery.nextDeadline()
  }

  /**
   * Rejects every open await with one shared suspension and fences the body: nothing it does from now on
   * is recorded (invariant 8). Resolves when the body had a chance to unwind.
   */
  async unwind(): Promise<void> {
    this.#fence ??= new WorkflowSuspended(this.nextDeadline())
    const open = [...this.#open.values()]
    this.#open.clear()
    this.#owners.clear()
    this.#attention = undefined
    for (const entry of open) {
      this.#delivery.forget(entry)
      entry.deferred.reject(this.#fence)
    }
    await microtasksDrained()
  }

  /** Whether a completion in this turn must carry an order (more than one await is open). */
  get concurrent(): boolean {
    return this.#open.size > 1
  }

  #entryOf(call: Call, seq: number, command: Command, read: OpenAwait['read']): OpenAwait {
    const { width, minted } = call
    // Nothing but the minted position: that is the whole call.
    if (width === 0 && minted !== undefined) {
      return new OpenAwait(minted, 1, command, read, deferred())
    }
    return new OpenAwait(seq, width, command, read, deferred(), minted)
  }

  /** Its performer is to look at it. */
  #note(entry: OpenAwait): void {
    this.#attention ??= new Set()
    this.#attention.add(entry)
  }

  #over(): boolean {
    return this.#end !== undefined || this.#broken !== undefined
  }

  #finish(end: BodyEnd): void {
    if (this.#fence) return
    this.#end = end
    // Branches that the body left behind must not write under a run that is over.
    this.#fence = OVER
    this.onActivity?.()
  }

  #deliver(now: number): boolean {
    for (const entry of this.#delivery.advance(now)) this.#note(entry)
    const entry = this.#delivery.take()
    if (!entry) return false
    const answer = entry.reading as Answer
    this.#stamp(answer)
    this.#open.delete(entry.seq)
    this.#owners.remove(entry)
    this.#attention?.delete(entry)
    this.#delivery.forget(entry)
    this.onDelivered?.(entry)
    // The body gets a copy: what it does to a result must not reach history.
    if (answer.result.ok) entry.deferred.resolve(cloneJson(answer.result.value))
    else {
      const error = this.history.takeThrown(answer.orderSeq) ?? answer.result.error
      this.#lastRejection = { error, seq: answer.orderSeq }
      entry.deferred.reject(error)
    }
    return true
  }

  #stamp(answer: Answer): void {
    const row = this.history.at(answer.orderSeq)
    if (!row) throw new InvariantError('7', `run ${this.runId}: an answer without a row`)
    if (row.order === undefined && (this.#open.size > 1 || answer.decided)) {
      const order = this.history.takeOrder()
      this.history.put({ ...row, order })
      this.#stamps.push({ seq: row.seq, order })
    }
    const order = this.history.at(answer.orderSeq)?.order
    if (order === undefined) return
    if (order < this.#lastOrder) {
      throw new InvariantError(
        '7',
        `run ${this.runId}: the result ordered ${order} comes after ${this.#lastOrder}`
      )
    }
    this.#lastOrder = order
  }
}

function foreignSuspension(cause: unknown): DurableError {
  return new DurableError(
    'the body threw a suspension that is not its own: of another run, or kept from an earlier turn',
    { code: 'foreign_suspension', cause }
  )
}

function rejected<T>(reason: unknown): Promise<T> {
  const promise = Promise.reject<T>(reason)
  promise.catch(() => {})
  return promise
}
