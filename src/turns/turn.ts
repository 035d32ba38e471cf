/*
 * One turn of one run while it executes: the machine, its history, its journal, and what is in flight.
 * Performers work on it; `run_turn.ts` drives it. It owns the bell that wakes the driver, and the rule
 * that a completion gets its place in the delivery order before it is written (invariant 7).
 */
import { DurableError } from '../foundation/failure.ts'
import { stepIdOf } from '../foundation/ids.ts'
import { isSettledStatus, type StepCheckpoint } from '../types/checkpoint.ts'
import {
  isTerminalStatus,
  type RunStatus,
  type SearchAttributes,
  type WorkflowRun,
} from '../types/run.ts'
import type { History } from '../replay/history.ts'
import { Replay } from '../replay/replay.ts'
import { Journal } from './journal.ts'
import { TogetherReader } from './together_reader.ts'
import { LiveCalls } from './live_calls.ts'
import type { LeaseHold } from './lease_keeper.ts'
import type { TurnNeeds } from './needs.ts'

/** Positions are 32-bit integers in every store. */
const PAST_EVERY_POSITION = 2 ** 31 - 1

/** The turn may not go on: its lease is gone, or a store call has an unknown outcome. */
export class TurnLostError extends DurableError {
  static override readonly code: string = 'turn_lost'

  constructor(
    message: string,
    options: { cause?: unknown } = {},
    /** The run's stored status, if the store told. */
    readonly status?: RunStatus
  ) {
    super(message, options)
  }
}

/** Local work that ended; becomes a row when the body is quiet. */
export interface Completion {
  row: StepCheckpoint
  /** Written by the work itself, with its order already in it. */
  durable?: boolean
  thrown?: unknown
  lazy?: boolean
  retryOf?: number
}

export interface TurnOptions {
  run: WorkflowRun
  needs: TurnNeeds
  hold: LeaseHold
  history: History
  replay?: Replay
}

export class Turn {
  readonly run: WorkflowRun
  readonly needs: TurnNeeds
  readonly hold: LeaseHold
  readonly journal: Journal
  readonly replay: Replay
  readonly finished: Completion[] = []
  readonly live: LiveCalls
  /** Positions whose waits this turn has put. */
  readonly registered = new Set<number>()
  /** Positions whose work is under way in this turn. */
  readonly #working = new Set<number>()
  readonly #looked = new Set<number>()
  /** Positions that were refused for now, and when they ask again. */
  readonly #denied = new Map<number, number>()
  #closed = false
  #lookUps?: TogetherReader
  #sending = 0
  /** Something happened outside: the open rows must be read again. */
  news = false
  /** A compensating cancel was asked for: no new work is begun. */
  intent: boolean
  /** The earliest time at which a performer wants to look again although no row says so. */
  parkBy = Infinity
  /** The run's search attributes, with what this turn merged. */
  attributes?: SearchAttributes
  /** Waves to fold once this turn is committed. */
  readonly folds: { folded: StepCheckpoint; toSeq: number }[] = []
  /** Positions settled by this turn. */
  settled = 0
  readonly #knownUpTo: number
  #bell?: () => void
  #rung = false

  constructor(options: TurnOptions) {
    const { run, needs, hold, history } = options
    this.run = run
    this.needs = needs
    this.hold = hold
    this.intent = run.cancelRequestedAt !== undefined
    this.attributes = run.searchAttributes
    this.replay = options.replay ?? new Replay({ runId: run.id, history })
    this.#knownUpTo = this.replay.history.frontier
    this.replay.onActivity = () => this.ring()
    hold.onLost = () => this.ring()
    this.live = new LiveCalls({
      timers: needs.timers,
      look: () => this.hearOf(),
      lookAgainAt: (at) => this.lookAgainAt(at),
    })
    this.journal = new Journal({
      store: needs.store,
      timers: needs.timers,
      clock: needs.clock,
      lease: { runId: run.id, owner: hold.owner, turn: run.turns ?? 0 },
      ring: () => this.ring(),
      landed: (seqs, stored) => this.#landed(seqs, stored),
    })
  }

  get history(): History {
    return this.replay.history
  }

  /** The body got further than its history: what answered it may have been settled by others. */
  get progressed(): boolean {
    return this.settled > 0 || this.replay.position > this.#knownUpTo
  }

  readonly now = (): number => this.needs.clock()

  /** Local work and dispatches under way. */
  get busy(): boolean {
    return this.#working.size > 0 || this.#sending > 0
  }

  /** Throws when this turn may not write any more (invariant 8). */
  check(): void {
    const { failure } = this.journal
    if (failure && 'error' in failure) {
      throw new TurnLostError(`run ${this.run.id}: the outcome of a commit is unknown`, {
        cause: failure.error,
      })
    }
    if (failure) {
      const status = failure.refused.status ?? undefined
      throw new TurnLostError(`run ${this.run.id} was taken: it is ${status}`, {}, status)
    }
    if (this.hold.lost) throw new TurnLostError(`the lease of run ${this.run.id} is lost`)
  }

  isWorking(seq: number): boolean {
    return this.#working.has(seq)
  }

  /** A row of this run at a position of the body. */
  newRow(
    fields: Pick<StepCheckpoint, 'seq' | 'name' | 'kind' | 'status'> & Partial<StepCheckpoint>
  ): StepCheckpoint {
    // A clock that was set back since the claim does not make a row of this turn look older than it:
    // recovery tells by that what this turn may not have sent.
    const at = new Date(Math.max(this.now(), this.run.claimedAt?.getTime() ?? 0))
    return {
      runId: this.run.id,
      stepId: stepIdOf(this.run.id, fields.seq),
      attempts: 1,
      enqueuedAt: at,
      startedAt: at,
      finishedAt: at,
      ...fields,
    }
  }

  /** Writes a row: at once in this turn's history, durably with the commit it joins. */
  write(
    row: StepCheckpoint,
    options: {
      urgent: boolean
      retryOf?: number
      /** See `Entry` in journal.ts. */
      once?: boolean
      inFlight?: boolean
      thrown?: unknown
      then?: () => void
    }
  ): void {
    this.history.put(row, { inFlight: options.inFlight, thrown: options.thrown })
    if (isSettledStatus(row.status)) this.settled += 1
    const { urgent, retryOf, once, then } = options
    this.journal.append({ row: { row, retryOf }, once, then }, { urgent })
    this.replay.changed([row.seq])
  }

  /** Parks no longer than until `at` (epoch ms): something must be reviewed then. */
  lookAgainAt(at: number): void {
    this.parkBy = Math.min(this.parkBy, at)
  }

  /** A position that was refused for now asks again at `at` (epoch ms), or when news come. */
  askAgainAt(seq: number, at: number): void {
    this.#denied.set(seq, at)
    this.ring()
  }

  /** Performers of positions that may ask again are called again. */
  reviewDenied(): void {
    for (const [seq, at] of this.#denied) {
      if (at > this.now()) continue
      this.#denied.delete(seq)
      this.replay.changed([seq])
    }
  }

  /** The earliest moment at which something falls due without news (epoch ms). */
  get nextDeadline(): number | undefined {
    const at = Math.min(this.replay.nextDeadline() ?? Infinity, ...this.#denied.values())
    return Number.isFinite(at) ? at : undefined
  }

  /** Work may begin: nobody took the run, and its body still wants something. */
  get goesOn(): boolean {
    const { broken, end } = this.replay
    const isStopped = this.#closed || this.hold.lost || this.journal.failure !== undefined
    return !isStopped && !this.intent && !broken && !end
  }

  /** Nothing outlives the turn. */
  close(): void {
    this.#closed = true
    this.live.stop()
    this.journal.close()
  }

  /** Tracks local work at a position; what it answers becomes the position's row. */
  work(seq: number, body: () => Promise<Completion | undefined>): void {
    this.#working.add(seq)
    void body()
      .then(
        (completion) => {
          // It stays under way until it is a row: nobody may begin it again in between.
          if (completion) this.finished.push(completion)
          else this.#working.delete(seq)
        },
        (error: unknown) => {
          this.journal.failure ??= { error }
          this.#working.delete(seq)
        }
      )
      .finally(() => this.ring())
  }

  /** Reserves a position for work that begins after a barrier. */
  reserve(seq: number): void {
    this.#working.add(seq)
  }

  /** Ends a reservation. */
  release(seq: number): void {
    this.#working.delete(seq)
    this.ring()
  }

  /** Tracks what must have happened before the run is parked: a dispatch, a look at other runs. */
  send(work: () => Promise<void>): void {
    this.#sending += 1
    void work()
      .catch((error: unknown) => {
        this.journal.failure ??= { error }
      })
      .finally(() => {
        this.#sending -= 1
        this.ring()
      })
  }

  /** True the first time in this turn that a position is looked at. */
  looksFirst(seq: number): boolean {
    if (this.#looked.has(seq)) return false
    this.#looked.add(seq)
    return true
  }

  /** Another run, read together with all that are asked for at the same time. */
  lookUp(runId: string): Promise<WorkflowRun | undefined> {
    this.#lookUps ??= new TogetherReader((ids) => this.needs.store.getRuns(ids))
    return this.#lookUps.read(runId)
  }

  /** Turns ended work into rows; the place in the delivery order is given here. */
  finish(): void {
    for (const { row, thrown, durable, lazy, retryOf } of this.finished.splice(0)) {
      this.#working.delete(row.seq)
      if (durable) {
        this.history.put(row, { thrown })
        this.settled += 1
        this.replay.changed([row.seq])
        continue
      }
      if (this.replay.concurrent && !lazy) row.order = this.history.takeOrder()
      this.write(row, { urgent: !lazy, inFlight: !lazy, thrown, retryOf })
    }
  }

  /** Appends the orders given by deliveries since the last call. */
  stampNow(): void {
    for (const stamp of this.replay.takeStamps()) this.journal.stamp(stamp, this.history)
  }

  /** Rows at open positions, read again: only what settled since. */
  async reread(): Promise<void> {
    this.news = false
    for (const seq of this.#denied.keys()) this.#denied.set(seq, 0)
    const seqs = this.replay.openSeqs()
    if (seqs.length === 0) return
    const rows = await this.needs.store.listCheckpointsAt(this.run.id, seqs, PAST_EVERY_POSITION)
    this.check()
    const settled = rows.filter((row) => isSettledStatus(row.status))
    const changed = this.history.merge(settled)
    if (changed.length === 0 && this.live.size > 0) await this.#lookAtRun()
    this.replay.changed(changed)
  }

  /** Something may have happened outside. */
  hearOf(): void {
    this.news = true
    this.ring()
  }

  ring(): void {
    this.#rung = true
    this.#bell?.()
  }

  /** Resolves when something rang since the last call, or at `until` (epoch ms). */
  async bell(until?: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const cancel =
          until === undefined
            ? undefined
            : this.needs.timers.after(Math.max(0, until - this.now()), resolve)
        this.#bell = () => {
          cancel?.()
          resolve()
        }
      })
    }
    this.#bell = undefined
    this.#rung = false
  }

  /** Waits until nothing of this turn is in flight and everything appended is durable. */
  async drain(): Promise<void> {
    for (;;) {
      this.check()
      this.finish()
      this.stampNow()
      this.journal.flush({ all: true })
      if (this.journal.empty && !this.busy) return
      await this.bell()
    }
  }

  /** Waits for work in flight; what is lazy stays for the settling commit to carry. */
  async quiesce(): Promise<void> {
    for (;;) {
      this.check()
      this.finish()
      this.stampNow()
      this.journal.flush()
      if (this.journal.idle && !this.busy && this.finished.length === 0) return
      await this.bell()
    }
  }

  /** A turn that awaits something for long commits nothing, so nothing tells it that its run was ended. */
  async #lookAtRun(): Promise<void> {
    const run = await this.needs.store.getRun(this.run.id)
    if (run?.cancelRequestedAt !== undefined) this.intent = true
    if (run && !isTerminalStatus(run.status)) return
    const status = run?.status ?? 'cancelled'
    throw new TurnLostError(`run ${this.run.id} was taken: it is ${status}`, {}, status)
  }

  #landed(seqs: number[], stored: StepCheckpoint[]): void {
    for (const seq of seqs) this.history.landed(seq)
    for (const row of stored) {
      // It may have been read and delivered before this answer came: then it has a place in the order.
      const order = row.order ?? this.history.at(row.seq)?.order
      this.history.put(order === undefined ? row : { ...row, order })
      if (isSettledStatus(row.status)) this.settled += 1
    }
    this.replay.changed([...seqs, ...stored.map((row) => row.seq)])
    if (this.journal.cancelRequested) this.intent = true
    if (this.journal.wakeRequested && !this.#told) {
      this.#told = true
      this.news = true
    }
  }

  /** The wake request of this turn was answered by reading the open rows once. */
  #told = false
}
