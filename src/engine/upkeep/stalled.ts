/*
 * The pager: tells listeners of runs that should have moved and did not, once each until they move. A
 * pass looks at a bounded number of runs and goes on where the one before it stopped.
 */
import { isolate } from '../../foundation/failure.ts'
import { mapBounded } from '../../foundation/pool.ts'
import { Seldom } from '../../foundation/seldom.ts'
import { stallOf } from '../../insight/stalled.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { SignalWaiter } from '../../types/checkpoint.ts'
import type { StalledListener, StalledRunInfo } from '../../types/housekeeping.ts'
import type { RunFilter } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { Walk } from './walk.ts'

export interface StalledRunsOptions {
  store: Pick<FullStore, 'listRuns' | 'listSignalWaitersByRunIds' | 'queryCheckpoints'>
  stalledAfterMs: number
  reconcileMs: number
  namespace?: string
  draining: () => boolean
  report: (error: unknown, what: string) => void
}

const BETWEEN_PASSES_MS = 60_000
const RUNS_A_PAGE = 100
const MOST_PAGES = 5
const AT_ONCE = 8
/** Open rows of a run that are looked at, the last ones. */
const OPEN_ROWS = 100
/** Runs that are remembered as told. */
const MOST_TOLD = 10_000

export class StalledRuns {
  readonly #options: StalledRunsOptions
  readonly #listeners = new Set<{ call: StalledListener }>()
  /** Since when each run is silent that was told of. */
  readonly #told = new Map<string, number>()
  readonly #silent = new Walk()
  readonly #waiting = new Walk()
  readonly #passes = new Seldom(BETWEEN_PASSES_MS)
  #isUnderWay = false

  constructor(options: StalledRunsOptions) {
    this.#options = options
  }

  onStalled(listener: StalledListener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** One pass, at most one a minute; answers whom it told of. Reads nothing where nobody listens. */
  async sweep(nowMs: number): Promise<StalledRunInfo[]> {
    if (this.#isUnderWay || this.#listeners.size === 0 || this.#options.draining()) return []
    if (!this.#passes.take(nowMs)) return []
    this.#isUnderWay = true
    try {
      return await this.#pass(nowMs)
    } finally {
      this.#isUnderWay = false
    }
  }

  async #pass(nowMs: number): Promise<StalledRunInfo[]> {
    const { stalledAfterMs, reconcileMs, namespace } = this.#options
    const silent = nowMs - stalledAfterMs + 1
    const found = await this.#look(this.#silent, nowMs, {
      statuses: ['pending', 'running', 'suspended', 'blocked'],
      updatedBefore: silent,
      // No run changes before it begins; said as well, since a walk is in the order in which they began.
      createdBefore: silent,
      namespace,
    })
    // Runs that wait for news are looked at again and again, which changes their rows.
    const wakeBefore = nowMs + reconcileMs
    const waiting: RunFilter = { statuses: ['suspended'], wakeBefore, createdBefore: silent }
    found.push(...(await this.#look(this.#waiting, nowMs, { ...waiting, namespace })))
    const news = new Map<string, StalledRunInfo>()
    for (const info of found) if (this.#isNews(info, nowMs)) news.set(info.run.id, info)
    for (const info of news.values()) this.#tell(info)
    return [...news.values()]
  }

  async #look(walk: Walk, nowMs: number, filter: RunFilter): Promise<StalledRunInfo[]> {
    const found: StalledRunInfo[] = []
    for (let pages = 0; pages < MOST_PAGES && !this.#options.draining(); pages++) {
      const { runs, isFull } = await walk.next(this.#options.store, filter, RUNS_A_PAGE)
      found.push(...(await this.#judge(runs, nowMs)))
      if (!isFull) break
    }
    return found
  }

  async #judge(runs: WorkflowRun[], nowMs: number): Promise<StalledRunInfo[]> {
    if (runs.length === 0) return []
    const { store, stalledAfterMs, reconcileMs, report } = this.#options
    const waiters = new Map<string, SignalWaiter[]>()
    for (const waiter of await store.listSignalWaitersByRunIds(runs.map(({ id }) => id))) {
      waiters.set(waiter.runId, [...(waiters.get(waiter.runId) ?? []), waiter])
    }
    const outcomes = await mapBounded(runs, AT_ONCE, async (run) => {
      const query = { statuses: ['pending' as const], descending: true, limit: OPEN_ROWS }
      const open = await store.queryCheckpoints(run.id, query)
      const own = waiters.get(run.id) ?? []
      return stallOf({ run, open, waiters: own, nowMs, stalledAfterMs, reconcileMs })
    })
    return outcomes.flatMap((outcome, index) => {
      if (outcome.ok) return outcome.value ?? []
      report(outcome.error, `whether run ${runs[index].id} is stalled`)
      return []
    })
  }

  #isNews({ run, idleMs }: StalledRunInfo, nowMs: number): boolean {
    const since = nowMs - idleMs
    if (this.#told.get(run.id) === since) return false
    this.#told.delete(run.id)
    this.#told.set(run.id, since)
    const [oldest] = this.#told.keys()
    if (this.#told.size > MOST_TOLD) this.#told.delete(oldest)
    return true
  }

  #tell(info: StalledRunInfo): void {
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(info),
        (error) => this.#options.report(error, 'a listener of stalled runs')
      )
    }
  }
}
