/*
 * Flow-control queues of a fleet, kept in Redis. A slot belongs to the instance that took it and lasts as
 * long as that is alive, however long its step takes; those of an instance that died come back once it has
 * been silent for a while. Needs a single Redis, not a cluster: a script reads keys it does not name.
 */
import {
  type Cancel,
  type Clock,
  systemClock,
  systemTimers,
  type Timers,
} from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import { deferred } from '../../foundation/deferred.ts'
import { bootNonce } from '../../foundation/ids.ts'
import { InvalidArgumentError, TransportUnavailableError } from '../../errors.ts'
import { clientProblem, type RedisClient } from '../../redis/client.ts'
import type { RedisScript } from '../../redis/script.ts'
import { subscribe, type Subscription } from '../../redis/subscription.ts'
import { reportToConsole } from '../../transport/ports.ts'
import { PING_INTERVAL_MS } from '../../redis/watchdog.ts'
import { buildInstanceId, DEFAULT_PREFIX } from '../../wire/names.ts'
import type { Admission, AdmissionBackend, AdmissionRequest, QueueConfig } from '../port.ts'
import { checkQueue } from '../queue_config.ts'
import { ADMIT_SCRIPT, NEXT_SCRIPT, RELEASE_SCRIPT } from './scripts.ts'

export interface RedisAdmissionOptions {
  /** Start of every key and of the channel; default `durable`. */
  prefix?: string
  /** Owner of the slots taken here, unique for each process and boot; default made of both. */
  instanceId?: string
  /** Silence after which an instance is dead and its slots come back, in ms; default 30 000. */
  instanceTtlMs?: number
  /** When to ask again after a denial, in ms, unless the queue says; default 1000. */
  retryMs?: number
  /** When a waiter that stopped asking leaves the line, in ms; default three times the retry. */
  waiterTtlMs?: number
  /** How often the subscriber is asked whether it still hears, in ms; default 30 000, 0 or `false` never. */
  pingIntervalMs?: number | false
  /** Told of what nobody awaits, once per burst; default `console.error`. */
  onError?: (error: unknown) => void
  /** Epoch ms; windows and waiters go by it. */
  clock?: Clock
  timers?: Timers
}

type FreedListener = (queue: string, next?: readonly string[]) => void

interface Queue {
  config: QueueConfig
  /** Who was denied here, and when it leaves the line, epoch ms. */
  waiting: Map<string, number>
  /** Listeners are being told; once more when `again`. */
  telling?: { again: boolean }
}

const RETRY_MS = 1_000
const INSTANCE_TTL_MS = 30_000
const MOST_NEXT = 1_000
/** Longest wait for the first subscription before a slot is given back, in ms. */
const FIRST_HEARING_MS = 1_000

export class RedisAdmissionBackend implements AdmissionBackend {
  readonly #client: RedisClient
  readonly #options: RedisAdmissionOptions
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #prefix: string
  readonly #instanceId: string
  readonly #ttlMs: number
  readonly #onError: (error: unknown) => void
  readonly #queues = new Map<string, Queue>()
  readonly #listeners = new Set<{ call: FreedListener }>()
  #subscription?: Subscription
  /** Settled once the channel was heard, or could not be. */
  #firstHearing?: Promise<void>
  #stopBeating?: Cancel
  #isSilent = false
  #isClosed = false

  /**
   * Over an ioredis client, of which it duplicates a subscriber of its own, or a connection of
   * `@adonisjs/redis`. Neither is closed with it. Throws `InvalidArgumentError` for options that cannot be.
   */
  constructor(client: RedisClient, options: RedisAdmissionOptions = {}) {
    const problem = clientProblem(client)
    if (problem) throw new InvalidArgumentError('RedisAdmissionBackend: the client', problem)
    for (const name of ['instanceTtlMs', 'retryMs', 'waiterTtlMs'] as const) {
      checkMs(name, options[name])
    }
    this.#client = client
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#timers = options.timers ?? systemTimers
    this.#prefix = `${options.prefix ?? DEFAULT_PREFIX}:adm:`
    this.#instanceId = options.instanceId ?? `${buildInstanceId()}-${bootNonce()}`
    this.#ttlMs = options.instanceTtlMs ?? INSTANCE_TTL_MS
    this.#onError = options.onError ?? reportToConsole
  }

  registerQueue(config: QueueConfig): void {
    checkQueue('registerQueue', config)
    const known = this.#queues.get(config.name)
    if (known) known.config = { ...config }
    else this.#queues.set(config.name, { config: { ...config }, waiting: new Map() })
  }

  handles(queue: string): boolean {
    return this.#queues.has(queue)
  }

  /** Rejects when Redis cannot be asked. */
  async tryAdmit(queue: string, request: AdmissionRequest): Promise<Admission> {
    const known = this.#queues.get(queue)
    if (!known) return { admitted: true }
    const { waiterId, key = waiterId, priority = 0 } = request
    const now = this.#clock()
    const { retryMs, lateMs } = this.#patience(known.config)
    const periodMs = known.config.rateLimit?.periodMs ?? 0
    const ends = periodMs === 0 ? 0 : (Math.floor(now / periodMs) + 1) * periodMs
    // Scores ascend: the highest priority is the lowest one.
    const rest = [waiterId, key, -priority || 0, retryMs, lateMs, ends, periodMs]
    this.#beat()
    const [admitted, retryAt] = (await this.#run(ADMIT_SCRIPT, known, now, rest)) as [
      number,
      string,
    ]
    if (admitted === 1) {
      known.waiting.delete(waiterId)
      return { admitted: true }
    }
    const dueAt = Number(retryAt)
    known.waiting.set(waiterId, dueAt + lateMs)
    return { admitted: false, retryAt: dueAt }
  }

  /** Rejects when Redis cannot be told. */
  async release(queue: string, waiterId: string): Promise<void> {
    const known = this.#queues.get(queue)
    if (!known) return
    known.waiting.delete(waiterId)
    // Or whoever began to listen a moment ago would not hear of it.
    await this.#firstHearing
    const rest = [waiterId, queue, this.#channel]
    await this.#run(RELEASE_SCRIPT, known, this.#clock(), rest)
  }

  onFreed(listener: FreedListener): () => void {
    const entry = { call: listener }
    if (this.#isClosed) return () => {}
    this.#listeners.add(entry)
    if (!this.#subscription) this.#listen()
    return () => void this.#listeners.delete(entry)
  }

  #listen(): void {
    const first = deferred<void>()
    this.#firstHearing = first.promise
    this.#timers.after(FIRST_HEARING_MS, () => first.resolve())
    this.#subscription = subscribe(this.#client, {
      channel: this.#channel,
      onMessage: (queue) => this.#tell(queue),
      onSubscribed: () => {
        first.resolve()
        this.#catchUp()
      },
      onError: (error) => {
        first.resolve()
        this.#onError(error)
      },
      pingIntervalMs: this.#options.pingIntervalMs ?? PING_INTERVAL_MS,
      timers: this.#timers,
    })
  }

  /** Slots that are held stay held, until this instance has been silent for `instanceTtlMs`. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopBeating?.()
    this.#listeners.clear()
    await this.#subscription?.close()
  }

  get #channel(): string {
    return `${this.#prefix}freed`
  }

  #patience({ retryMs = this.#options.retryMs ?? RETRY_MS }: QueueConfig) {
    const ttlMs = this.#options.waiterTtlMs ?? 3 * retryMs
    // Whoever asks when it was told to has not left.
    return { retryMs, lateMs: Math.max(ttlMs - retryMs, retryMs) }
  }

  #run(script: RedisScript, { config }: Queue, now: number, rest: (string | number)[]) {
    if (this.#isClosed) throw new TransportUnavailableError('the admission backend is closed')
    const { name, concurrency = -1, rateLimit, fairness, order } = config
    const bucket = rateLimit ? Math.floor(now / rateLimit.periodMs) : 0
    const parts = ['slots', 'waiters', 'wmeta', 'wexpire', 'keyserved', `rate:${bucket}`]
    const keys = [...parts, 'seq', 'servedseq'].map((part) => `${this.#prefix}${name}:${part}`)
    const flags = [fairness === 'key' ? 1 : 0, order === 'lifo' ? 1 : 0]
    const common = [this.#instanceId, this.#ttlMs, now, concurrency, rateLimit?.limit ?? -1]
    return script.run(this.#client, [...keys, this.#livenessKey], [...common, ...flags, ...rest])
  }

  get #livenessKey(): string {
    return `${this.#prefix}inst:${this.#instanceId}`
  }

  /** From the first request on: an instance without slots need not be known. */
  #beat(): void {
    this.#stopBeating ??= this.#timers.every(this.#ttlMs / 3, () => {
      this.#client.set(this.#livenessKey, '1', 'PX', this.#ttlMs).then(
        () => void (this.#isSilent = false),
        (error) => {
          if (!this.#isSilent && !this.#isClosed) this.#onError(error)
          this.#isSilent = true
        }
      )
    })
  }

  /** Slots may have come free while nobody listened. */
  #catchUp(): void {
    for (const [queue, { waiting }] of this.#queues) if (waiting.size > 0) this.#tell(queue)
  }

  #tell(name: string): void {
    const queue = this.#queues.get(name)
    if (!queue || this.#listeners.size === 0) return
    if (queue.telling) queue.telling.again = true
    else void this.#tellNext(name, queue)
  }

  async #tellNext(name: string, queue: Queue): Promise<void> {
    const telling = { again: false }
    queue.telling = telling
    try {
      do {
        telling.again = false
        const next = await this.#nextOf(queue)
        for (const { call } of [...this.#listeners]) isolate(() => call(name, next), this.#onError)
      } while (telling.again && !this.#isClosed)
    } catch {
      // A waiter that nobody wakes asks again by itself.
    } finally {
      queue.telling = undefined
    }
  }

  /** Redis is asked where somebody of this process may be next. */
  async #nextOf(queue: Queue): Promise<string[]> {
    const now = this.#clock()
    for (const [id, until] of queue.waiting) if (until < now) queue.waiting.delete(id)
    if (queue.waiting.size === 0) return []
    return (await this.#run(NEXT_SCRIPT, queue, now, [MOST_NEXT])) as string[]
  }
}

function checkMs(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) return
  throw new InvalidArgumentError(
    `RedisAdmissionBackend: ${name}`,
    `must be a whole number of milliseconds of at least 1, got ${String(value)}`
  )
}
