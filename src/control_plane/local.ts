/*
 * The control plane of one process: a broadcast to the subscribers of this object, the publisher's own
 * included. Nothing is stored and nothing crosses a process.
 */
import { isolate } from '../foundation/failure.ts'
import type { ControlMessage } from '../wire/messages.ts'
import type { ControlPlane } from './port.ts'

export interface LocalControlPlaneOptions {
  /** Stamped as `from` on messages that carry none. */
  instanceId?: string
  /** Told about a subscriber that threw; default: nobody. */
  onError?: (error: unknown) => void
}

export class LocalControlPlane implements ControlPlane {
  readonly #handlers = new Set<(message: ControlMessage) => void>()
  readonly #options: LocalControlPlaneOptions
  #closed = false

  constructor(options: LocalControlPlaneOptions = {}) {
    this.#options = options
  }

  publishControl(message: ControlMessage): Promise<void> {
    this.deliver(stamped(message, this.#options.instanceId))
    return Promise.resolve()
  }

  onControl(handler: (message: ControlMessage) => void): void {
    if (!this.#closed) this.#handlers.add(handler)
  }

  /** Hands a message to every subscriber; one that throws does not keep it from the others. */
  deliver(message: ControlMessage): void {
    for (const handler of [...this.#handlers]) {
      isolate(() => handler(message), this.#options.onError)
    }
  }

  close(): Promise<void> {
    this.#closed = true
    this.#handlers.clear()
    return Promise.resolve()
  }
}

/** The message with its publisher named, unless it names one. */
export function stamped(message: ControlMessage, from: string | undefined): ControlMessage {
  return from === undefined || message.from !== undefined ? message : { ...message, from }
}
