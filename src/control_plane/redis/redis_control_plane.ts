/*
 * The control plane over one Redis channel: every engine hears what the others publish. A message that
 * cannot be read is dropped; one that was published while nobody listened is lost, and the store is asked.
 */
import { type Timers, systemTimers } from '../../foundation/clock.ts'
import { randomId } from '../../foundation/ids.ts'
import { InvalidArgumentError, TransportUnavailableError } from '../../errors.ts'
import { clientProblem, type RedisClient } from '../../redis/client.ts'
import { subscribe, type Subscription } from '../../redis/subscription.ts'
import { reportToConsole } from '../../transport/ports.ts'
import { PING_INTERVAL_MS } from '../../redis/watchdog.ts'
import { decode, encode } from '../../wire/codec.ts'
import type { ControlMessage } from '../../wire/messages.ts'
import { controlChannel, DEFAULT_PREFIX } from '../../wire/names.ts'
import { LocalControlPlane, stamped } from '../local.ts'
import type { ControlPlane } from '../port.ts'

export interface RedisControlPlaneOptions {
  /** The channel is `<prefix>-control`; default `durable`. A namespace is never folded in. */
  prefix?: string
  /** How often the subscriber is asked whether it still hears, in ms; default 30 000, 0 or `false` never. */
  pingIntervalMs?: number | false
  /** Stamped as `from` on messages that carry none; default random. */
  instanceId?: string
  /** Told of what nobody awaits, once per burst; default `console.error`. */
  onError?: (error: unknown) => void
  timers?: Timers
}

/** Publishes that Redis has not answered; more are refused. */
const MOST_UNANSWERED = 1_000

export class RedisControlPlane implements ControlPlane {
  readonly #client: RedisClient
  readonly #channel: string
  readonly #instanceId: string
  readonly #options: RedisControlPlaneOptions
  readonly #subscribers: LocalControlPlane
  readonly #onError: (error: unknown) => void
  #subscription?: Subscription
  #unanswered = 0
  #isClosed = false

  /**
   * Over an ioredis client, of which it duplicates a subscriber of its own, or a connection of
   * `@adonisjs/redis`. Neither is closed with it. Nothing is opened before the first subscriber comes.
   */
  constructor(client: RedisClient, options: RedisControlPlaneOptions = {}) {
    const problem = clientProblem(client)
    if (problem) throw new InvalidArgumentError('RedisControlPlane: the client', problem)
    this.#client = client
    this.#options = options
    this.#channel = controlChannel(options.prefix ?? DEFAULT_PREFIX)
    this.#instanceId = options.instanceId ?? randomId()
    this.#onError = options.onError ?? reportToConsole
    this.#subscribers = new LocalControlPlane({ onError: this.#onError })
  }

  /** Resolves when Redis took it. Rejects when it could not be sent: then nobody hears of it. */
  async publishControl(message: ControlMessage): Promise<void> {
    if (this.#isClosed) throw new TransportUnavailableError('the control plane is closed')
    const text = encode('control', stamped(message, this.#instanceId))
    if (this.#unanswered >= MOST_UNANSWERED) {
      throw new TransportUnavailableError(
        `${MOST_UNANSWERED} control messages wait for Redis; this one is dropped`
      )
    }
    this.#unanswered += 1
    try {
      await this.#client.publish(this.#channel, text)
    } catch (cause) {
      throw new TransportUnavailableError('a control message could not be published', { cause })
    } finally {
      this.#unanswered -= 1
    }
  }

  /** Hears every message of the channel, those of this instance included. */
  onControl(handler: (message: ControlMessage) => void): void {
    if (this.#isClosed) return
    this.#subscribers.onControl(handler)
    this.#subscription ??= subscribe(this.#client, {
      channel: this.#channel,
      onMessage: (text) => this.#hear(text),
      onError: this.#onError,
      pingIntervalMs: this.#options.pingIntervalMs ?? PING_INTERVAL_MS,
      timers: this.#options.timers ?? systemTimers,
    })
  }

  /** Listening at this moment; false before the first subscriber, and while the connection is down. */
  get isListening(): boolean {
    return this.#subscription?.isLive ?? false
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // At once: what is on its way must not connect again.
    const closing = this.#subscription?.close()
    await this.#subscribers.close()
    await closing
  }

  #hear(text: string): void {
    let message: ControlMessage
    try {
      message = decode('control', text)
    } catch {
      // Anybody may publish on the channel.
      return
    }
    this.#subscribers.deliver(message)
  }
}
