/*
 * Runs that are over and old, and still needed: while their row is there, what was done once is not done
 * again (invariant 6).
 */
import { childToken, scheduledIdOf, scheduleTag } from '../../foundation/ids.ts'
import { compareText } from '../../foundation/versions.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { isHandler } from '../routes.ts'
import { HANDLERS_SOUGHT_MS } from './lost_handlers.ts'

export interface KeptRunsOptions {
  store: Pick<FullStore, 'hasSignalWaiter' | 'listRuns'>
  /** How many windows before the current one a schedule may still start. */
  catchupOf: (key: string) => Promise<number>
}

const TAG = scheduleTag('')

export class KeptRuns {
  readonly #options: KeptRunsOptions

  constructor(options: KeptRunsOptions) {
    this.#options = options
  }

  async isKept(run: WorkflowRun, nowMs: number): Promise<boolean> {
    if (isHandler(run.id) && nowMs - run.updatedAt.getTime() < HANDLERS_SOUGHT_MS) return true
    // Its parent has not read the result yet, and would start it again.
    if (run.awaited && (await this.#options.store.hasSignalWaiter(childToken(run.id)))) return true
    const key = scheduleOf(run)
    return key !== undefined && this.#mayStartAgain(run, key)
  }

  /** A window starts while its run is absent: those of the catch-up and the current one stay. */
  async #mayStartAgain(run: WorkflowRun, key: string): Promise<boolean> {
    const { store, catchupOf } = this.#options
    const catchup = await catchupOf(key)
    const query = { workflow: run.workflow, tag: scheduleTag(key), size: 1, page: catchup + 1 }
    const [last] = await store.listRuns(query)
    if (!last) return true
    const ahead = last.createdAt.getTime() - run.createdAt.getTime()
    return ahead < 0 || (ahead === 0 && compareText(last.id, run.id) <= 0)
  }
}

/** The schedule that started a run, if one did. */
function scheduleOf({ id, tags = [] }: WorkflowRun): string | undefined {
  return tags
    .filter((tag) => tag.startsWith(TAG))
    .map((tag) => tag.slice(TAG.length))
    .find((key) => id.startsWith(scheduledIdOf(key, '')))
}
