/*
 * What every primitive of one run shares: its replay, and the guard that keeps primitives out of step
 * bodies. A scope outlives turns when the machine is kept live; it holds nothing of a single turn.
 */
import { currentStepBody } from '../authoring/ambient.ts'
import { FatalError, InvalidArgumentError, NestedWorkflowCallError } from '../errors.ts'
import { messageOf } from '../foundation/failure.ts'
import { toStored } from '../foundation/json.ts'
import { keyProblem, MAX_NAME_BYTES } from '../foundation/keys.ts'
import type { Call } from '../replay/open_await.ts'
import type { Replay } from '../replay/replay.ts'

export interface ScopeOptions {
  replay: Replay
  maxPayloadBytes: number
  /** The store can run `ctx.transaction`. */
  transactions: boolean
  /** Builds `DurableWebhook.url`. */
  webhookUrl?: (token: string) => string
}

export class Scope {
  readonly replay: Replay
  readonly transactions: boolean
  readonly webhookUrl?: (token: string) => string
  readonly #maxPayloadBytes: number

  constructor(options: ScopeOptions) {
    this.replay = options.replay
    this.transactions = options.transactions
    this.webhookUrl = options.webhookUrl
    this.#maxPayloadBytes = options.maxPayloadBytes
  }

  get runId(): string {
    return this.replay.runId
  }

  /**
   * Runs the synchronous part of a primitive; what it throws becomes a rejection. Refuses, before any
   * position is taken, a call from inside a step body.
   */
  primitive<T>(name: string, call: () => Promise<T>): Promise<T> {
    let promise: Promise<T>
    try {
      this.refuseInStep(name)
      promise = call()
    } catch (error) {
      promise = Promise.reject(error)
    }
    promise.catch(() => {})
    return promise
  }

  /** Throws when a step body is what calls. */
  refuseInStep(name: string): void {
    const body = currentStepBody()
    if (body) throw new NestedWorkflowCallError(this.runId, name, body.step)
  }

  open<T>(call: Call): Promise<T> {
    return this.replay.open<T>(call)
  }

  /** The stored form of a value the body hands over; a `FatalError` when it has none. */
  stored(value: unknown, what: string): unknown {
    try {
      return toStored(value, what, this.#maxPayloadBytes)
    } catch (error) {
      throw new FatalError(messageOf(error), (error as { code?: string }).code)
    }
  }

  /** Refuses a name that no store would keep. */
  checkName(primitive: string, name: unknown, maxBytes: number = MAX_NAME_BYTES): void {
    const problem = keyProblem(name, maxBytes)
    if (problem) throw new InvalidArgumentError(`ctx.${primitive}: the name`, problem)
  }
}
