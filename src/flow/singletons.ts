/*
 * Singleton workflows: a durable first-in, first-out mutex over the runs of one key. The slot is a tag
 * that the store writes and takes away; what is decided here is only who asks, and whom to wake.
 * Specified in docs/reliability/singletons.md.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { InvalidArgumentError, SingletonQueueFullError } from '../errors.ts'
import type { Clock } from '../foundation/clock.ts'
import { tagKeyProblem } from '../foundation/keys.ts'
import type { FullStore } from '../store/full_store.ts'
import type { SingletonVerdict } from '../store/ports/singleton_claims.ts'
import { byAge } from '../store/ports/run_rules.ts'
import { SINGLETON_ADMITTED, SINGLETON_TRACKED } from '../store/ports/singleton_rules.ts'
import { LIVE_RUN_STATUSES, type WorkflowRun } from '../types/run.ts'
import type { SingletonConfig } from '../types/workflow.ts'

const KEY_TAG = 'singleton:'
/** How long a run that waits for its slot sleeps, in ms, and by how much that differs. */
const RETRY_MS = 1000
const JITTER_MS = 250

export interface SingletonsOptions {
  store: Pick<
    FullStore,
    'tryAdmitSingleton' | 'countRuns' | 'listRuns' | 'updateRunIf' | 'capabilities'
  >
  clock: Clock
  random: () => number
  /** Told once when admission is not atomic. */
  warn: (message: string) => void
}

/** A slot that came free. */
export interface FreedSlot {
  workflow: string
  tag: string
  /** How many runs of the key may be inside. */
  limit: number
}

export class Singletons {
  readonly #options: SingletonsOptions
  #warned = false

  constructor(options: SingletonsOptions) {
    this.#options = options
  }

  /**
   * Tags of a new run of the key. Throws `SingletonQueueFullError` when as many runs as may be inside and
   * wait are there: an ordinary read, so simultaneous starts may overshoot by their number.
   */
  async tagsOf(workflow: string, config: SingletonConfig, input: unknown): Promise<string[]> {
    const { store } = this.#options
    const key = keyOf(workflow, config, input)
    const tag = KEY_TAG + key
    const { limit = 1, maxQueueDepth } = config
    if (maxQueueDepth !== undefined) {
      const inside = await store.countRuns({ workflow, tag, statuses: [...LIVE_RUN_STATUSES] })
      if (inside >= limit + maxQueueDepth) {
        throw new SingletonQueueFullError(workflow, key, maxQueueDepth)
      }
    }
    return [tag, SINGLETON_TRACKED]
  }

  /** Admits a claimed run, or parks it until it may ask again; undefined for one that has no key. */
  async admit(
    run: WorkflowRun,
    config: SingletonConfig | undefined
  ): Promise<SingletonVerdict | undefined> {
    const tag = keyTagOf(run)
    if (!config || tag === undefined) return undefined
    // Only its end takes a slot from a holder.
    if (run.tags?.includes(SINGLETON_ADMITTED)) return { admitted: true }
    const { store, clock, random } = this.#options
    if (!store.capabilities.tryAdmitSingleton) this.#warn()
    const now = clock()
    return store.tryAdmitSingleton({
      runId: run.id,
      workflow: run.workflow,
      tag,
      limit: config.limit ?? 1,
      retryAt: now + RETRY_MS - JITTER_MS + Math.floor(random() * (2 * JITTER_MS + 1)),
      nowMs: now,
    })
  }

  /** The slot that ends with this run; undefined for one that has no key. */
  slotOf(
    run: Pick<WorkflowRun, 'workflow' | 'tags'>,
    config: SingletonConfig | undefined
  ): FreedSlot | undefined {
    const tag = keyTagOf(run)
    if (tag === undefined) return undefined
    return { workflow: run.workflow, tag, limit: config?.limit ?? 1 }
  }

  /**
   * Makes the runs due that wait longest for a slot; answers their ids. Each still has to claim it, so a
   * slot that is taken meanwhile costs a look. Losing all of this costs their retry.
   */
  async wakeWaiters({ workflow, tag, limit }: FreedSlot): Promise<string[]> {
    const { store, clock } = this.#options
    const now = clock()
    // Of those that hold a slot, at most `limit` come before the waiters.
    const oldest = { workflow, tag, oldestFirst: true, page: 1, size: 2 * limit }
    // One that is being refused while the slot comes free still runs: looked for first, since it parks next.
    const asking = await store.listRuns({ ...oldest, status: 'running' })
    const parked = await store.listRuns({ ...oldest, status: 'suspended' })
    const known = new Map([...asking, ...parked].map((run) => [run.id, run]))
    const waiters = [...known.values()]
      .filter((run) => this.#waits(run, now))
      .sort(byAge)
      .slice(0, limit)
    const woken: string[] = []
    for (const { id } of waiters) {
      // The request outlives the refusal, which sets the time anew.
      const patch = { wakeAt: now, wakeRequestedAt: now }
      if (await store.updateRunIf(id, ['suspended', 'running'], patch)) woken.push(id)
    }
    return woken
  }

  #waits({ tags = [], turns, wakeAt = 0 }: WorkflowRun, now: number): boolean {
    if (tags.includes(SINGLETON_ADMITTED)) return false
    const isAhead = turns === undefined && wakeAt > now
    const isLegacy = this.#options.store.capabilities.tryAdmitSingleton
      ? !tags.includes(SINGLETON_TRACKED)
      : false
    return !isAhead && !isLegacy
  }

  #warn(): void {
    if (this.#warned) return
    this.#warned = true
    this.#options.warn(
      'durable: this store has no StateStore.tryAdmitSingleton: singleton admission is a read and a ' +
        'decision, so processes may briefly admit more runs of a key than its limit'
    )
  }
}

/** Throws `InvalidArgumentError` for a `singleton` that cannot be registered. */
export function checkSingleton(workflow: string, config: SingletonConfig | undefined): void {
  if (config === undefined) return
  const what = `register: singleton of workflow "${workflow}"`
  checkOptions(what, config, OPTIONS.singleton)
  if (typeof config.key !== 'function') {
    throw new InvalidArgumentError(what, 'needs key: (input) => string')
  }
  checkWhole(`${what}: limit`, config.limit, 1)
  checkWhole(`${what}: maxQueueDepth`, config.maxQueueDepth, 0)
}

/** A successor queues like any other run, behind those that came before it. */
export function tagsOfSuccessor(tags: string[] | undefined): string[] | undefined {
  const kept = tags?.filter((tag) => !tag.startsWith('durable:'))
  return kept?.some(isKeyTag) ? [...kept, SINGLETON_TRACKED] : kept
}

/** A run that is brought back competes for its slot again, by its old age. */
export function tagsOfReopened(tags: string[] | undefined): string[] | undefined {
  if (!tags?.some(isKeyTag) || tags.includes(SINGLETON_TRACKED)) return tags
  return [...tags, SINGLETON_TRACKED]
}

export const keyTagOf = ({ tags }: Pick<WorkflowRun, 'tags'>): string | undefined =>
  tags?.find(isKeyTag)

const isKeyTag = (tag: string): boolean => tag.startsWith(KEY_TAG)

function keyOf(workflow: string, config: SingletonConfig, input: unknown): string {
  const key: unknown = config.key(input)
  const what = `start: the singleton key of workflow "${workflow}"`
  if (typeof key !== 'string') throw new InvalidArgumentError(what, 'must be a string')
  const problem = tagKeyProblem(KEY_TAG, key)
  if (problem) throw new InvalidArgumentError(what, problem)
  return key
}

function checkWhole(what: string, value: unknown, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= least)) return
  throw new InvalidArgumentError(what, `must be a whole number of at least ${least}`)
}
