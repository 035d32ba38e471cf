/*
 * The link to the run queue of a transport: which runs are handed to whom drives their namespace, and what
 * comes from there. Messages are hints, sent after what they tell of is durable; losing all of them costs
 * latency up to a poll.
 */
import type { Clock } from '../foundation/clock.ts'
import type { RunQueue } from '../transport/ports.ts'
import type { WorkflowRun } from '../types/run.ts'
import { DEFAULT_NAMESPACE } from '../wire/names.ts'
import type { RunDispatch } from '../wire/messages.ts'

export interface RunQueueLinkOptions {
  /** Absent without a transport that has one, and with a custom run dispatcher. */
  queue?: RunQueue
  /** Scope of this engine; undefined drives every namespace. */
  namespace?: string
  clock: Clock
  /** Acts on a run that was handed over; a message whose taker rejects comes again. */
  take: (run: RunDispatch) => Promise<void>
  report: (error: unknown, what: string) => void
}

/** What is told of a run. */
export type HandedRun = Pick<WorkflowRun, 'id' | 'namespace' | 'priority'>

/** The queue of engines that drive every namespace. */
const EVERY_NAMESPACE = '*'

export class RunQueueLink {
  readonly #options: RunQueueLinkOptions
  #stop?: () => Promise<void>
  #consumes = false

  constructor(options: RunQueueLinkOptions) {
    this.#options = options
  }

  /** Runs are handed over. */
  get publishes(): boolean {
    return this.#options.queue !== undefined
  }

  /** Runs that are handed over may come here. */
  get consumes(): boolean {
    return this.#consumes
  }

  /** Hands a run to whoever drives it; false when nobody was told. Never rejects. */
  async publish(run: HandedRun, reason: RunDispatch['reason']): Promise<boolean> {
    const { queue, clock, report } = this.#options
    const { id: runId, namespace, priority } = run
    const message: RunDispatch = { runId, reason, at: clock() }
    if (namespace !== undefined) message.namespace = namespace
    if (priority !== undefined) message.priority = priority
    try {
      await queue!.dispatchRun(message, this.#scopeOf(run))
      return true
    } catch (error) {
      report(error, `run ${runId} is found by a poll: handing it over`)
      return false
    }
  }

  /** Consumes once; every later call answers the same stop. Undefined without a queue. */
  consume(): (() => Promise<void>) | undefined {
    const { queue, namespace = EVERY_NAMESPACE, take } = this.#options
    if (!queue || this.#stop) return this.#stop
    const stop = queue.onRun(namespace, take)
    this.#consumes = true
    let stopping: Promise<void> | undefined
    this.#stop = () => {
      this.#consumes = false
      return (stopping ??= stop())
    }
    return this.#stop
  }

  /** Takes no further run; resolves when those under way were acted on. */
  async stop(): Promise<void> {
    await this.#stop?.()
  }

  #scopeOf({ namespace }: HandedRun): string {
    const { namespace: ours } = this.#options
    return ours === undefined ? EVERY_NAMESPACE : (namespace ?? DEFAULT_NAMESPACE)
  }
}
