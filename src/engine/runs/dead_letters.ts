/*
 * Dead letters: whoever listens here is told of a run that crashed too often, and the workflow that
 * handles it is started as `dlq:<runId>`, in the namespace of the dead run. What goes wrong is reported.
 */
import { isolate } from '../../foundation/failure.ts'
import { DEAD_LETTER_SUFFIX } from '../../foundation/ids.ts'
import type { Effect } from '../../turns/effects.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { DeadLetter } from '../../types/workflow.ts'
import type { Registry } from '../registry.ts'
import { DEAD_LETTER_RUN, isHandler } from '../routes.ts'
import type { FailedRun } from './failure_routes.ts'
import type { Starter } from './starter.ts'

export interface DeadLettersOptions {
  registry: Pick<Registry, 'all' | 'find' | 'newest'>
  starter: Pick<Starter, 'start'>
  /** Handles the dead runs of workflows that name nobody. */
  deadLetterWorkflow?: string
  effect: (effect: Effect) => void
  report: (error: unknown, what: string) => void
}

interface Handler {
  name: string
  version?: string
}

export class DeadLetters {
  readonly #options: DeadLettersOptions
  readonly #listeners = new Set<{ call: (run: WorkflowRun) => void }>()

  constructor(options: DeadLettersOptions) {
    this.#options = options
  }

  /** Some dead run may have a handler. */
  get areThere(): boolean {
    const { registry, deadLetterWorkflow } = this.#options
    if (deadLetterWorkflow !== undefined) return true
    return registry
      .all()
      .some(
        ({ name, options }) =>
          name.endsWith(DEAD_LETTER_SUFFIX) || options.deadLetterWorkflow !== undefined
      )
  }

  onDead(listener: (run: WorkflowRun) => void): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** A run went dead by a write of this process. */
  died(run: WorkflowRun): void {
    const { effect, report } = this.#options
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(run),
        (error) => report(error, 'a listener of dead runs')
      )
    }
    effect({ kind: 'deadLetter', run })
  }

  /** The id of the run that handles the death; undefined when nobody does. */
  handlerIdOf(run: FailedRun): string | undefined {
    return this.#handlerOf(run) && DEAD_LETTER_RUN + run.id
  }

  async start(run: FailedRun): Promise<void> {
    const { starter, report } = this.#options
    const handler = this.#handlerOf(run)
    if (!handler) return
    const { id: deadRunId, workflow, input, error, namespace } = run
    const letter: DeadLetter = { deadRunId, workflow, input, ...(error ? { error } : {}) }
    const options = { namespace, version: handler.version }
    try {
      await starter.start(handler.name, letter, DEAD_LETTER_RUN + deadRunId, options)
    } catch (failure) {
      report(failure, `the handler "${handler.name}" of dead run ${deadRunId} could not be started`)
    }
  }

  /** Its own method, in its own version if that has one; what its workflow names; what the config names. */
  #handlerOf({ id, workflow, workflowVersion }: FailedRun): Handler | undefined {
    const { registry, deadLetterWorkflow } = this.#options
    if (isHandler(id)) return undefined
    const own = workflow + DEAD_LETTER_SUFFIX
    const inline = registry.find(own, workflowVersion) ?? registry.newest(own)
    if (inline) return inline
    const registered = registry.find(workflow, workflowVersion) ?? registry.newest(workflow)
    const name = registered?.options.deadLetterWorkflow ?? deadLetterWorkflow
    return name === undefined ? undefined : { name }
  }
}
