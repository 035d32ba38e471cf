/*
 * Workflows that a published event starts, as far as this process has registered them.
 */
import type { Accumulators } from '../builtins/accumulators.ts'
import type { Registry } from '../registry.ts'
import type { Starter } from '../runs/starter.ts'

export interface EventSubscribersOptions {
  registry: Registry
  starter: Pick<Starter, 'start'>
  accumulators: Pick<Accumulators, 'feed'>
  report: (error: unknown, what: string) => void
}

export class EventSubscribers {
  readonly #options: EventSubscribersOptions

  constructor(options: EventSubscribersOptions) {
    this.#options = options
  }

  /**
   * Starts each subscriber as `evt:<id>:<workflow>`, or hands the event to what collects for it; answers
   * how many. One that cannot be started (input
   * refused, quota) is reported and skipped.
   */
  async start(name: string, payload: unknown, id: string): Promise<number> {
    const { registry, starter, accumulators, report } = this.#options
    let started = 0
    for (const { name: workflow, options } of registry.subscribersOf(name)) {
      const { eventBatch } = options
      try {
        if (eventBatch) await accumulators.feed(workflow, eventBatch, { id, payload })
        else await starter.start(workflow, payload, `evt:${id}:${workflow}`)
        started += 1
      } catch (error) {
        report(error, `event "${name}" could not start workflow "${workflow}"`)
      }
    }
    return started
  }
}
