/*
 * Failure routes: a run that failed is handed to the workflow that its own names for the error, as
 * `onerror:<runId>`, so that whoever repeats it starts nothing twice. What goes wrong here is reported and
 * changes no run.
 */
import type { StepError } from '../../foundation/failure.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { OnErrorInput, OnErrorRoute } from '../../types/workflow.ts'
import type { Registry } from '../registry.ts'
import { isHandler, ON_ERROR_RUN, routeOf } from '../routes.ts'
import type { Starter } from './starter.ts'

export interface FailureRoutesOptions {
  registry: Pick<Registry, 'all' | 'find' | 'newest'>
  starter: Pick<Starter, 'start'>
  report: (error: unknown, what: string) => void
}

/** What a handler is chosen by and started with. */
export type FailedRun = Pick<
  WorkflowRun,
  'id' | 'workflow' | 'workflowVersion' | 'namespace' | 'input' | 'error'
>

export class FailureRoutes {
  readonly #options: FailureRoutesOptions

  constructor(options: FailureRoutesOptions) {
    this.#options = options
  }

  /** Some workflow here has a route. */
  get areThere(): boolean {
    return this.#options.registry.all().some(({ options }) => (options.onError ?? []).length > 0)
  }

  /** The id of the run that handles the failure; undefined when nobody does. */
  handlerIdOf(run: FailedRun): string | undefined {
    return this.#routeOf(run) && ON_ERROR_RUN + run.id
  }

  async start(run: FailedRun): Promise<void> {
    const { starter, report } = this.#options
    const route = this.#routeOf(run)
    if (!route) return
    const { id: runId, workflow, input, error = NO_ERROR, namespace } = run
    const given: OnErrorInput = { runId, workflow, input, error }
    try {
      await starter.start(route.workflow, given, ON_ERROR_RUN + runId, { namespace })
    } catch (failure) {
      report(
        failure,
        `the onError handler "${route.workflow}" of run ${runId} could not be started`
      )
    }
  }

  /** Routes whose handler is not registered in this process. */
  unserved(): { workflow: string; route: OnErrorRoute }[] {
    const { registry } = this.#options
    const seen = new Set<string>()
    const unserved: { workflow: string; route: OnErrorRoute }[] = []
    for (const { name: workflow, options } of registry.all()) {
      for (const route of options.onError ?? []) {
        const key = JSON.stringify([workflow, route.code, route.workflow])
        if (registry.newest(route.workflow) || seen.has(key)) continue
        seen.add(key)
        unserved.push({ workflow, route: { ...route } })
      }
    }
    return unserved
  }

  #routeOf({ id, workflow, workflowVersion, error }: FailedRun): OnErrorRoute | undefined {
    if (isHandler(id)) return undefined
    const registered = this.#options.registry.find(workflow, workflowVersion)
    return routeOf(registered?.options.onError, error?.code)
  }
}

const NO_ERROR: StepError = { message: 'failed' }
