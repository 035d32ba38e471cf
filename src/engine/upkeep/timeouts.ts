/*
 * Execution timeouts: ends runs whose time is up. Their deadline stands on them from their start, so one
 * indexed read finds them. Runs without one (started before their workflow had a timeout, or kept by a
 * store that has no such column or no such read) are judged by their age, a minute apart, for that means
 * to list runs. A process that registered no workflow with a timeout sends nothing.
 */
import { bestEffort } from '../../foundation/failure.ts'
import { Seldom } from '../../foundation/seldom.ts'
import type { FullStore } from '../../store/full_store.ts'
import { runPages } from '../../store/paging.ts'
import { LIVE_RUN_STATUSES, type WorkflowRun } from '../../types/run.ts'
import type { Registry } from '../registry.ts'
import type { Canceller } from '../runs/canceller.ts'

export interface TimeoutsOptions {
  store: Pick<FullStore, 'listOverdueRuns' | 'listRuns' | 'capabilities'>
  registry: Pick<Registry, 'all' | 'find'>
  canceller: Pick<Canceller, 'timeOut'>
  namespace?: string
  report: (error: unknown, what: string) => void
}

const BATCH = 100
const BETWEEN_JUDGEMENTS_MS = 60_000

export class Timeouts {
  readonly #options: TimeoutsOptions
  readonly #judgements = new Seldom(BETWEEN_JUDGEMENTS_MS)

  constructor(options: TimeoutsOptions) {
    this.#options = options
  }

  /** One run that cannot be ended never stops the others. */
  async sweep(nowMs: number): Promise<void> {
    const { store, registry, namespace } = this.#options
    const budgets = shortestBudgets(registry)
    if (budgets.size === 0) return
    if (store.capabilities.overdueRuns) {
      for (;;) {
        const runs = await store.listOverdueRuns(nowMs, namespace, BATCH)
        const ended = await this.#end(runs)
        if (runs.length < BATCH || ended === 0) break
      }
    }
    if (!this.#judgements.take(nowMs)) return
    const failed: unknown[] = []
    for (const [workflow, budget] of budgets) {
      await this.#judge(workflow, budget, nowMs).catch((error) => failed.push(error))
    }
    if (failed.length > 0) throw failed[0]
  }

  async #judge(workflow: string, shortest: number, nowMs: number): Promise<void> {
    const { store, namespace } = this.#options
    const query = {
      workflow,
      namespace,
      statuses: [...LIVE_RUN_STATUSES],
      // Strictly before: a run whose time is up this very millisecond is overdue.
      createdBefore: nowMs - shortest + 1,
    }
    for await (const page of runPages(store, query, BATCH)) {
      await this.#end(page.filter((run) => this.#isOverdue(run, nowMs)))
    }
  }

  /** By its deadline; without one by its age and the budget of its own version. */
  #isOverdue(run: WorkflowRun, nowMs: number): boolean {
    const { registry, store } = this.#options
    if (run.cancelRequestedAt !== undefined) return false
    // The indexed read has told of those with a deadline.
    if (run.deadlineAt !== undefined) {
      return !store.capabilities.overdueRuns && run.deadlineAt <= nowMs
    }
    const budget = registry.find(run.workflow, run.workflowVersion)?.executionTimeoutMs
    return budget !== undefined && run.createdAt.getTime() + budget <= nowMs
  }

  async #end(runs: WorkflowRun[]): Promise<number> {
    const { canceller, report } = this.#options
    let ended = 0
    for (const run of runs) {
      const work = canceller.timeOut(run).then((did) => void (ended += did ? 1 : 0))
      await bestEffort(`the next sweep ends run ${run.id}`, work, report)
    }
    return ended
  }
}

/** Of each workflow the shortest budget of a version. */
function shortestBudgets(registry: Pick<Registry, 'all'>): Map<string, number> {
  const budgets = new Map<string, number>()
  for (const { name, executionTimeoutMs } of registry.all()) {
    if (executionTimeoutMs === undefined) continue
    budgets.set(name, Math.min(budgets.get(name) ?? Infinity, executionTimeoutMs))
  }
  return budgets
}
