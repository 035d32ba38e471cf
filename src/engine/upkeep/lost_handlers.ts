/*
 * Lost handlers: a process may die between the end of a run and the start of the workflow that handles
 * it. Runs that ended not long ago are looked at again, a minute apart, and handlers that are missing are
 * started; their ids are derived, so nobody is started twice. Nothing is read where nothing is handled.
 */
import type { FullStore } from '../../store/full_store.ts'
import { runPages } from '../../store/paging.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { FailedRun } from '../runs/failure_routes.ts'

/** Starts the workflows that handle one kind of end. */
export interface EndHandlers {
  readonly areThere: boolean
  handlerIdOf(run: FailedRun): string | undefined
  /** Never rejects. */
  start(run: FailedRun): Promise<void>
}

export interface LostHandlersOptions {
  store: Pick<FullStore, 'listRuns' | 'getRuns'>
  failed: EndHandlers
  dead: EndHandlers
  namespace?: string
}

const BATCH = 100
const MINUTE = 60_000
/** How far the first look of a process goes back. */
const FIRST_LOOK_MS = 60 * MINUTE
/** How far a look goes back beyond the one before it. */
const OVERLAP_MS = 10 * MINUTE
/** So long after the end of a run its handler is looked for, and must be there to be found. */
export const HANDLERS_SOUGHT_MS = FIRST_LOOK_MS + OVERLAP_MS

export class LostHandlers {
  readonly #options: LostHandlersOptions
  #lookedAt?: number

  constructor(options: LostHandlersOptions) {
    this.#options = options
  }

  async start(nowMs: number): Promise<void> {
    const { failed, dead } = this.#options
    const before = this.#lookedAt
    if (before !== undefined && nowMs - before < MINUTE) return
    if (!failed.areThere && !dead.areThere) return
    this.#lookedAt = nowMs
    const since = before === undefined ? nowMs - FIRST_LOOK_MS : before - OVERLAP_MS
    if (dead.areThere) await this.#startMissing('dead', dead, since)
    if (failed.areThere) await this.#startMissing('failed', failed, since)
  }

  async #startMissing(
    status: 'dead' | 'failed',
    handlers: EndHandlers,
    updatedAfter: number
  ): Promise<void> {
    const { store, namespace } = this.#options
    for await (const page of runPages(store, { status, namespace, updatedAfter }, BATCH)) {
      const handled = new Map<string, WorkflowRun>()
      for (const run of page) {
        const id = handlers.handlerIdOf(run)
        if (id !== undefined) handled.set(id, run)
      }
      if (handled.size === 0) continue
      for (const { id } of await store.getRuns([...handled.keys()])) handled.delete(id)
      for (const run of handled.values()) await handlers.start(run)
    }
  }
}
