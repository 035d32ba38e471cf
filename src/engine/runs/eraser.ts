/*
 * Deleting runs for good, in pages. What is collected is deleted so that a crash half way leaves nothing
 * unreachable: ended runs from the leaves up. Live ones go from the top down, so that no parent starts a
 * deleted child again. A purge deletes only what has ended by the statement that deletes (invariant 4).
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import { bestEffort } from '../../foundation/failure.ts'
import { linkOf, nextLinkId, parentRunIdOf } from '../../foundation/ids.ts'
import { childrenOf } from '../../insight/lineage.ts'
import type { FullStore } from '../../store/full_store.ts'
import { runPages } from '../../store/paging.ts'
import type { TurnSettings } from '../../turns/needs.ts'
import type { PurgeOptions, RunScope } from '../../types/run_detail.ts'
import {
  isTerminalStatus,
  LIVE_RUN_STATUSES,
  TERMINAL_RUN_STATUSES,
  type RunStatus,
  type WorkflowRun,
} from '../../types/run.ts'
import type { Canceller } from './canceller.ts'
import { dropBuffers } from './leftovers.ts'
import { checkScope, withStatuses } from './scope.ts'

export interface EraserOptions {
  store: FullStore
  canceller: Pick<Canceller, 'cancel' | 'tellChildren'>
  clock: Clock
  settings: Pick<TurnSettings, 'instanceId' | 'leaseMs'>
  /** Runs that went: nothing of them is kept in this process. */
  onErased: (runIds: string[]) => void
  report: (error: unknown, what: string) => void
}

/** What deleting a run takes to know. */
type Doomed = Pick<WorkflowRun, 'id' | 'status'> & { childrenNotTold: boolean }

const BATCH = 100
const LIVE = [...LIVE_RUN_STATUSES]
const ENDED: RunStatus[] = [...TERMINAL_RUN_STATUSES]

export class Eraser {
  readonly #options: EraserOptions

  constructor(options: EraserOptions) {
    this.#options = options
  }

  /** Deletes a run, live or not, and the runs it started; answers how many went. */
  async deleteRun(runId: string): Promise<number> {
    const { store, clock, settings, report } = this.#options
    if (!(await store.getRun(runId))) return 0
    // No turn of it begins, and starts another child, between the look and the deletion. A turn that is
    // under way cannot be waited for; it is stopped by its next write.
    const owner = `${settings.instanceId}/eraser`
    const until = () => clock() + settings.leaseMs
    await store.tryLockRun(runId, owner, until(), clock())
    try {
      const tree = await this.#subtree(runId, () => store.renewRunLock(runId, owner, until()))
      const root = tree.find(({ id }) => id === runId)
      if (root) await this.#tellChildren([root])
      const live = tree.filter(({ status }) => !isTerminalStatus(status))
      const ended = tree.filter(({ status }) => isTerminalStatus(status)).reverse()
      return await this.#erase([...live, ...ended], BATCH)
    } catch (error) {
      const release = store.releaseRunLock(runId, owner)
      await bestEffort('the lease lapses by itself', release, report)
      throw error
    }
  }

  /** Deletes every ended run of a scope; answers how many went. */
  async purge(scope: RunScope, options: PurgeOptions = {}): Promise<number> {
    const { store, canceller } = this.#options
    const { batchSize = BATCH, cancelLive = false, children = false } = options
    checkScope('purgeRuns', scope)
    if (!Number.isSafeInteger(batchSize) || batchSize < 1) {
      throw new InvalidArgumentError('purgeRuns: batchSize', 'must be a positive integer')
    }
    if (cancelLive) {
      for await (const page of runPages(store, withStatuses(scope, LIVE), batchSize)) {
        for (const { id } of page) await canceller.cancel(id)
      }
    }
    let gone = 0
    for await (const page of runPages(store, withStatuses(scope, ENDED), batchSize)) {
      const runs = page.map(doomed)
      await this.#tellChildren(runs)
      if (children) gone += await this.#eraseTrees(runs, { batchSize, cancelLive })
      else gone += await this.#erase(runs, batchSize, ENDED)
    }
    return gone
  }

  /**
   * Deletes a run that is over and the runs it started, each after `archive`; answers how many went. A run
   * with a live descendant stays whole. What is in `taken` is seen to by somebody else.
   */
  async evict(
    runId: string,
    taken: Set<string>,
    archive: (runIds: string[]) => Promise<void>
  ): Promise<number> {
    if (taken.has(runId)) return 0
    const tree = await this.#subtree(runId)
    if (tree.some(({ status }) => !isTerminalStatus(status)) || taken.has(runId)) return 0
    const own = tree.filter(({ id }) => !taken.has(id)).reverse()
    const ids = own.map(({ id }) => id)
    for (const id of ids) taken.add(id)
    await archive(ids)
    await this.#tellChildren(own)
    return this.#erase(own, BATCH, ENDED)
  }

  /** Each run with what it started; one with a live descendant stays whole. */
  async #eraseTrees(
    roots: Doomed[],
    { batchSize, cancelLive }: { batchSize: number; cancelLive: boolean }
  ): Promise<number> {
    let gone = 0
    const erased = new Set<string>()
    for (const { id } of roots) {
      if (erased.has(id)) continue
      let tree = await this.#subtree(id)
      const live = () => tree.filter(({ status }) => !isTerminalStatus(status))
      if (cancelLive && live().length > 0) {
        for (const run of live()) await this.#options.canceller.cancel(run.id)
        tree = await this.#subtree(id)
      }
      if (live().length > 0) continue
      await this.#tellChildren(tree)
      gone += await this.#erase(tree.reverse(), batchSize, ENDED)
      for (const run of tree) erased.add(run.id)
    }
    return gone
  }

  /** Does at once what follows from a cancel: later its row is gone. */
  async #tellChildren(runs: Doomed[]): Promise<void> {
    for (const run of runs) {
      if (run.childrenNotTold) await this.#options.canceller.tellChildren(run.id)
    }
  }

  /** Deletes in this order; with `statuses`, only runs that have one of them at that moment. */
  async #erase(runs: Doomed[], batchSize: number, statuses?: RunStatus[]): Promise<number> {
    const { store, onErased } = this.#options
    let gone = 0
    for (let from = 0; from < runs.length; from += batchSize) {
      const ids = runs.slice(from, from + batchSize).map(({ id }) => id)
      const erased = statuses ? await store.deleteRunsIf(ids, statuses) : ids
      gone += statuses ? erased.length : await store.deleteRuns(ids)
      onErased(erased)
      await dropBuffers(store, erased)
    }
    return gone
  }

  /**
   * A run, the runs it started and the links these continued as, nearest first, each once. `onBatch` is
   * called before each further read.
   */
  async #subtree(rootId: string, onBatch?: () => Promise<unknown>): Promise<Doomed[]> {
    const { store } = this.#options
    const seen = new Set([rootId])
    const found: Doomed[] = []
    const queue = [rootId]
    let ids: string[]
    // The queue grows while it is read.
    for (let from = 0; from < queue.length; from += ids.length) {
      ids = queue.slice(from, from + BATCH)
      if (from > 0) await onBatch?.()
      const standing = await store.getRuns(ids)
      const runs = new Map(standing.map((run) => [run.id, run]))
      for (const id of ids) {
        const run = runs.get(id)
        if (!run) continue
        found.push(doomed(run))
        const children = await childrenOf(store, id)
        const next = children.flatMap((child) => [child, ...earlierLinks(child, id)])
        if (id !== rootId && mayContinue(run)) next.push(nextLinkId(id))
        for (const one of next) {
          if (!seen.has(one)) queue.push(one)
          seen.add(one)
        }
      }
    }
    return found
  }
}

const doomed = (run: WorkflowRun): Doomed => ({
  id: run.id,
  status: run.status,
  childrenNotTold: run.status === 'cancelled' && run.cancelRequestedAt !== undefined,
})

/**
 * What a child continued from. Its row names the link that was waited for last; only of an id that was
 * derived from the parent's is it certain that the numbers are those of a chain.
 */
function earlierLinks(childId: string, parentId: string): string[] {
  if (parentRunIdOf(childId) !== parentId) return []
  const { origin, link } = linkOf(childId)
  return Array.from({ length: link }, (_, k) => (k === 0 ? origin : `${origin}~${k}`))
}

/** A link of a continue-as-new chain ends without an output. */
const mayContinue = (run: WorkflowRun): boolean =>
  run.status === 'completed' && run.output === undefined
