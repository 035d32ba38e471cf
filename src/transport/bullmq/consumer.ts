/*
 * One BullMQ worker over one queue. What its handler throws never costs the message: it is reported and
 * comes again after a while, outside of BullMQ's count of attempts. Closing waits for what is in flight,
 * then hands it back to the queue, likewise uncounted.
 */
import { backoffDelay, spread } from '../../foundation/backoff.ts'
import { type Clock, nextMacrotask } from '../../foundation/clock.ts'
import { type Deferred, deferred } from '../../foundation/deferred.ts'
import type { HeldJob, QueueConsumer, QueueConsumption } from '../job_broker.ts'
import type { BullJob, BullMQDeps, BullWorker } from './deps.ts'
import type { Clients } from './clients.ts'

const REDELIVERY = { backoff: 'exp', backoffMs: 100, backoffMaxMs: 10_000 } as const
const REDELIVERY_SPREAD = 0.2
/** A message that must not be lost however many consumers die with it. */
export const NEVER_POISON = Number.MAX_SAFE_INTEGER

/** Thrown into BullMQ for a job that was moved away by hand; known by its name in every release. */
class MovedJob extends Error {
  override readonly name = 'DelayedError'
}

export interface Flight extends HeldJob {
  readonly job: BullJob
}

interface Held {
  job: BullJob
  token?: string
  givenBack: boolean
  finishing: number
  handedBack: Deferred<void>
}

export interface ConsumerOptions extends QueueConsumption<Flight> {
  lockDuration?: number
  stalledInterval?: number
  /** Messages whose job fails when `handle` throws; by default every message comes again. */
  failsOnThrow?(data: unknown): boolean
}

export interface ConsumerDeps {
  clients: Clients
  deps: BullMQDeps
  clock: Clock
  /** Looks after this consumer no more. */
  forget(consumer: Consumer): void
}

export class Consumer implements QueueConsumer {
  readonly #options: ConsumerOptions
  readonly #clients: Clients
  readonly #clock: Clock
  readonly #forget: ConsumerDeps['forget']
  readonly #worker: BullWorker
  readonly #held = new Set<Held>()
  #stopping = false
  #ready = false
  #closing?: Promise<void>

  constructor(options: ConsumerOptions, { clients, deps, clock, forget }: ConsumerDeps) {
    this.#options = options
    this.#clients = clients
    this.#clock = clock
    this.#forget = forget
    const { maxStalledCount = NEVER_POISON, lockDuration, stalledInterval } = options
    this.#worker = deps.makeWorker(
      options.queue(),
      (job, token) => this.#process(job, token),
      clients.workers,
      {
        concurrency: options.slots(),
        maxStalledCount,
        ...(lockDuration !== undefined && { lockDuration }),
        ...(stalledInterval !== undefined && { stalledInterval }),
      }
    )
    this.#worker.on('error', (error) => clients.report(error))
    this.#worker.on('failed', (job, error) => options.onFailed?.(job?.data, error))
  }

  kick(): void {
    this.#worker.concurrency = this.#options.slots()
  }

  async release(): Promise<void> {
    await this.close()
    this.#forget(this)
  }

  /** Takes nothing more; resolves after what is in flight, and not before Redis was there once. */
  close(): Promise<void> {
    this.#stopping = true
    return (this.#closing ??= this.#close())
  }

  /** After the sockets were dropped: stops the timers of a worker that never came up. */
  abandon(): void {
    if (this.#ready) return
    const close = async () => {
      await this.#worker.waitUntilReady().catch(() => {})
      // Its check for silent workers sets its timer once more before it sees the end.
      await nextMacrotask()
      await this.#worker.close()
    }
    void close().catch(() => {})
  }

  /** Puts what is in flight back at the head of its queue, where others find it at once. */
  async handBack(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#held].filter((held) => held.finishing === 0).map(this.#giveUp))
  }

  async #close(): Promise<void> {
    try {
      // BullMQ breaks when a connection is closed while it is being set up.
      await this.#worker.waitUntilReady()
      this.#ready = true
      await this.#worker.close()
    } catch (error) {
      this.#clients.report(error)
    }
  }

  async #process(job: BullJob, token: string | undefined): Promise<void> {
    const held: Held = { job, token, givenBack: false, finishing: 0, handedBack: deferred<void>() }
    // A worker that closes may have fetched one more.
    if (this.#stopping) await this.#giveUp(held)
    else await this.#run(held)
    if (held.givenBack) throw new MovedJob('handed back')
  }

  async #run(held: Held): Promise<void> {
    this.#held.add(held)
    try {
      await Promise.race([
        this.#options.handle(held.job.data, flightOf(held)),
        held.handedBack.promise,
      ])
    } catch (error) {
      if (held.givenBack) return
      if (this.#options.failsOnThrow?.(held.job.data)) throw error
      this.#clients.report(error)
      await this.#redeliver(held)
    } finally {
      this.#held.delete(held)
    }
  }

  async #redeliver({ job, token }: Held): Promise<never> {
    const delay = spread(backoffDelay(job.attemptsStarted ?? 1, REDELIVERY), REDELIVERY_SPREAD)
    // When it cannot be moved its lock lapses, and it comes again as that of a dead worker would.
    await job
      .moveToDelayed(this.#clock() + delay, token)
      .catch((error: unknown) => this.#clients.report(error))
    throw new MovedJob('comes again later')
  }

  readonly #giveUp = async (held: Held): Promise<void> => {
    held.givenBack = true
    const { job, token } = held
    try {
      if (job.moveToWait) await job.moveToWait(token)
      else await job.moveToDelayed(this.#clock(), token)
    } catch (error) {
      this.#clients.report(error)
    }
    held.handedBack.resolve()
  }
}

function flightOf(held: Held): Flight {
  return {
    job: held.job,
    get givenBack() {
      return held.givenBack
    },
    async finish(work) {
      held.finishing++
      try {
        return await work()
      } finally {
        held.finishing--
      }
    },
  }
}
