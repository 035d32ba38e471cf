/*
 * Recovery: runs left `running` by an executor that is gone. A run with a dispatched step in flight is
 * no orphan: it parks, due at once, and counts no attempt. Any other is counted and set back to
 * `pending`, or is dead when it was picked up too often. Recovery holds the lease under a name of its
 * own, so that a late commit of the lost turn, even one of this very process, is refused.
 */
import type { Clock } from '../../foundation/clock.ts'
import { PayloadCodecError } from '../../errors.ts'
import { bestEffort, hasCode, type StepError } from '../../foundation/failure.ts'
import { completionOf } from '../../replay/completion.ts'
import type { FullStore } from '../../store/full_store.ts'
import { withoutSingletonMarkers } from '../../store/ports/singleton_rules.ts'
import type { TurnVerdict } from '../../store/ports/turn_commits.ts'
import type { Effect } from '../../turns/effects.ts'
import type { TurnSettings } from '../../turns/needs.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { RunResult, RunStatus, WorkflowRun } from '../../types/run.ts'
import type { EventHub } from '../event_hub.ts'
import type { LostSends } from '../runs/lost_sends.ts'
import { resultOf } from '../runs/result.ts'
import type { Wakes } from '../wakes.ts'

export interface RecoveryOptions {
  store: FullStore
  hub: EventHub
  wakes: Pick<Wakes, 'started' | 'newsInBackground'>
  lostSends: LostSends
  effect: (effect: Effect) => void
  /** Told of every run that goes dead here. */
  onDead: (run: WorkflowRun) => void
  clock: Clock
  settings: TurnSettings
  maxRecoveryAttempts: number
  namespace?: string
  isExecuting: (runId: string) => boolean
  report: (error: unknown, what: string) => void
}

/** How long a run whose payloads cannot be read here is left to processes that can. */
const UNREADABLE_MS = 60_000

export class Recovery {
  readonly #options: RecoveryOptions
  readonly #unreadable = new Map<string, number>()
  /** Runs on which a lease of this may still stand, though nobody works under it. */
  readonly #unreleased = new Set<string>()

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** One pass; one run's failure never stops it. Answers the runs it moved. */
  async recover(nowMs: number): Promise<RunResult[]> {
    const { store, namespace, isExecuting, report } = this.#options
    const moved: RunResult[] = []
    // They would lapse; nobody needs to wait for that.
    for (const runId of [...this.#unreleased]) await this.#release(runId)
    for (const orphan of await store.listOrphanedRuns(nowMs, namespace)) {
      if (isExecuting(orphan.id) || this.#isLeftAlone(orphan.id, nowMs)) continue
      try {
        const result = await this.#take(orphan.id, nowMs)
        if (result) moved.push(result)
      } catch (error) {
        if (hasCode(error, PayloadCodecError.code)) {
          this.#unreadable.set(orphan.id, nowMs + UNREADABLE_MS)
        }
        report(error, `the recovery of run ${orphan.id}`)
      }
    }
    return moved
  }

  #isLeftAlone(runId: string, nowMs: number): boolean {
    const until = this.#unreadable.get(runId)
    if (until === undefined || until > nowMs) return until !== undefined
    this.#unreadable.delete(runId)
    return false
  }

  async #take(runId: string, nowMs: number): Promise<RunResult | undefined> {
    const { store, lostSends } = this.#options
    const owner = this.#owner
    if (!(await this.#lock(runId, nowMs))) return undefined
    let moved = false
    try {
      const run = await store.getRun(runId)
      if (run?.status !== 'running') return undefined
      // Written by somebody who counts no turns: from here on they are counted.
      if (run.turns === undefined) await store.updateRunIf(runId, ['running'], { turns: 0 })
      // Not sent, not moved: no later turn would send it. The next pass takes the run again.
      const inFlight = await lostSends.resend(run)
      const verdict =
        inFlight.length > 0
          ? await this.#park(run, inFlight, owner)
          : await this.#redrive(run, owner)
      moved = verdict.applied
      if (!moved) return undefined
      return resultOf({ ...run, status: verdict.status ?? run.status, error: undefined })
    } finally {
      if (!moved) await this.#release(runId)
    }
  }

  get #owner(): string {
    return `${this.#options.settings.instanceId}/recovery`
  }

  async #lock(runId: string, nowMs: number): Promise<boolean> {
    const { store, clock, settings } = this.#options
    try {
      const until = clock() + settings.leaseMs
      // A lease on a run that ended meanwhile would stand there for good if this process died too.
      return await store.tryLockRun(runId, this.#owner, until, nowMs, ['running'])
    } catch (error) {
      // It may have been taken all the same.
      this.#unreleased.add(runId)
      throw error
    }
  }

  async #release(runId: string): Promise<void> {
    const { store, report } = this.#options
    this.#unreleased.add(runId)
    const release = store.releaseRunLock(runId, this.#owner).then(() => {
      this.#unreleased.delete(runId)
    })
    await bestEffort('the lease lapses by itself, and the next pass lets go of it', release, report)
  }

  /** Its work is on a transport. */
  async #park(run: WorkflowRun, inFlight: StepCheckpoint[], owner: string): Promise<TurnVerdict> {
    const { store, clock, settings, wakes } = this.#options
    const now = clock()
    // The lost turn may have been claimed for news that nobody has read.
    await store.updateRunIf(run.id, ['running'], { wakeRequestedAt: now })
    const wakeAts = inFlight.flatMap((row) => (row.wakeAt === undefined ? [] : [row.wakeAt]))
    const fallback = settings.reconcileMs > 0 ? now + settings.reconcileMs : Infinity
    const wakeAt = Math.min(...wakeAts, fallback)
    const verdict = await this.#settle(run, owner, 'suspended', {
      wakeAt: Number.isFinite(wakeAt) ? wakeAt : undefined,
    })
    if (verdict.applied) wakes.newsInBackground(run.id)
    return verdict
  }

  async #redrive(run: WorkflowRun, owner: string): Promise<TurnVerdict> {
    const { maxRecoveryAttempts, wakes, hub } = this.#options
    const attempts = (run.recoveryAttempts ?? 0) + 1
    if (attempts > maxRecoveryAttempts) {
      const error = {
        message: `crashed ${attempts} times without progress, at most ${maxRecoveryAttempts} pickups are allowed`,
        code: 'max_recovery_attempts',
      }
      const verdict = await this.#settle(run, owner, 'dead', { error, recoveryAttempts: attempts })
      if (verdict.applied) {
        const { id, workflow, namespace } = run
        hub.emit({ type: 'run.failed', runId: id, workflow, namespace, error })
        if (verdict.awaited) {
          const completion = completionOf({ status: 'dead', error })
          this.#options.effect({ kind: 'notifyParent', childId: id, completion })
        }
        this.#options.onDead(buried(run, error, attempts))
      }
      return verdict
    }
    // Counted before the run is driven again: a crash in that turn counts too.
    const verdict = await this.#settle(run, owner, 'pending', { recoveryAttempts: attempts })
    if (verdict.applied) wakes.started(run)
    return verdict
  }

  #settle(
    run: WorkflowRun,
    owner: string,
    status: RunStatus,
    patch: Partial<WorkflowRun>
  ): Promise<TurnVerdict> {
    const { store, clock } = this.#options
    return store.commitTurn({
      runId: run.id,
      owner,
      turn: run.turns ?? 0,
      nowMs: clock(),
      settle: { status, patch, evenIfCancelRequested: true },
    })
  }
}

/** The run as its dead row reads. */
function buried(run: WorkflowRun, error: StepError, recoveryAttempts: number): WorkflowRun {
  const dead: WorkflowRun = { ...run, status: 'dead', error, recoveryAttempts }
  delete dead.lockedBy
  delete dead.lockedUntil
  if (run.tags) dead.tags = withoutSingletonMarkers(run.tags)
  return dead
}
