/*
 * What every side of the transport works with: names, the adapter, and the queues that are consumed.
 * Owns the claims: those in flight are renewed every half `stalledThresholdMs`, those of silent workers
 * are taken back. Closing is bounded and counts against no job.
 */
import { type Cancel, nextMacrotask, sleepOn } from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import { DurableError, InvalidArgumentError } from '../../errors.ts'
import { type QueueNames, queueNames } from '../../wire/names.ts'
import { JobBroker, type JobOptions } from '../job_broker.ts'
import { type QueueAdapter, type QueueJob, newJob } from './adapter.ts'
import { type Claim, JobLane, type JobLaneOptions, type LaneHost } from './job_lane.ts'
import type { QueueSettings } from './options.ts'

/** How long handing back may take once the patience of `close` is used up. */
const HAND_BACK_MS = 1000
/** Without renewal a claim is as old as its step is long. */
const UNRENEWED_THRESHOLD_MS = 30 * 60_000
/**
 * An adapter deletes what stalled too often, without a word. It gets a higher bound than ours, so that the
 * job comes here first; the rest is for workers that die while they tell.
 */
const SPARE_STALLS = 3
/** A claim that is older than this share of the threshold missed its renewal. */
const OVERDUE_SHARE = 0.75
const NEVER_GIVEN_UP = Number.MAX_SAFE_INTEGER

export class Broker extends JobBroker<QueueSettings, QueueNames> implements LaneHost {
  readonly adapter: QueueAdapter
  readonly pollIntervalMs: number
  readonly #lanes = new Set<JobLane>()
  readonly #ownsAdapter: boolean
  #keepers: Cancel[] = []
  readonly #keeping = new Set<Promise<void>>()
  #keepsClaims = false
  #renews = true

  constructor(settings: QueueSettings) {
    super('queue', settings, queueNames)
    const { adapter, instanceId, pollIntervalMs } = settings
    this.pollIntervalMs = pollIntervalMs
    this.#ownsAdapter = typeof adapter === 'function'
    this.adapter = typeof adapter === 'function' ? adapter() : adapter
    refuseSync(this.adapter)
    this.adapter.setWorkerId(instanceId)
  }

  readonly report = (error: unknown): void => isolate(() => this.settings.onError(error))

  /** Loops look under the new names from their next look on. */
  override useNamespace(namespace: string): void {
    super.useNamespace(namespace)
    for (const lane of this.#lanes) lane.kick()
  }

  async push(
    queue: string,
    name: string,
    payload: object,
    { priority }: JobOptions = {}
  ): Promise<void> {
    await this.#send(queue, () => this.adapter.pushOn(queue, newJob(name, payload, priority)))
    this.#look(queue)
  }

  async pushMany(queue: string, name: string, payloads: object[]): Promise<void> {
    const jobs = payloads.map((payload) => newJob(name, payload))
    await this.#send(queue, async () => {
      if (this.adapter.pushManyOn) await this.adapter.pushManyOn(queue, jobs)
      else for (const job of jobs) await this.adapter.pushOn(queue, job)
    })
    this.#look(queue)
  }

  consume(options: JobLaneOptions): JobLane {
    const lane = new JobLane(options, this)
    this.#lanes.add(lane)
    this.#keepClaims()
    lane.kick()
    return lane
  }

  forget(lane: JobLane): void {
    this.#lanes.delete(lane)
  }

  async stands(claim: Claim): Promise<boolean> {
    const now = this.clock()
    if (claim.lost) return false
    const isFresh = now - claim.renewedAt < OVERDUE_SHARE * this.#thresholdMs
    if (isFresh || !this.adapter.renewJobs) return true
    const standing = await this.adapter.renewJobs(claim.queue, [claim.id])
    if (standing > 0) claim.renewedAt = now
    else this.#lose(claim.queue, [claim], 1)
    return standing > 0
  }

  /** Does this from time to time until the end, never twice at once. */
  every(ms: number, work: () => unknown): void {
    let isRunning = false
    const cancel = this.timers.every(ms, () => {
      if (isRunning) return
      isRunning = true
      void this.#keep(work).then(() => (isRunning = false))
    })
    this.#keepers.push(cancel)
  }

  /** Takes what is left in a queue, and forgets it. */
  async drain(queue: string): Promise<void> {
    while (!this.closed) {
      const job = await this.adapter.popFrom(queue)
      if (!job) return
      await this.adapter.completeJob(job.id, queue)
    }
  }

  /** Waits up to `closeTimeoutMs` for `leaving` and for what is in flight, and hands back the rest. */
  async close(leaving: Promise<unknown>): Promise<void> {
    const lanes = [...this.#lanes]
    const settle = async () => {
      await Promise.all(lanes.map((lane) => lane.stop()))
      await Promise.all(lanes.map((lane) => lane.idle()))
      await leaving.catch(this.report)
    }
    const settling = settle()
    const late = Symbol()
    const patience = sleepOn(this.timers, this.settings.closeTimeoutMs).then(() => late)
    if ((await Promise.race([settling, patience])) === late) {
      const handing = Promise.all(lanes.map((lane) => lane.giveBack()))
      await this.#briefly(handing.then(() => settling))
    }
    for (const cancel of this.#keepers) cancel()
    await this.#briefly(Promise.all(this.#keeping))
    if (this.#ownsAdapter) await this.#briefly(this.adapter.destroy())
    await nextMacrotask()
  }

  get #thresholdMs(): number {
    const { stalledThresholdMs } = this.settings
    return this.#renews ? stalledThresholdMs : Math.max(stalledThresholdMs, UNRENEWED_THRESHOLD_MS)
  }

  async #briefly(work: Promise<unknown>): Promise<void> {
    await Promise.race([work.catch(this.report), sleepOn(this.timers, HAND_BACK_MS)])
  }

  #send(queue: string, send: () => Promise<unknown>): Promise<void> {
    return this.handOver(`queue ${queue} took no job`, send)
  }

  /** Who consumes what this process sent need not wait for its next look. */
  #look(queue: string): void {
    for (const lane of this.#lanes) if (lane.options.queue() === queue) lane.kick()
  }

  #keepClaims(): void {
    if (this.#keepsClaims) return
    this.#keepsClaims = true
    const { stalledThresholdMs, stalledCheckIntervalMs } = this.settings
    this.every(stalledThresholdMs / 2, () => this.#renew())
    if (stalledCheckIntervalMs > 0 && this.adapter.recoverStalledJobs) {
      this.every(stalledCheckIntervalMs, () => (this.closed ? undefined : this.#sweep()))
    }
    void this.#keep(() => this.#probeRenewal())
  }

  /** Until it ended, `close` waits for it. */
  #keep(work: () => unknown): Promise<void> {
    const running = (async () => work())().then(() => {}, this.report)
    this.#keeping.add(running)
    return running.finally(() => this.#keeping.delete(running))
  }

  /** An adapter that cannot renew says so for no jobs at all, too. */
  async #probeRenewal(): Promise<void> {
    let cause: unknown
    try {
      if (this.adapter.renewJobs) await this.adapter.renewJobs(this.names.results, [])
      this.#renews = this.adapter.renewJobs !== undefined
    } catch (error) {
      this.#renews = false
      cause = error
    }
    if (this.#renews) return
    const problem =
      'the adapter of the queue transport renews no claims: a job counts as lost after ' +
      `${this.#thresholdMs}ms, so a step that takes longer may run twice`
    throw new DurableError(problem, { code: 'claims_not_renewed', cause })
  }

  async #renew(): Promise<void> {
    if (!this.adapter.renewJobs || !this.#renews) return
    const byQueue = new Map<string, Claim[]>()
    for (const lane of this.#lanes) {
      for (const claim of lane.claims) {
        const claims = byQueue.get(claim.queue)
        if (claims) claims.push(claim)
        else byQueue.set(claim.queue, [claim])
      }
    }
    const renewing = [...byQueue].map(([queue, claims]) => this.#renewIn(queue, claims))
    for (const outcome of await Promise.allSettled(renewing)) {
      if (outcome.status === 'rejected') this.report(outcome.reason)
    }
  }

  async #renewIn(queue: string, claims: Claim[]): Promise<void> {
    const now = this.clock()
    const renew = (some: Claim[]) =>
      this.adapter.renewJobs!(
        queue,
        some.map(({ id }) => id)
      )
    const renewed = await renew(claims)
    if (renewed >= claims.length) return void claims.forEach((claim) => (claim.renewedAt = now))
    const lost: Claim[] = []
    for (const claim of claims) {
      // It may have ended meanwhile.
      if (!this.#holds(claim)) continue
      if ((await renew([claim])) > 0) claim.renewedAt = now
      else if (this.#holds(claim)) lost.push(claim)
    }
    this.#lose(queue, lost, claims.length)
  }

  #holds(claim: Claim): boolean {
    if (claim.void || claim.finishing) return false
    return [...this.#lanes].some((lane) => lane.holds(claim))
  }

  #lose(queue: string, lost: Claim[], of: number): void {
    if (lost.length === 0) return
    for (const claim of lost) claim.lost = true
    const problem =
      `lost ${lost.length} of ${of} claim(s) on ${queue}: this process was too busy to renew them, ` +
      'or the queue could not be reached'
    this.report(new DurableError(problem, { code: 'claims_lost' }))
  }

  /** Renews first: a process that was busy has both timers due, and must not take from itself. */
  async #sweep(): Promise<void> {
    await this.#renew()
    for (const lane of this.#lanes) {
      if (this.closed) return
      try {
        await this.#recover(lane)
      } catch (error) {
        this.report(error)
      }
    }
  }

  async #recover(lane: JobLane): Promise<void> {
    const { maxStalledCount } = lane.options
    const bound = maxStalledCount === undefined ? NEVER_GIVEN_UP : maxStalledCount + SPARE_STALLS
    const answer = await this.adapter.recoverStalledJobs!(
      lane.options.queue(),
      this.#thresholdMs,
      bound
    )
    const failed: QueueJob[] = typeof answer === 'object' ? (answer.failed ?? []) : []
    for (const job of failed) await lane.giveUp(job.payload)
    if (typeof answer === 'object' || answer > 0) lane.kick()
  }
}

/** It runs jobs where they are pushed. */
function refuseSync(adapter: QueueAdapter): void {
  if (adapter.constructor.name !== 'SyncAdapter') return
  throw new InvalidArgumentError(
    'transports.queue: connection',
    'names the sync adapter, which carries nothing. Name one of drivers.redis() or drivers.database()'
  )
}
