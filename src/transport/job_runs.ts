/*
 * The run queue over queues of jobs: one queue a scope. Messages are hints, the store is the truth: one
 * that consumers keep dying with is dropped and reported.
 */
import { DurableError } from '../errors.ts'
import type { RunDispatch } from '../wire/messages.ts'
import { DEFAULT_NAMESPACE } from '../wire/names.ts'
import type { JobBroker, QueueConsumer } from './job_broker.ts'

type RunHandler = (run: RunDispatch) => Promise<void>

export class Runs {
  readonly #broker: JobBroker
  readonly #scopes = new Map<string, Scope>()

  constructor(broker: JobBroker) {
    this.#broker = broker
  }

  async dispatch(run: RunDispatch, scope = run.namespace || DEFAULT_NAMESPACE): Promise<void> {
    const { priority } = run
    await this.#broker.send(this.#broker.names.runs(scope), 'run', run, { priority })
  }

  on(scope: string, handler: RunHandler): () => Promise<void> {
    let known = this.#scopes.get(scope)
    if (!known) {
      known = new Scope(this.#broker, scope, () => void this.#scopes.delete(scope))
      this.#scopes.set(scope, known)
    }
    return known.add(handler)
  }
}

/** The consumer of a scope, for every handler of this process in turn. */
class Scope {
  readonly #broker: JobBroker
  readonly #whenEmpty: () => void
  readonly #handlers: RunHandler[] = []
  #consumer?: QueueConsumer
  #next = 0
  #stopped = false

  constructor(broker: JobBroker, scope: string, whenEmpty: () => void) {
    this.#broker = broker
    this.#whenEmpty = whenEmpty
    broker.gate.whenOpen(() => {
      if (!this.#stopped) this.#consume(scope)
    })
  }

  /** The answer resolves once this handler's work is done and it gets no more. */
  add(handler: RunHandler): () => Promise<void> {
    const running = new Set<Promise<void>>()
    const own: RunHandler = (run) => {
      const work = handler(run)
      running.add(work)
      const done = () => void running.delete(work)
      work.then(done, done)
      return work
    }
    this.#handlers.push(own)
    let stopping: Promise<void> | undefined
    return () => (stopping ??= this.#remove(own, running))
  }

  #consume(scope: string): void {
    const { driver, settings } = this.#broker
    this.#consumer = this.#broker.consume({
      queue: () => this.#broker.names.runs(scope),
      slots: () => settings.runConcurrency,
      maxStalledCount: settings.maxStalledCount,
      handle: (payload) => this.#take(payload),
      onFailed: (payload, cause) => {
        const { runId = '(unknown)' } = (payload ?? {}) as Partial<RunDispatch>
        const problem = `${driver}: the message of run ${runId} is dropped: ${cause.message}`
        this.#broker.report(new DurableError(problem, { code: 'stalled', cause }))
      },
    })
  }

  async #take(payload: unknown): Promise<void> {
    const run = this.#broker.read('run', payload)
    if (run) await this.#handlers[this.#next++ % this.#handlers.length](run)
  }

  async #remove(handler: RunHandler, running: Set<Promise<void>>): Promise<void> {
    if (this.#handlers.length > 1) {
      this.#handlers.splice(this.#handlers.indexOf(handler), 1)
      await Promise.allSettled(running)
      return
    }
    this.#stopped = true
    this.#whenEmpty()
    await this.#consumer?.release()
  }
}
