/*
 * Warm runs: the decoded history of recently suspended runs, and the suspended machine itself where
 * continuations are on. What is kept counts only if nobody took a turn in between (the claim tells), so
 * the store sees no difference. Bounded by bytes, number and age; dropping something costs a replay.
 */
import type { Cancel, Clock, Timers } from '../foundation/clock.ts'
import type { History } from '../replay/history.ts'
import type { Replay } from '../replay/replay.ts'
import type { ClaimedRun } from '../store/ports/run_claims.ts'

export interface WarmRun {
  /** Turn after which it was kept. */
  turn: number
  /** When its run was created: one that is deleted and started again is another run. */
  bornAt: number
  history: History
  /** Positions the body waits on, and one past the last position it took. */
  openSeqs: number[]
  frontier: number
  /** Suspended body, if kept live. */
  replay?: Replay
}

export interface WarmRunsOptions {
  clock: Clock
  timers: Timers
  continuations: { max: number; idleMs: number } | false
  warmHistory: { maxBytes: number; idleMs: number }
  /** A kept body moved by itself: its run wants a turn. */
  onActivity: (runId: string) => void
}

interface Kept extends WarmRun {
  at: number
  bytes: number
}

const SWEEP_MS = 30_000

export class WarmRuns {
  readonly #options: WarmRunsOptions
  /** In the order in which they were kept: the first is the oldest. */
  readonly #runs = new Map<string, Kept>()
  readonly #live = new Set<string>()
  #bytes = 0
  #sweeper?: Cancel

  constructor(options: WarmRunsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#runs.size
  }

  get liveCount(): number {
    return this.#live.size
  }

  /** Takes out what is kept of a run, if it is what the claim continues; otherwise drops it. */
  take(claimed: ClaimedRun): WarmRun | undefined {
    const { run, previousStatus, previousTurns } = claimed
    const kept = this.#remove(run.id)
    if (!kept) return undefined
    const parked = previousStatus === 'suspended' || previousStatus === 'blocked'
    const same = run.createdAt.getTime() === kept.bornAt
    if (parked && same && previousTurns === kept.turn) return kept
    void kept.replay?.unwind()
    return undefined
  }

  keep(runId: string, warm: WarmRun): void {
    this.drop(runId)
    const { continuations, warmHistory, clock, timers, onActivity } = this.#options
    const bytes = warm.history.bytes
    if (bytes > warmHistory.maxBytes) {
      void warm.replay?.unwind()
      return
    }
    const kept: Kept = { ...warm, at: clock(), bytes }
    if (!continuations) kept.replay = undefined
    this.#runs.set(runId, kept)
    this.#bytes += bytes
    if (kept.replay) {
      this.#live.add(runId)
      kept.replay.onActivity = () => onActivity(runId)
    }
    this.#shrink()
    this.#sweeper ??= timers.every(SWEEP_MS, () => this.sweep())
  }

  /** Forgets a run; a live body is unwound and can write nothing. */
  drop(runId: string): void {
    void this.#remove(runId)?.replay?.unwind()
  }

  /** Unwinds every live body; histories stay. */
  dropLive(): void {
    for (const runId of [...this.#live]) this.#dropBody(runId)
  }

  clear(): void {
    for (const runId of [...this.#runs.keys()]) this.drop(runId)
    this.#sweeper?.()
    this.#sweeper = undefined
  }

  /** Drops what idled too long. */
  sweep(): void {
    const { clock, continuations, warmHistory } = this.#options
    const now = clock()
    for (const [runId, kept] of this.#runs) {
      const idle = now - kept.at
      if (idle > warmHistory.idleMs) this.drop(runId)
      else if (continuations && kept.replay && idle > continuations.idleMs) this.#dropBody(runId)
    }
    if (this.#runs.size > 0) return
    this.#sweeper?.()
    this.#sweeper = undefined
  }

  #shrink(): void {
    const { continuations, warmHistory } = this.#options
    for (const runId of this.#runs.keys()) {
      if (this.#bytes <= warmHistory.maxBytes) break
      this.drop(runId)
    }
    if (!continuations) return
    for (const runId of this.#live) {
      if (this.#live.size <= continuations.max) break
      this.#dropBody(runId)
    }
  }

  #dropBody(runId: string): void {
    const kept = this.#runs.get(runId)
    this.#live.delete(runId)
    if (!kept?.replay) return
    void kept.replay.unwind()
    kept.replay = undefined
  }

  #remove(runId: string): Kept | undefined {
    const kept = this.#runs.get(runId)
    if (!kept) return undefined
    this.#runs.delete(runId)
    this.#live.delete(runId)
    this.#bytes -= kept.bytes
    if (kept.replay) kept.replay.onActivity = undefined
    return kept
  }
}
