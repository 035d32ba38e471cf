/*
 * The journal: the ordered writes of one turn. At most one commit is in flight; what is appended
 * meanwhile joins the next. Lazy entries (captures, marks, deadlines, stamps) wait for the next commit
 * to ride on; urgent ones ask for one. Keeps invariants 1, 2 and 4 through `commitTurn`.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import type {
  EventClaim,
  OrderStamp,
  RowWrite,
  SignalWait,
  TurnCommit,
  TurnCommits,
  TurnSettle,
  TurnVerdict,
  WaitExpiry,
} from '../store/ports/turn_commits.ts'
import type { History } from '../replay/history.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { SearchAttributes, WorkflowRun } from '../types/run.ts'

export type Entry =
  /** `once`: never sent a second time when the first answer is lost. */
  | { row: RowWrite; once?: boolean; then?: () => void }
  | { wait: SignalWait; then?: (verdict: TurnVerdict) => void }
  | { child: WorkflowRun }
  | { run: WorkflowRun }
  | { expiry: WaitExpiry; then?: () => void }
  | { claim: EventClaim; then?: () => void }
  | { attributes: SearchAttributes }
  | { stamp: OrderStamp }
  | { barrier: () => void }

export interface JournalOptions {
  store: Pick<TurnCommits, 'commitTurn'>
  timers: Timers
  clock: () => number
  lease: { runId: string; owner: string; turn: number }
  /** Something landed, failed or was refused: the turn should look. */
  ring: () => void
  /** Rows that became durable as written, and what stands where another write won or a payload came. */
  landed: (seqs: number[], stored: StepCheckpoint[]) => void
}

/** How long a `running` row, or what is lazy, waits for a commit to ride on. */
const HELD_MS = 25

export class Journal {
  readonly #options: JournalOptions
  #entries: Entry[] = []
  #urgent = false
  #inFlight = false
  #held = new Map<number, StepCheckpoint>()
  #heldTimer?: Cancel
  /** The store failed, or refused: this turn writes no more. */
  failure?: { error: unknown } | { refused: TurnVerdict }
  wakeRequested = false
  cancelRequested = false
  /** Commits applied so far. */
  commits = 0

  constructor(options: JournalOptions) {
    this.#options = options
  }

  get inFlight(): boolean {
    return this.#inFlight
  }

  /** Nothing urgent waits and nothing is on its way. */
  get idle(): boolean {
    return !this.#urgent && !this.#inFlight
  }

  get empty(): boolean {
    return this.#entries.length === 0 && !this.#inFlight
  }

  append(entry: Entry, options: { urgent: boolean }): void {
    if ('row' in entry) this.#held.delete(entry.row.row.seq)
    this.#entries.push(entry)
    this.#urgent ||= options.urgent
  }

  /**
   * Sets the order of the row that the body saw: in the row itself if it was not sent yet. One that waits
   * here and says something else lost against what the body saw, and its order would be lost with it.
   */
  stamp(stamp: OrderStamp, history: Pick<History, 'at'>): void {
    const seen = history.at(stamp.seq)
    for (const entry of this.#entries) {
      if ('row' in entry && entry.row.row.seq === stamp.seq && saysTheSame(entry.row.row, seen)) {
        entry.row.row = { ...entry.row.row, order: stamp.order }
        return
      }
    }
    this.#entries.push({ stamp })
  }

  /** Calls `then` once everything appended before it is durable; at once if it is. */
  barrier(then: () => void): void {
    if (this.empty) then()
    else this.append({ barrier: then }, { urgent: true })
  }

  /** A `running` row: dropped when its completion overtakes it, sent alone after a moment. */
  hold(row: StepCheckpoint): void {
    this.#held.set(row.seq, row)
    this.#flushSoon()
  }

  /** Lazy entries get a moment to find a commit that carries them, then one of their own. */
  linger(): void {
    if (this.#entries.length > 0) this.#flushSoon()
  }

  /** Sends what waits, if anything urgent does; with `all`, lazy entries too. */
  flush(options: { all?: boolean } = {}): void {
    if (this.#inFlight || this.failure) return
    const wanted = this.#urgent || (options.all === true && this.#entries.length > 0)
    if (!wanted) return
    const entries = this.#take()
    this.#inFlight = true
    void this.#send(entries)
  }

  /** The last write of a turn: whatever waits rides along. Rejects when the outcome is unknown. */
  async settle(settle: TurnSettle, runs: WorkflowRun[] = []): Promise<TurnVerdict> {
    const entries = this.#take(false)
    const commit = this.#commitOf(entries)
    if (runs.length > 0) commit.runs = [...(commit.runs ?? []), ...runs]
    const verdict = await this.#commit({ ...commit, settle }, entries)
    if (!verdict.applied) this.#entries = [...entries, ...this.#entries]
    return verdict
  }

  /** No timer outlives the turn. */
  close(): void {
    this.#heldTimer?.()
    this.#heldTimer = undefined
    this.#held.clear()
  }

  #flushSoon(): void {
    this.#heldTimer ??= this.#options.timers.after(HELD_MS, () => {
      this.#heldTimer = undefined
      if (this.#held.size === 0 && this.#entries.length === 0) return
      this.#urgent = true
      this.flush()
    })
  }

  #take(withHeld = true): Entry[] {
    const entries = this.#entries
    if (withHeld) for (const row of this.#held.values()) entries.push({ row: { row } })
    this.#held.clear()
    this.#entries = []
    this.#urgent = false
    return entries
  }

  async #send(entries: Entry[]): Promise<void> {
    try {
      const verdict = await this.#commit(this.#commitOf(entries), entries)
      if (!verdict.applied) this.failure = { refused: verdict }
    } catch (error) {
      this.failure = { error }
    } finally {
      this.#inFlight = false
    }
    this.#options.ring()
  }

  async #commit(commit: TurnCommit, entries: Entry[]): Promise<TurnVerdict> {
    let verdict: TurnVerdict
    if (isEmpty(commit)) {
      verdict = { ...NOTHING_WRITTEN }
    } else {
      try {
        verdict = await this.#options.store.commitTurn(commit)
      } catch (error) {
        // Unknown outcome. Rows are written unless settled, so sending once more is safe; not so a
        // verdict on failures, whose late copy would take back what came after it, nor the settle.
        if (commit.settle || entries.some((entry) => 'row' in entry && entry.once)) throw error
        verdict = await this.#options.store.commitTurn(commit)
      }
    }
    if (!verdict.applied) return verdict
    this.commits += 1
    this.wakeRequested ||= verdict.wakeRequested
    this.cancelRequested ||= verdict.cancelRequested
    this.#options.landed(
      entries.flatMap((entry) => ('row' in entry ? [entry.row.row.seq] : [])),
      verdict.stored
    )
    for (const entry of entries) {
      if ('barrier' in entry) entry.barrier()
      else if ('then' in entry) entry.then?.(verdict)
    }
    return verdict
  }

  #commitOf(entries: Entry[]): TurnCommit {
    const commit: TurnCommit = { ...this.#options.lease, nowMs: this.#options.clock() }
    const rows = entries.flatMap((entry) => ('row' in entry ? [entry.row] : []))
    const waits = entries.flatMap((entry) => ('wait' in entry ? [entry.wait] : []))
    const expiries = entries.flatMap((entry) => ('expiry' in entry ? [entry.expiry] : []))
    const stamps = entries.flatMap((entry) => ('stamp' in entry ? [entry.stamp] : []))
    const claims = entries.flatMap((entry) => ('claim' in entry ? [entry.claim] : []))
    const attributes = entries.flatMap((entry) => ('attributes' in entry ? [entry.attributes] : []))
    const children = entries.flatMap((entry) => ('child' in entry ? [entry.child] : []))
    const runs = entries.flatMap((entry) => ('run' in entry ? [entry.run] : []))
    if (children.length > 0) commit.children = children
    if (runs.length > 0) commit.runs = runs
    if (rows.length > 0) commit.rows = lastOfEach(rows)
    if (waits.length > 0) commit.waits = waits
    if (expiries.length > 0) commit.expiries = expiries
    if (stamps.length > 0) commit.stamps = stamps
    if (claims.length > 0) commit.claims = claims
    if (attributes.length > 0) {
      commit.searchAttributes = attributes.reduce((all, more) => ({ ...all, ...more }))
    }
    return commit
  }
}

const NOTHING_WRITTEN: TurnVerdict = {
  applied: true,
  status: 'running',
  wakeRequested: false,
  cancelRequested: false,
  awaited: false,
  stored: [],
}

/** The same answer of this turn, not one that reads alike. */
const saysTheSame = (a: StepCheckpoint, b: StepCheckpoint | undefined): boolean =>
  a.status === b?.status && a.error === b.error && a.output === b.output

function isEmpty(commit: TurnCommit): boolean {
  const { runId, owner, turn, nowMs, ...parts } = commit
  return Object.values(parts).every((part) => part === undefined)
}

/** Of several writes to one position in one commit only the last counts. */
function lastOfEach(rows: RowWrite[]): RowWrite[] {
  const bySeq = new Map<number, RowWrite>()
  for (const write of rows) {
    const earlier = bySeq.get(write.row.seq)
    const retryOf = write.retryOf ?? earlier?.retryOf
    bySeq.set(write.row.seq, retryOf === undefined ? write : { ...write, retryOf })
  }
  return [...bySeq.values()]
}
