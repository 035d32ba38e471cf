/*
 * The turn queue: which runs execute here. A wake for a run that executes rings its turn and leaves a
 * durable request; any other wake claims the run, or stamps the request. A wake is handed over once the
 * run is claimed here or stamped (invariant 9), so its message may be acknowledged then.
 */
import { bestEffort } from '../foundation/failure.ts'
import { isTerminalStatus, LIVE_RUN_STATUSES, type RunStatus } from '../types/run.ts'
import type { ClaimedRun, DueClaim } from '../store/ports/run_claims.ts'
import type { TurnReport } from './effects.ts'
import type { TurnNeeds } from './needs.ts'
import type { RunTurn, TurnHandle } from './run_turn.ts'

export interface TurnQueueOptions {
  needs: TurnNeeds
  runTurn: RunTurn
  namespace?: string
  /** Turns that execute at once. */
  slots: number
  /** A drain began: passes claim nothing more. */
  draining: () => boolean
  /** Called for every turn that ended, before anybody who waits for it. */
  onReport: (report: TurnReport) => void
}

interface Executing {
  handle: TurnHandle
  done: Promise<TurnReport>
  /** This turn's run carries a durable wake request already. */
  stamped: boolean
}

const CLAIMABLE: RunStatus[] = ['pending', 'suspended', 'blocked']
/** How long a run that this process cannot run is left alone. */
const REFUSED_MS = 60_000

export class TurnQueue {
  readonly #options: TurnQueueOptions
  readonly #executing = new Map<string, Executing>()
  readonly #claiming = new Map<string, { again: boolean }>()
  readonly #handOvers = new Set<Promise<void>>()
  readonly #refused = new Map<string, number>()
  /** Slots that passes under way have asked runs for. */
  #asked = 0
  /** Runs that want a turn and found no slot; their rows say so too. */
  readonly #backlog = new Set<string>()
  readonly #waitingPasses = new Map<DueClaim['kind'], Promise<TurnReport[]>>()
  /** Passes that wait for a slot. */
  #waiting: (() => void)[] = []

  constructor(options: TurnQueueOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#executing.size
  }

  get freeSlots(): number {
    return Math.max(0, this.#options.slots - this.#executing.size - this.#claiming.size)
  }

  isExecuting(runId: string): boolean {
    return this.#executing.has(runId)
  }

  /** A body of this run executes here now, or may yet do more: not so a turn that only settles. */
  isUnderWay(runId: string): boolean {
    return this.#executing.get(runId)?.handle.parking === false
  }

  /** The process ends: turns that await dispatched steps park. */
  leave(): void {
    for (const { handle } of this.#executing.values()) {
      handle.leaving = true
      handle.leave()
    }
  }

  /** Turns in flight, and what is about to become one, for a drain. */
  inFlight(): Promise<unknown>[] {
    return [...this.#handOvers, ...[...this.#executing.values()].map((turn) => turn.done)]
  }

  /** News of a run. Resolves when handed over; rejects when the store did not take it. */
  async wake(runId: string): Promise<void> {
    for (;;) {
      const turn = this.#executing.get(runId)
      if (!turn) break
      if (turn.handle.parking) {
        await turn.done
        continue
      }
      turn.handle.ring()
      if (turn.stamped) return
      await this.request(runId)
      turn.stamped = true
      // The turn may have settled before the stamp: then nobody else reads it soon.
      const now = this.#executing.get(runId)
      if (now === turn && !turn.handle.parking) return
      if (now !== undefined && now !== turn) continue
      const { status, lost } = await turn.done
      if (!lost && isTerminalStatus(status)) return
    }
    if (this.freeSlots === 0) {
      this.#backlog.add(runId)
      await this.request(runId)
      return
    }
    if (await this.#claimAndRun(runId)) return
    if (!(await this.request(runId))) return
    // The holder may have released in between.
    await this.#claimAndRun(runId)
  }

  /** The first turn of a run whose row is `pending`: the row itself is the request. True when it begins. */
  async begin(runId: string): Promise<boolean> {
    // Taken from us meanwhile and set back to pending: the turn that lost it ends first.
    await this.#executing.get(runId)?.done
    if (this.freeSlots > 0) return this.#claimAndRun(runId)
    this.#backlog.add(runId)
    return false
  }

  /** The turn of this run that executes here. */
  turnOf(runId: string): Promise<TurnReport> | undefined {
    return this.#executing.get(runId)?.done
  }

  /** Claims and executes; undefined when the run could not be claimed. */
  async run(runId: string): Promise<TurnReport | undefined> {
    if (this.isUnderWay(runId)) return this.turnOf(runId)
    // A turn that only settles is over in a moment; the caller wants the next one.
    await this.turnOf(runId)
    let turn: Promise<TurnReport> | undefined
    await this.#untilBegun(this.#claim(runId), (claimed) => {
      if (claimed) turn = this.#execute(claimed)
    })
    return turn
  }

  /**
   * Claims what is due, as many as there are slots, until nothing is left; in order of claim. A pass that
   * finds another of its kind waiting for a slot joins it: it would claim the same.
   */
  async runDue(kind: DueClaim['kind'], nowMs: number, limit = Infinity): Promise<TurnReport[]> {
    const waiting = this.#waitingPasses.get(kind)
    if (waiting) return waiting
    if (this.freeSlots > this.#asked) return this.#pass(kind, nowMs, limit)
    const pass = this.#slotFreed().then(() => {
      this.#waitingPasses.delete(kind)
      return this.#pass(kind, nowMs, limit)
    })
    this.#waitingPasses.set(kind, pass)
    return pass
  }

  async #pass(kind: DueClaim['kind'], nowMs: number, limit: number): Promise<TurnReport[]> {
    const reports: Promise<TurnReport>[] = []
    let left = limit
    while (left > 0 && !this.#options.draining()) {
      while (this.freeSlots <= this.#asked) await this.#slotFreed()
      const want = Math.min(this.freeSlots - this.#asked, left)
      const claimed = await this.#untilBegun(this.#claimDue(kind, nowMs, want), (runs) => {
        for (const one of runs) reports.push(this.#execute(one))
      })
      left -= claimed.length
      if (claimed.length < want) break
    }
    return Promise.all(reports)
  }

  async #claimDue(kind: DueClaim['kind'], nowMs: number, limit: number): Promise<ClaimedRun[]> {
    const { needs, namespace } = this.#options
    const { instanceId, leaseMs } = needs.settings
    const exclude = [...this.#stillRefused(), ...this.#executingStill()]
    this.#asked += limit
    try {
      return await needs.store.claimDueRuns({
        kind,
        owner: instanceId,
        leaseUntilMs: needs.clock() + leaseMs,
        nowMs,
        namespace,
        limit,
        ...(exclude.length > 0 ? { exclude } : {}),
      })
    } finally {
      this.#asked -= limit
      queueMicrotask(() => this.#next())
    }
  }

  async #claimAndRun(runId: string): Promise<boolean> {
    const claimed = await this.#claim(runId)
    if (!claimed) return false
    void this.#execute(claimed)
    return true
  }

  async #claim(runId: string): Promise<ClaimedRun | null> {
    const asked = this.#claiming.get(runId)
    if (asked) {
      asked.again = true
      return null
    }
    const claim = { again: false }
    this.#claiming.set(runId, claim)
    try {
      for (;;) {
        claim.again = false
        const claimed = await this.#ask(runId)
        // Whoever asked meanwhile may have done so because the run became free after this answer.
        if (claimed || !claim.again) return claimed
      }
    } finally {
      this.#claiming.delete(runId)
      this.#next()
    }
  }

  #ask(runId: string): Promise<ClaimedRun | null> {
    const { needs, namespace } = this.#options
    const nowMs = needs.clock()
    return needs.store.claimRun({
      runId,
      owner: needs.settings.instanceId,
      leaseUntilMs: nowMs + needs.settings.leaseMs,
      nowMs,
      from: CLAIMABLE,
      namespace,
    })
  }

  #execute(claimed: ClaimedRun): Promise<TurnReport> {
    const runId = claimed.run.id
    const leaving = this.#options.draining()
    const handle: TurnHandle = { ring: () => {}, leave: () => {}, leaving, parking: false }
    // A turn of ours that lost its lease may still unwind: one body at a time.
    const before = this.#executing.get(runId)?.done
    const done = this.#turn(claimed, handle, before).finally(() => {
      if (this.#executing.get(runId) === executing) this.#executing.delete(runId)
      this.#next()
    })
    const executing: Executing = { handle, done, stamped: false }
    this.#executing.set(runId, executing)
    return done
  }

  async #turn(
    claimed: ClaimedRun,
    handle: TurnHandle,
    before: Promise<unknown> | undefined
  ): Promise<TurnReport> {
    const { runTurn, needs, onReport } = this.#options
    await before
    const report = await runTurn.execute(claimed, handle, needs.settings.instanceId)
    if (report.refused) {
      this.#refused.set(report.runId, needs.clock() + REFUSED_MS)
      needs.report(report.refused, `run ${report.runId} is left to other processes`)
    }
    // The turn's end found a wake request: the next turn starts as soon as this one is over.
    if (report.again)
      this.#handOver('the timer poll sees the wake request', this.wake(report.runId))
    onReport(report)
    return report
  }

  /** A drain waits for a claim under way: the store may have handed over what nobody executes yet. */
  async #untilBegun<T>(claim: Promise<T>, begin: (claimed: T) => void): Promise<T> {
    const begun = claim.then((claimed) => {
      begin(claimed)
      return claimed
    })
    const over = () => void this.#handOvers.delete(tracked)
    const tracked: Promise<void> = begun.then(over, over)
    this.#handOvers.add(tracked)
    return begun
  }

  /** Tracked from here on: a drain must not end between two turns. */
  #handOver(reason: string, work: Promise<unknown>): void {
    const tracked: Promise<void> = bestEffort(reason, work, this.#options.needs.report).finally(
      () => this.#handOvers.delete(tracked)
    )
    this.#handOvers.add(tracked)
  }

  #slotFreed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #next(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
    for (const runId of this.#backlog) {
      if (this.freeSlots === 0) return
      this.#backlog.delete(runId)
      this.#handOver('the row is due for a poll', this.#claimAndRun(runId))
    }
  }

  /** The run carries a durable request for a turn; false for one that is over. */
  request(runId: string): Promise<boolean> {
    const { store, clock } = this.#options.needs
    const now = clock()
    return store.updateRunIf(runId, [...LIVE_RUN_STATUSES], { wakeRequestedAt: now })
  }

  /** Due although they execute here: their lease was lost, and their bodies may still run. */
  #executingStill(): string[] {
    return [...this.#executing].filter(([, { handle }]) => !handle.parking).map(([runId]) => runId)
  }

  #stillRefused(): string[] {
    const now = this.#options.needs.clock()
    for (const [runId, until] of this.#refused) if (until <= now) this.#refused.delete(runId)
    return [...this.#refused.keys()]
  }
}
