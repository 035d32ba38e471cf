/*
 * The lease of a run for what is not a turn: whoever works under it sees no claim, no other operator and
 * no late write in between (invariant 1).
 */
import type { Clock } from '../../foundation/clock.ts'
import { bestEffort } from '../../foundation/failure.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { WorkflowRun } from '../../types/run.ts'

export interface RunLeasesOptions {
  store: Pick<FullStore, 'tryLockRun' | 'releaseRunLock' | 'getRun'>
  clock: Clock
  leaseMs: number
  report: (error: unknown, what: string) => void
}

export class RunLeases {
  readonly #options: RunLeasesOptions

  constructor(options: RunLeasesOptions) {
    this.#options = options
  }

  /** Works on the run as it is under the lease; undefined when somebody holds it, or it is gone. */
  async hold<T>(
    runId: string,
    owner: string,
    work: (run: WorkflowRun) => Promise<T>
  ): Promise<T | undefined> {
    const { store, clock, leaseMs, report } = this.#options
    const now = clock()
    if (!(await store.tryLockRun(runId, owner, now + leaseMs, now))) return undefined
    try {
      const run = await store.getRun(runId)
      return run === null ? undefined : await work(run)
    } finally {
      const release = store.releaseRunLock(runId, owner)
      await bestEffort('the lease lapses by itself', release, report)
    }
  }
}
