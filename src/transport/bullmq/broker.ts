/*
 * What every lane of the transport works with: names, queues, consumers and subscriptions of one
 * namespace over the shared connections. Owns their lifecycle: nothing is opened before it is needed,
 * and closing is bounded.
 */
import { createHash } from 'node:crypto'
import { nextMacrotask, sleepOn } from '../../foundation/clock.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { type BullNames, bullNames } from '../../wire/names.ts'
import { JobBroker, type JobOptions } from '../job_broker.ts'
import { Clients } from './clients.ts'
import { Consumer, type ConsumerOptions } from './consumer.ts'
import type { BullJobOptions, BullMQDeps, BullQueue } from './deps.ts'
import { type BullMQSettings, checkName } from './options.ts'
import { Subscriptions } from './subscriptions.ts'

/** The urgency of a job: lower is sooner for BullMQ, higher is sooner for us. */
const MIDDLE_PRIORITY = 1_048_576
const LOWEST_PRIORITY = 2_097_151

/** How long handing back may take once the patience of `close` is used up. */
const HAND_BACK_MS = 1000

const DEPTH = ['waiting', 'active', 'delayed', 'prioritized'] as const

/** Payloads of failed steps stay this long, so that their failure can be told, in seconds. */
const KEEP_FAILED_S = 86_400

function optionsOf({ priority, step }: JobOptions): BullJobOptions {
  return {
    removeOnComplete: true,
    removeOnFail: step ? { age: KEEP_FAILED_S } : true,
    ...(priority !== undefined && Number.isFinite(priority) && { priority: inverted(priority) }),
    ...(step && { deduplication: { id: dedupeIdOf(step) } }),
  }
}

function inverted(priority: number): number {
  return Math.min(LOWEST_PRIORITY, Math.max(1, Math.round(MIDDLE_PRIORITY - priority)))
}

/** One job for each attempt of a step at a time, whatever its ids look like. */
function dedupeIdOf({ stepId, attempt }: Required<JobOptions>['step']): string {
  return createHash('sha256').update(`${attempt}:${stepId}`).digest('base64url')
}

export class Broker extends JobBroker<BullMQSettings, BullNames> {
  readonly clients: Clients
  readonly subscriptions: Subscriptions
  readonly #deps: BullMQDeps
  readonly #queues = new Map<string, BullQueue>()
  readonly #consumers = new Set<Consumer>()
  /** Something consumes or subscribes under the names as they are. */
  #settled = false

  constructor(settings: BullMQSettings, deps: BullMQDeps) {
    super('bullmq', settings, bullNames)
    this.#deps = deps
    this.clients = new Clients(settings.source, deps, settings)
    this.subscriptions = new Subscriptions(this.clients, settings.timers)
  }

  readonly report = (error: unknown): void => this.clients.report(error)

  override useNamespace(namespace: string): void {
    const { settings } = this
    if (settings.namespace !== undefined || this.closed) return
    checkName('useNamespace: namespace', namespace)
    const { results } = bullNames(settings.prefix, namespace)
    if (this.#settled && results !== this.names.results) {
      throw new InvalidArgumentError(
        'transports.bullmq: namespace',
        `cannot become "${namespace}" once handlers are registered: they consume under other names. ` +
          'Build the engine first, or give the namespace to the transport'
      )
    }
    super.useNamespace(namespace)
  }

  queue(name: string): BullQueue {
    const known = this.#queues.get(name)
    if (known) return known
    const queue = this.#deps.makeQueue(name, this.clients.producer)
    queue.on('error', (error) => this.report(error))
    this.#queues.set(name, queue)
    return queue
  }

  async push(
    queue: string,
    name: string,
    payload: object,
    options: JobOptions = {}
  ): Promise<void> {
    const add = () => this.queue(queue).add(name, payload, optionsOf(options))
    await this.#send(`queue ${queue} took no job`, add)
  }

  async publish(channel: string, text: string): Promise<void> {
    const { producer } = this.clients
    await this.#send(`channel ${channel} took nothing`, () => producer.publish(channel, text))
  }

  consume(options: ConsumerOptions): Consumer {
    this.#settled = true
    const { stalledInterval, lockDuration } = this.settings
    const consumer = new Consumer(
      { stalledInterval, lockDuration, ...options },
      {
        clients: this.clients,
        deps: this.#deps,
        clock: this.clock,
        forget: (released) => void this.#consumers.delete(released),
      }
    )
    this.#consumers.add(consumer)
    return consumer
  }

  /** Jobs that wait or run. */
  async depthOf(queue: string): Promise<number> {
    const counts = await this.queue(queue).getJobCounts(...DEPTH)
    return Object.values(counts as Record<string, number>).reduce((sum, n) => sum + n, 0)
  }

  /** Listens to a channel; the answer stops it. */
  listen(channel: string, listener: (text: string) => unknown): () => void {
    this.#settled = true
    return this.subscriptions.on(channel, listener)
  }

  /**
   * Waits up to `closeTimeoutMs` for `leaving` and for what is in flight, hands back the rest, and drops
   * every socket.
   */
  async close(leaving: Promise<unknown>): Promise<void> {
    const consumers = [...this.#consumers]
    const closing = Promise.allSettled([leaving, ...consumers.map((consumer) => consumer.close())])
    const late = Symbol()
    const patience = sleepOn(this.timers, this.settings.closeTimeoutMs).then(() => late)
    if ((await Promise.race([closing, patience])) === late) {
      const handing = Promise.allSettled(consumers.map((consumer) => consumer.handBack()))
      await Promise.race([handing.then(() => closing), sleepOn(this.timers, HAND_BACK_MS)])
    }
    this.subscriptions.close()
    await Promise.race([
      Promise.allSettled([...this.#queues.values()].map(closeWhenReady)),
      sleepOn(this.timers, HAND_BACK_MS),
    ])
    this.clients.disconnect()
    await nextMacrotask()
    for (const consumer of consumers) consumer.abandon()
  }

  #send(problem: string, send: () => Promise<unknown>): Promise<void> {
    const { producer } = this.clients
    return this.handOver(problem, async () => {
      // BullMQ waits for ever for a first connection; a command of ioredis gives up.
      if (producer.status !== 'ready') await producer.ping()
      await send()
    })
  }
}

/** BullMQ breaks when a connection is closed while it is being set up. */
async function closeWhenReady(queue: BullQueue): Promise<void> {
  await queue.waitUntilReady()
  await queue.close()
}
