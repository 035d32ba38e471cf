/*
 * Messages that one process of the other side takes: decisions and step events of remote turns, starts
 * and requests of pods without a store. A second registration for a kind changes nothing.
 */
import type { MessageKind, Messages as Wire } from '../wire/codec.ts'
import type { JobBroker } from './job_broker.ts'

export class Messages {
  readonly #broker: JobBroker
  readonly #kinds = new Set<MessageKind>()

  constructor(broker: JobBroker) {
    this.#broker = broker
  }

  /** Consumes the queue of a kind; the answer tells whether it did not before. */
  consume<K extends MessageKind>(
    kind: K,
    queue: () => string,
    handler: (message: Wire[K]) => Promise<void>
  ): boolean {
    if (this.#kinds.has(kind)) return false
    this.#kinds.add(kind)
    const { concurrency } = this.#broker.settings
    this.#broker.gate.whenOpen(() => {
      this.#broker.consume({
        queue,
        slots: () => (typeof concurrency === 'number' ? concurrency : 1),
        handle: async (payload) => {
          const message = this.#broker.read(kind, payload)
          if (message) await handler(message)
        },
      })
    })
    return true
  }
}
