/*
 * Operator verbs: running a run now, and bringing a failed or dead one back. A retry takes back the
 * attempts of what failed, or the replay would rethrow its own history at once; which failures are
 * really tried again the next turn decides (turns/reopen.ts). All of it happens under the run's lease,
 * held under a name of its own: a second operator, or a write that comes late, changes nothing.
 */
import { NamespaceMismatch, RunNotFoundError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import { CHILD_ROW } from '../../foundation/ids.ts'
import { tagsOfReopened } from '../../flow/singletons.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { TurnSettings, WorkflowLookup } from '../../turns/needs.ts'
import type { TurnQueue } from '../../turns/turn_queue.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../../types/checkpoint.ts'
import type { RunResult, RunStatus, WorkflowRun } from '../../types/run.ts'
import type { Wakes } from '../wakes.ts'
import type { LostSends } from './lost_sends.ts'
import type { RunLeases } from './run_leases.ts'
import { resultOf, resultOfTurn } from './result.ts'

export interface OperatorOptions {
  store: FullStore
  queue: TurnQueue
  wakes: Pick<Wakes, 'started' | 'newsInBackground'>
  lostSends: LostSends
  leases: RunLeases
  /** Another run goes on in its place: it stays as it is. */
  isFollowed: (run: WorkflowRun) => Promise<boolean>
  lookup: Pick<WorkflowLookup, 'find'>
  clock: Clock
  settings: Pick<TurnSettings, 'instanceId'>
  /** Scope of this process; undefined drives every namespace. */
  namespace?: string
}

const FAILED: RunStatus[] = ['failed', 'dead']
const PARKED: RunStatus[] = ['pending', 'suspended', 'blocked', 'running']

export class Operator {
  readonly #options: OperatorOptions

  constructor(options: OperatorOptions) {
    this.#options = options
  }

  /** Executes a turn of the run here and now; a failed run is re-opened first. */
  async resume(runId: string): Promise<RunResult> {
    const { store, queue, wakes } = this.#options
    const run = await store.getRun(runId)
    if (!run) throw new RunNotFoundError(runId)
    if (run.status === 'completed' || run.status === 'cancelled' || run.status === 'dead') {
      return resultOf(run)
    }
    const { namespace } = this.#options
    const theirs = run.namespace ?? 'default'
    if (namespace !== undefined && theirs !== namespace) {
      throw new NamespaceMismatch(runId, theirs, namespace)
    }
    if (run.status === 'failed') await this.#leased(runId, (now) => this.#reopen(now, ['failed']))
    const report = await queue.run(runId)
    if (report?.refused) throw report.refused
    if (report && !report.lost) return resultOfTurn(report)
    // Another executor holds it: it will hear of the request.
    if (!report) wakes.newsInBackground(runId)
    return resultOf((await store.getRun(runId)) ?? run)
  }

  /** Sets the run back to `pending` and dispatches it; never runs the body inline. */
  async requeue(runId: string): Promise<RunResult | null> {
    const { store, wakes } = this.#options
    const run = await store.getRun(runId)
    if (!run) return null
    if (run.status === 'completed' || run.status === 'cancelled') return resultOf(run)
    // Never a run that somebody holds: clearing a live lease would run the body twice.
    const reopened = await this.#leased(runId, (now) =>
      FAILED.includes(now.status) ? this.#reopen(now, FAILED) : this.#setBack(now)
    )
    if (!reopened) return this.#current(runId)
    wakes.started(run)
    return { runId, status: 'pending' }
  }

  /** A run whose executor is gone leaves recovery's hands: what it did not send goes out first. */
  async #setBack(run: WorkflowRun): Promise<boolean> {
    const { store, lostSends, clock } = this.#options
    if (run.status === 'running') await lostSends.resend(run)
    return store.updateRunIf(run.id, PARKED, {
      status: 'pending',
      wakeAt: undefined,
      updatedAt: new Date(clock()),
    })
  }

  /** False when somebody holds the run. */
  async #leased(runId: string, work: (run: WorkflowRun) => Promise<boolean>): Promise<boolean> {
    return (await this.#options.leases.hold(runId, this.#owner, work)) ?? false
  }

  /**
   * Takes back the failure, then the attempts of what failed: a failure that is noted on a row in between
   * is seen by the one or the other (delivery/results.ts).
   */
  async #reopen(run: WorkflowRun, from: RunStatus[]): Promise<boolean> {
    const { store, clock, isFollowed } = this.#options
    if (await isFollowed(run)) return false
    const flipped = await store.updateRunIf(run.id, from, {
      status: 'pending',
      error: undefined,
      recoveryAttempts: 0,
      wakeAt: undefined,
      wakeRequestedAt: undefined,
      cancelRequestedAt: undefined,
      deadlineAt: this.#newDeadline(run),
      tags: tagsOfReopened(run.tags),
      updatedAt: new Date(clock()),
    })
    if (flipped) await this.#takeBack(run)
    return flipped
  }

  /** A run that is brought back has its whole budget again. */
  #newDeadline({ workflow, workflowVersion, deadlineAt, createdAt }: WorkflowRun) {
    const { lookup, clock } = this.#options
    const known = lookup.find(workflow, workflowVersion)
    // A process that does not run the workflow reads the budget off the run.
    const kept = deadlineAt === undefined ? undefined : deadlineAt - createdAt.getTime()
    const budget = known ? known.executionTimeoutMs : kept
    return budget === undefined ? undefined : clock() + budget
  }

  async #takeBack(run: WorkflowRun): Promise<void> {
    const { store, clock } = this.#options
    const recorded = await store.listCheckpoints(run.id)
    const rows = recorded.flatMap((row) => resetRow(row, clock()) ?? [])
    if (rows.length === 0) return
    if (!store.capabilities.transaction) {
      for (const row of rows) await store.saveCheckpoint(row)
      return
    }
    const fence = { owner: this.#owner, turn: run.turns ?? 0 }
    await store.transaction(async (tx) => {
      for (const row of rows) await tx.saveCheckpoint(row, fence)
    })
  }

  get #owner(): string {
    return `${this.#options.settings.instanceId}/operator`
  }

  async #current(runId: string): Promise<RunResult | null> {
    const run = await this.#options.store.getRun(runId)
    return run && resultOf(run)
  }
}

/** A row whose failure is taken back; undefined for one that stays. */
function resetRow(row: StepCheckpoint, now: number): StepCheckpoint | undefined {
  if (row.seq < 0) {
    return row.attempts === 0 ? undefined : { ...row, status: 'failed', attempts: 0 }
  }
  if (row.kind === 'signal') return resetChild(row)
  if (row.kind !== 'local' && row.kind !== 'remote') return undefined
  const { error = { message: 'failed' }, attempts } = row
  // An answer that came while the run was over: a failure nobody has seen is simply tried again.
  if (row.status === 'pending' && row.error) {
    return { ...row, status: 'failed', attempts: 0, error: { ...error, retryable: true } }
  }
  if (row.status !== 'failed' || attempts === 0) return undefined
  const reset = { attempts, retryable: error.retryable }
  return { ...row, attempts: 0, wakeAt: now, error: { ...error, retryable: true, reset } }
}

/** A child that ended with a failure: whether it is waited for anew the next turn decides. */
function resetChild(row: StepCheckpoint): StepCheckpoint | undefined {
  const completion = row.output as CompletionEnvelope | null | undefined
  const failed = row.status === 'completed' && completion?.ok === false
  if (!failed || !row.name.startsWith(CHILD_ROW)) return undefined
  const error = { message: completion.error, reset: { attempts: row.attempts } }
  return { ...row, status: 'failed', attempts: 0, error }
}
