/*
 * Retention: deletes runs that are over once they are old enough, with the runs they started, and events
 * that nobody came for. A pass looks at a bounded number of runs; what it has to leave standing does not
 * hold up what comes after: each rule goes on where it stopped, and begins again at the end. The statement
 * that deletes asks for the status again, so a run that is brought back meanwhile stays (invariant 4).
 */
import { type Timers, within } from '../../foundation/clock.ts'
import { DurableError } from '../../foundation/failure.ts'
import { mapBounded } from '../../foundation/pool.ts'
import { Seldom } from '../../foundation/seldom.ts'
import { compareText } from '../../foundation/versions.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { EvictListener } from '../../types/housekeeping.ts'
import type { RunFilter } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { Eraser } from '../runs/eraser.ts'
import type { KeptRuns } from './kept_runs.ts'
import { readablePage, type ReadablePage } from './readable_page.ts'
import type { RetentionRule } from './retention_rules.ts'
import { Walk } from './walk.ts'

export interface RetentionOptions {
  store: Pick<FullStore, 'listRuns' | 'getRuns' | 'listCheckpoints' | 'pruneBufferedEvents'>
  eraser: Pick<Eraser, 'evict'>
  kept: Pick<KeptRuns, 'isKept'>
  rules: readonly RetentionRule[]
  /** Age of a buffered event after which nobody gets it; absent for none. */
  eventBufferTtl?: number
  namespace?: string
  timers: Timers
  draining: () => boolean
  report: (error: unknown, what: string) => void
}

/** Runs one pass looks at; what they started comes on top. */
const CANDIDATES = 100
const BETWEEN_PASSES_MS = 60_000
const AT_ONCE = 8
const EVENTS_A_STATEMENT = 1000
const MOST_STATEMENTS = 20
/** How long one call of a listener may take. */
const LISTENER_MS = 30_000
/** How long after its begin a pass takes on another run. */
const PASS_MS = 60_000
const MOST_HUNG = 10_000
/** Rows that are read for the newest runs of a scope when some cannot be decoded. */
const BOUNDARY_TRIES = 10

export class Retention {
  readonly #options: RetentionOptions
  readonly #listeners = new Set<{ call: EvictListener }>()
  readonly #walks: Walk[]
  #first = 0
  readonly #passes = new Seldom(BETWEEN_PASSES_MS)
  #isUnderWay = false
  #isOverdue = false
  /** Runs whose listeners hung: the last of their page, or those behind them would never have their turn. */
  readonly #hung = new Set<string>()

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#walks = options.rules.map(() => new Walk())
  }

  onEvict(listener: EvictListener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** One pass, at most one a minute; answers how many runs went. */
  async sweep(nowMs: number): Promise<number> {
    const { rules, eventBufferTtl, draining } = this.#options
    // What a pass under way does is told to whoever began it.
    if (this.#isUnderWay || draining()) return 0
    if (rules.length === 0 && eventBufferTtl === undefined) return 0
    if (!this.#passes.take(nowMs)) return 0
    this.#isUnderWay = true
    this.#isOverdue = false
    const cancel = this.#options.timers.after(PASS_MS, () => (this.#isOverdue = true))
    try {
      return await this.#pass(nowMs)
    } finally {
      cancel()
      this.#isUnderWay = false
    }
  }

  /** What one rule or the events throw does not stop the others; the first error rejects at the end. */
  async #pass(nowMs: number): Promise<number> {
    const errors: unknown[] = []
    const caught = (error: unknown) => void errors.push(error)
    await this.#pruneEvents(nowMs).catch(caught)
    const { rules } = this.#options
    // Each pass begins with another rule: a long backlog of one does not starve the rest.
    const first = this.#first++
    let gone = 0
    let left = CANDIDATES
    for (let step = 0; step < rules.length && left > 0 && this.#mayGoOn(); step++) {
      const index = (first + step) % rules.length
      try {
        const page = await this.#candidates(rules[index], this.#walks[index], nowMs, left)
        left -= page.runs.length + page.unreadable
        gone += await this.#evict(page.runs, nowMs)
      } catch (error) {
        caught(error)
      }
    }
    if (errors.length > 0) throw errors[0]
    return gone
  }

  #mayGoOn(): boolean {
    return !this.#isOverdue && !this.#options.draining()
  }

  async #pruneEvents(nowMs: number): Promise<void> {
    const { store, eventBufferTtl, draining } = this.#options
    if (eventBufferTtl === undefined) return
    // As readers judge it: one of exactly this age is still delivered.
    const before = nowMs - eventBufferTtl
    for (let statements = 0; statements < MOST_STATEMENTS && !draining(); statements++) {
      const gone = await store.pruneBufferedEvents(before, EVENTS_A_STATEMENT)
      if (gone < EVENTS_A_STATEMENT) return
    }
  }

  async #candidates(
    rule: RetentionRule,
    walk: Walk,
    nowMs: number,
    size: number
  ): Promise<ReadablePage> {
    const { store } = this.#options
    const filter = { ...rule.filter, namespace: rule.filter.namespace ?? this.#options.namespace }
    if ('ageMs' in rule) {
      const updatedBefore = Math.min(filter.updatedBefore ?? Infinity, nowMs - rule.ageMs)
      // No run changes before it begins; said as well, since a walk is in the order in which they began.
      const createdBefore = Math.min(filter.createdBefore ?? Infinity, updatedBefore)
      return walk.next(store, { ...filter, updatedBefore, createdBefore }, size)
    }
    if (rule.keep === 0) return walk.next(store, filter, size)
    const newest = await this.#lastKept(filter, rule.keep)
    if (!newest) return { runs: [], unreadable: 0, isFull: false }
    const bound = newest.createdAt.getTime() + 1
    const createdBefore = Math.min(filter.createdBefore ?? Infinity, bound)
    const page = await walk.next(store, { ...filter, createdBefore }, size)
    return { ...page, runs: page.runs.filter((run) => isOlder(run, newest)) }
  }

  /** The oldest of the newest runs that stay; a little further where one cannot be read. */
  async #lastKept(filter: RunFilter, keep: number): Promise<WorkflowRun | undefined> {
    for (let page = keep; page < keep + BOUNDARY_TRIES; page++) {
      const { runs, unreadable } = await readablePage(this.#options.store, {
        ...filter,
        page,
        size: 1,
      })
      if (unreadable === 0) return runs[0]
    }
    return undefined
  }

  async #evict(runs: WorkflowRun[], nowMs: number): Promise<number> {
    const { eraser, kept, report } = this.#options
    const taken = new Set<string>()
    const archive = (runIds: string[]) => this.#archive(runIds)
    const isHung = ({ id }: WorkflowRun) => this.#hung.has(id)
    const ordered = [...runs.filter((run) => !isHung(run)), ...runs.filter(isHung)]
    const outcomes = await mapBounded(ordered, AT_ONCE, async (run) => {
      if (!this.#mayGoOn() || (await kept.isKept(run, nowMs))) return 0
      return eraser.evict(run.id, taken, archive)
    })
    let gone = 0
    outcomes.forEach((outcome, index) => {
      const { id } = ordered[index]
      if (outcome.ok) gone += outcome.value
      else {
        if (outcome.error instanceof ListenerHung) this.#remember(id)
        report(outcome.error, `run ${id} is kept beyond its retention`)
      }
    })
    return gone
  }

  #remember(hungId: string): void {
    if (this.#hung.size >= MOST_HUNG) this.#hung.clear()
    this.#hung.add(hungId)
  }

  async #archive(runIds: string[]): Promise<void> {
    const { store, timers } = this.#options
    for (const id of runIds) {
      if (this.#listeners.size === 0) return
      const [run] = await store.getRuns([id])
      if (!run) continue
      const checkpoints = await store.listCheckpoints(id)
      for (const { call } of [...this.#listeners]) {
        // One that hangs would hold up every later pass.
        await within(timers, LISTENER_MS, () => call(run, checkpoints), hung)
      }
    }
  }
}

class ListenerHung extends DurableError {}

const hung = () => new ListenerHung(`an onEvict listener did not end within ${LISTENER_MS} ms`)

const isOlder = (run: WorkflowRun, other: WorkflowRun): boolean => {
  const ahead = other.createdAt.getTime() - run.createdAt.getTime()
  return ahead > 0 || (ahead === 0 && compareText(run.id, other.id) < 0)
}
