/*
 * Published events: to every run that waits for one, to every workflow that an event starts, and when
 * nobody was there, once into the buffer for a later wait. A wait looks into the buffer after it
 * registered; a publisher looks for waits after it buffered: one of both finds the other.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { Clock } from '../../foundation/clock.ts'
import { acceptsEvent, type EventMatch } from '../../foundation/event_match.ts'
import { messageOf } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import { toStored } from '../../foundation/json.ts'
import { keyProblem, MAX_NAME_BYTES } from '../../foundation/keys.ts'
import { eventPrefix, MAX_EVENT_NAME_BYTES, readEventToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { SignalWaiter } from '../../types/checkpoint.ts'
import type { EventSubscribers } from './event_subscribers.ts'
import type { Wakes } from '../wakes.ts'

export interface PublishOptions {
  /** Names the runs it starts, so that publishing again starts none twice; default random. */
  id?: string
  /** Keep an event that reached nobody for a later wait; default true. */
  buffer?: boolean
}

export interface EventsOptions {
  store: FullStore
  subscribers: EventSubscribers
  wakes: Pick<Wakes, 'news'>
  clock: Clock
  maxPayloadBytes: number
}

export class Events {
  readonly #options: EventsOptions

  constructor(options: EventsOptions) {
    this.#options = options
  }

  /** How many runs it reached: those that waited, and those it started. */
  async publish(name: string, payload: unknown, options: PublishOptions = {}): Promise<number> {
    const stored = this.#stored(name, payload, options)
    const woken = await this.#deliver(name, stored)
    const { subscribers } = this.#options
    const started = await subscribers.start(name, stored, options.id ?? randomId())
    if (woken + started === 0 && options.buffer !== false) await this.#buffer(name, stored)
    return woken + started
  }

  async #deliver(name: string, payload: unknown): Promise<number> {
    const { store, clock, wakes } = this.#options
    let reached = 0
    for (const waiter of await this.#waiting(name, payload)) {
      const delivery = { token: waiter.token, payload, nowMs: clock(), buffer: false }
      const outcome = await store.deliverSignal(delivery)
      if (!outcome.delivered) continue
      reached += 1
      await wakes.news(outcome.runId)
    }
    return reached
  }

  /** The waits that accept it. */
  async #waiting(name: string, payload: unknown): Promise<SignalWaiter[]> {
    const waiters = await this.#options.store.listSignalWaiters(eventPrefix(name))
    const accepted: SignalWaiter[] = []
    for (const waiter of waiters) {
      if (acceptsEvent(await this.#matchOf(waiter), payload)) accepted.push(waiter)
    }
    return accepted
  }

  /** A match that does not fit its token stands in the open row of the position. */
  async #matchOf({ token, runId, seq }: SignalWaiter): Promise<EventMatch | undefined> {
    const wait = readEventToken(token)
    if (wait?.match) return wait.match
    const row = await this.#options.store.getCheckpoint(runId, seq)
    return (row?.input as { match?: EventMatch } | undefined)?.match
  }

  async #buffer(name: string, payload: unknown): Promise<void> {
    const { store, clock, wakes } = this.#options
    await store.bufferEvent({ id: randomId(), name, payload, publishedAt: clock() })
    // A wait that registered in between may have looked too early: its next turn looks again.
    const [late] = await this.#waiting(name, payload)
    if (late) await wakes.news(late.runId)
  }

  #stored(name: string, payload: unknown, { id }: PublishOptions): unknown {
    const problem = keyProblem(name, MAX_EVENT_NAME_BYTES)
    if (problem) throw new InvalidArgumentError('publishEvent: the name', problem)
    const wrongId = id === undefined ? undefined : keyProblem(id, MAX_NAME_BYTES)
    if (wrongId) throw new InvalidArgumentError('publishEvent: the id', wrongId)
    try {
      const what = `the payload of event "${name}"`
      return toStored(payload, what, this.#options.maxPayloadBytes)
    } catch (error) {
      throw new InvalidArgumentError('publishEvent:', messageOf(error))
    }
  }
}
