/*
 * One queue that this process takes jobs from: never more at once than it has slots for, each held until
 * it was handled. A job whose handler throws comes again; one that was lost or given back is nobody's
 * here any more. Keeping claims alive is the broker's.
 */
import { type Clock, type Timers, systemClock } from '../../foundation/clock.ts'
import { beforeAgain } from '../again.ts'
import type { HeldJob, QueueConsumer, QueueConsumption } from '../job_broker.ts'
import { PollLoop } from '../poll_loop.ts'
import type { TransportErrorHandler } from '../ports.ts'
import type { QueueAdapter, QueueJob } from './adapter.ts'

/** A job in the hands of this process. */
export class Claim implements HeldJob {
  readonly id: string
  readonly queue: string
  /** Another worker may have it. */
  lost = false
  givenBack = false
  /** When it was last known to stand, in epoch ms. */
  renewedAt: number
  #finishing = 0

  constructor(job: QueueJob, queue: string, nowMs: number) {
    this.id = job.id
    this.queue = queue
    this.renewedAt = nowMs
  }

  /** Neither completed nor retried from here any more. */
  get void(): boolean {
    return this.lost || this.givenBack
  }

  /** Its answer or its end is on the way. */
  get finishing(): boolean {
    return this.#finishing > 0
  }

  async finish<T>(work: () => Promise<T>): Promise<T> {
    this.#finishing++
    try {
      return await work()
    } finally {
      this.#finishing--
    }
  }
}

export interface JobLaneOptions extends QueueConsumption<Claim> {
  /** Default 1: never look less often, since somebody waits. */
  idleBackoffMax?: number
}

/** What a lane needs of its broker. */
export interface LaneHost {
  adapter: QueueAdapter
  pollIntervalMs: number
  clock: Clock
  timers: Timers
  report: TransportErrorHandler
  /** Nothing is tried again any more. */
  readonly closed: boolean
  /** Asks the adapter when it has been long; marks the claim when it was lost. */
  stands(claim: Claim): Promise<boolean>
  /** Looks after this lane no more. */
  forget(lane: JobLane): void
}

export class JobLane implements QueueConsumer {
  readonly options: JobLaneOptions
  readonly #host: LaneHost
  readonly #held = new Map<Claim, Promise<void>>()
  readonly #loop: PollLoop
  #mayBeMore = false
  #stopped = false
  #failing = false

  constructor(options: JobLaneOptions, host: LaneHost) {
    this.options = options
    this.#host = host
    this.#loop = new PollLoop({
      poll: () => this.#poll(),
      intervalMs: host.pollIntervalMs,
      idleBackoffMax: options.idleBackoffMax ?? 1,
      timers: host.timers,
      onError: host.report,
    })
  }

  /** Begins to take jobs, or looks for some now. */
  kick(): void {
    this.#loop.kick()
  }

  /** Claims whose job is neither lost nor on its way out. */
  get claims(): Claim[] {
    return [...this.#held.keys()].filter((claim) => !claim.void && !claim.finishing)
  }

  holds(claim: Claim): boolean {
    return this.#held.has(claim)
  }

  /** Takes nothing more. Resolves when the last look has ended; what is held stays held. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loop.stop()
  }

  /** Resolves when nothing is handled any more, but for what was given back. */
  async idle(): Promise<void> {
    while (this.#held.size > 0) await Promise.all(this.#held.values())
  }

  async release(): Promise<void> {
    await this.stop()
    await this.idle()
    this.#host.forget(this)
  }

  /** For a job that silenced too many workers. */
  async giveUp(payload: unknown): Promise<void> {
    const problem = `it stalled more than ${this.options.maxStalledCount} times`
    await this.options.onFailed?.(payload, new Error(problem))
  }

  /** Puts back what is still handled, uncounted: another worker finds it at once. */
  async giveBack(): Promise<void> {
    await Promise.all(this.claims.map((claim) => this.#giveBack(claim)))
  }

  get #room(): number {
    return this.options.slots() - this.#held.size
  }

  async #poll(): Promise<boolean> {
    const { adapter, clock } = this.#host
    const queue = this.options.queue()
    let found = false
    this.#mayBeMore = false
    while (this.#room > 0 && !this.#stopped) {
      const asked = clock()
      const job = await this.#pop(queue)
      if (!job) return found
      found = true
      if (this.#stopped) await adapter.retryJob(job.id, queue)
      else this.#take(job, new Claim(job, queue, asked))
    }
    this.#mayBeMore = true
    return found
  }

  /** A look that fails finds nothing; the first one of a burst is reported. */
  async #pop(queue: string): Promise<QueueJob | null> {
    try {
      const job = await this.#host.adapter.popFrom(queue)
      this.#failing = false
      return job
    } catch (error) {
      if (!this.#failing) this.#host.report(error)
      this.#failing = true
      return null
    }
  }

  #take(job: QueueJob, claim: Claim): void {
    const done = this.#handle(job, claim).finally(() => this.#letGo(claim))
    this.#held.set(claim, done)
  }

  #letGo(claim: Claim): void {
    this.#held.delete(claim)
    if (this.#mayBeMore) this.#loop.kick()
  }

  /** Never rejects. */
  async #handle(job: QueueJob, claim: Claim): Promise<void> {
    const { adapter, report, pollIntervalMs } = this.#host
    const { handle, maxStalledCount = Infinity } = this.options
    try {
      const payload = payloadOf(job)
      if ((job.stalledCount ?? 0) > maxStalledCount) await this.giveUp(payload)
      else await handle(payload, claim)
    } catch (error) {
      if (claim.givenBack) return
      report(error)
      const again = () => new Date(systemClock() + pollIntervalMs)
      return this.#end(claim, () => adapter.retryJob(claim.id, claim.queue, again()))
    }
    await this.#end(claim, () => adapter.completeJob(claim.id, claim.queue))
  }

  /** Until it worked: a job that is neither completed nor retried would be handled once more. */
  async #end(claim: Claim, work: () => Promise<unknown>): Promise<void> {
    const { report, timers } = this.#host
    if (claim.void) return
    for (let failures = 0; !claim.void; failures++) {
      try {
        return await claim.finish(async () => {
          if (await this.#host.stands(claim)) await work()
        })
      } catch (error) {
        if (failures === 0) report(error)
        if (this.#host.closed) return
        await beforeAgain(failures + 1, timers)
      }
    }
  }

  async #giveBack(claim: Claim): Promise<void> {
    const { adapter, report } = this.#host
    try {
      if (!(await this.#host.stands(claim))) return
      claim.givenBack = true
      await adapter.retryJob(claim.id, claim.queue)
    } catch (error) {
      report(error)
    }
    this.#held.delete(claim)
  }
}

/** Peers may send text. What is no JSON is refused by whoever decodes it. */
function payloadOf({ payload }: QueueJob): unknown {
  if (typeof payload !== 'string') return payload
  try {
    return JSON.parse(payload)
  } catch {
    return payload
  }
}
