/*
 * Cancelling runs: at once, by a durable intent that makes the next turn undo what was done, or because
 * their time is up. A cancelled run keeps its mark until its children were told and its parent notified, so a process that
 * dies half way leaves no live child behind: the timer pass repeats the cascade.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import { isolate, type StepError } from '../../foundation/failure.ts'
import { nextLinkId } from '../../foundation/ids.ts'
import { childrenOf } from '../../insight/lineage.ts'
import { completionOf } from '../../replay/completion.ts'
import type { FullStore } from '../../store/full_store.ts'
import { runPages } from '../../store/paging.ts'
import { type Effect, releases } from '../../turns/effects.ts'
import type { RunFilter } from '../../types/query.ts'
import {
  isTerminalStatus,
  LIVE_RUN_STATUSES,
  type RunResult,
  type WorkflowRun,
} from '../../types/run.ts'
import type { EventHub } from '../event_hub.ts'
import type { Wakes } from '../wakes.ts'
import { resultOf } from './result.ts'
import { checkScope, withStatuses } from './scope.ts'

export interface CancelOptions {
  /** Run the saga undos first, highest position first. */
  compensate?: boolean
  /** Who asked; kept on the run. */
  by?: string
}

/** Why a run ends, and who wanted it to. */
interface RunEnd {
  error: StepError
  by?: string
}

const TIMED_OUT: StepError = { message: 'execution timeout', code: 'execution_timeout' }
const UNFINISHED_BATCH = 100
const CANCELS_A_PAGE = 100

export interface CancellerOptions {
  store: FullStore
  hub: EventHub
  wakes: Pick<Wakes, 'newsInBackground'>
  effect: (effect: Effect) => void
  /** Tells other instances of a cancel. */
  broadcast: (runId: string) => void
  clock: Clock
  report: (error: unknown, what: string) => void
}

export class Canceller {
  readonly #options: CancellerOptions

  readonly #listeners = new Set<{ call: (runId: string) => void }>()

  constructor(options: CancellerOptions) {
    this.#options = options
  }

  onCancel(listener: (runId: string) => void): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  async cancel(runId: string, options: CancelOptions = {}): Promise<RunResult | null> {
    checkOptions('cancel', options)
    return this.#cancel(runId, options)
  }

  async #cancel(runId: string, options: CancelOptions): Promise<RunResult | null> {
    const { store } = this.#options
    const run = await store.getRun(runId)
    if (!run) return null
    if (isTerminalStatus(run.status)) return resultOf(run)
    // Undos that were asked for are not skipped by a second, plain cancel.
    if (run.cancelRequestedAt !== undefined) return resultOf(run)
    // A run that never began has nothing to undo.
    if (options.compensate && run.turns !== undefined) return this.#request(run, options)
    return this.#end(run, { error: { message: 'cancelled' }, by: options.by })
  }

  /**
   * Ends a run whose time is up, without undos, and its children with it. True when this ended it: one
   * that was over meanwhile stays as it is.
   */
  timeOut(run: WorkflowRun): Promise<boolean> {
    return this.#endLive(run, { error: { ...TIMED_OUT } })
  }

  /**
   * Cancels the children of a cancelled run, following chains to their frontier, notifies its parent,
   * removes its waits, and clears the mark. The run is terminal before its children are visited, so cycles end.
   */
  async tellChildren(runId: string): Promise<void> {
    const { store, effect } = this.#options
    const run = await store.getRun(runId)
    if (run?.status !== 'cancelled' || run.cancelRequestedAt === undefined) return
    const options = { compensate: run.cancelCompensates, by: run.cancelRequestedBy }
    for (const child of await childrenOf(store, runId)) await this.#cancelChain(child, options)
    if (run.awaited) {
      effect({ kind: 'notifyParent', childId: runId, completion: completionOf(run) })
    }
    const waiters = await store.listSignalWaitersByRunIds([runId])
    for (const waiter of waiters) await store.removeSignalWaiter(waiter)
    await store.updateRunIf(runId, ['cancelled'], { cancelRequestedAt: undefined })
  }

  /** Cancels runs that nobody waits for any more, each at the live end of its chain. */
  async cancelRuns(runIds: string[]): Promise<void> {
    for (const runId of runIds) await this.#cancelChain(runId, {})
  }

  /**
   * Cancels every live run that matches, each through `cancel`; by cursor, so that runs which end or come
   * meanwhile move no page.
   */
  async cancelWhere(filter: RunFilter, options: CancelOptions = {}): Promise<RunResult[]> {
    checkScope('cancelWhere', filter)
    checkOptions('cancelWhere', options)
    const results: RunResult[] = []
    const live = withStatuses(filter, LIVE_RUN_STATUSES)
    for await (const page of runPages(this.#options.store, live, CANCELS_A_PAGE)) {
      for (const { id } of page) {
        const result = await this.#cancel(id, options)
        if (result) results.push(result)
      }
    }
    return results
  }

  /** Repeats what a process that died left undone. */
  async finishCancels(namespace: string | undefined): Promise<void> {
    const { store, effect } = this.#options
    for (const { id } of await store.listUnfinishedCancels(namespace, UNFINISHED_BATCH)) {
      effect({ kind: 'tellChildren', runId: id })
    }
  }

  /** The live link of a chain is cancelled, whichever link is known. */
  async #cancelChain(runId: string, options: CancelOptions): Promise<void> {
    const { store } = this.#options
    for (let id: string | undefined = runId; id !== undefined;) {
      const result: RunResult | null = await this.#cancel(id, options)
      const continued: boolean = result?.status === 'completed' && result.output === undefined
      const next: string = nextLinkId(id)
      id = continued && (await store.getRun(next)) ? next : undefined
    }
  }

  async #request(run: WorkflowRun, options: CancelOptions): Promise<RunResult | null> {
    const { store, wakes, clock } = this.#options
    const now = clock()
    const patch: Partial<WorkflowRun> = {
      cancelRequestedAt: now,
      cancelCompensates: true,
      wakeRequestedAt: now,
    }
    if (options.by !== undefined) patch.cancelRequestedBy = options.by
    const live = await store.updateRunIf(run.id, [...LIVE_RUN_STATUSES], patch)
    if (!live) return this.#current(run.id)
    this.#announce(run.id)
    wakes.newsInBackground(run.id)
    return resultOf(run)
  }

  async #end(run: WorkflowRun, end: RunEnd): Promise<RunResult | null> {
    if (!(await this.#endLive(run, end))) return this.#current(run.id)
    return { runId: run.id, status: 'cancelled', error: end.error }
  }

  /** False, nothing done, when the run is over. */
  async #endLive(run: WorkflowRun, { error, by }: RunEnd): Promise<boolean> {
    const { store, hub, clock, effect } = this.#options
    const patch: Partial<WorkflowRun> = {
      status: 'cancelled',
      error,
      wakeAt: undefined,
      wakeRequestedAt: undefined,
      cancelRequestedAt: clock(),
      cancelCompensates: undefined,
      // Its holder writes nothing more, and may not live to let go of it.
      lockedBy: undefined,
      lockedUntil: undefined,
      updatedAt: new Date(clock()),
    }
    if (by !== undefined) patch.cancelRequestedBy = by
    if (!(await store.updateRunIf(run.id, [...LIVE_RUN_STATUSES], patch))) return false
    const { id, workflow, namespace } = run
    hub.emit({ type: 'run.failed', runId: id, workflow, namespace, error })
    this.#announce(id)
    effect({ kind: 'tellChildren', runId: id })
    for (const release of releases(run)) effect(release)
    return true
  }

  #announce(runId: string): void {
    this.tell(runId)
    this.#options.broadcast(runId)
  }

  /** Tells listeners of a cancel, wherever it was. */
  tell(runId: string): void {
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(runId),
        (error) => this.#options.report(error, 'a listener of cancelled runs')
      )
    }
  }

  async #current(runId: string): Promise<RunResult | null> {
    const run = await this.#options.store.getRun(runId)
    return run && resultOf(run)
  }
}

const OPTIONS: Record<keyof CancelOptions, string> = { compensate: 'boolean', by: 'string' }

/** A flag that got lost on the way would cancel without the undos that were asked for. */
function checkOptions(verb: string, options: unknown): void {
  const refuse = (what: string, problem: string): never => {
    throw new InvalidArgumentError(`${verb}: ${what}`, problem)
  }
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    refuse('the options', `must be an object, such as { compensate: true }, got ${String(options)}`)
  }
  for (const [key, value] of Object.entries(options as object)) {
    if (!Object.hasOwn(OPTIONS, key)) {
      refuse(`"${key}"`, `is no option; there are ${Object.keys(OPTIONS).join(' and ')}`)
    }
    const type = OPTIONS[key as keyof CancelOptions]
    const actual = typeof value
    if (value === undefined || actual === type) continue
    const given = typeof value === 'string' ? JSON.stringify(value.slice(0, 50)) : String(value)
    refuse(key, `must be a ${type}, got ${given}`)
  }
}
