/*
 * What a driver over queues of jobs gives to the lanes that all of them share: the names of one namespace,
 * how a job is added, and how a queue is consumed.
 */
import { TransportUnavailableError } from '../errors.ts'
import { type Clock, type Timers, within } from '../foundation/clock.ts'
import { messageOf } from '../foundation/failure.ts'
import { type MessageKind, type Messages, WireFormatError, decode, toWire } from '../wire/codec.ts'
import type { RemoteTask } from '../wire/messages.ts'
import { JOB, type JobNames, type KeyNames, isDefaultPool, keyNames } from '../wire/names.ts'
import type { Concurrency } from './concurrency_options.ts'
import { ConsumerGate } from './consumer_gate.ts'
import type { TransportErrorHandler } from './ports.ts'

/** Whoever sends is holding a turn: it has to hear that nothing was sent. */
const SEND_TIMEOUT_MS = 30_000

export interface JobSettings {
  partition?: string
  namespace?: string
  prefix: string
  instanceId: string
  concurrency?: Concurrency
  resultConcurrency: number
  runConcurrency: number
  maxStalledCount: number
  closeTimeoutMs: number
  onError: TransportErrorHandler
  clock: Clock
  timers: Timers
}

export interface JobOptions {
  priority?: number
  /** The step that it carries out. */
  step?: Pick<RemoteTask, 'stepId' | 'attempt'>
}

/** A job in the hands of this process. */
export interface HeldJob {
  /** It was handed back: somebody else answers now, and whatever the handler still does is void. */
  readonly givenBack: boolean
  /** Runs what must not be cut off by a hand-back, such as sending the answer. */
  finish<T>(work: () => Promise<T>): Promise<T>
}

export interface QueueConsumption<Job extends HeldJob = HeldJob> {
  /** Asked again wherever a namespace may come later than the consumer. */
  queue(): string
  /** How many jobs may be handled at once. */
  slots(): number
  /** What it throws is reported, and the job comes again after a while. */
  handle(payload: unknown, job: Job): Promise<void>
  /** Workers a job may silence before it is given up; default any number. */
  maxStalledCount?: number
  /** The job was given up. There is no payload when that is lost already. */
  onFailed?(payload: unknown, error: Error): unknown
}

export interface QueueConsumer {
  /** There may be more to take, or more slots for it. */
  kick(): void
  /** Takes nothing more; resolves after what is in flight. */
  release(): Promise<void>
}

type JobKind = MessageKind & keyof typeof JOB

export abstract class JobBroker<
  Settings extends JobSettings = JobSettings,
  Names extends JobNames = JobNames,
> {
  readonly gate = new ConsumerGate()
  readonly clock: Clock
  readonly timers: Timers
  readonly #namesOf: (prefix: string, namespace?: string) => Names
  #namespace?: string
  #names: Names
  #keys: KeyNames
  #closed = false

  /** `driver`: in messages. */
  constructor(
    readonly driver: string,
    readonly settings: Settings,
    namesOf: (prefix: string, namespace?: string) => Names
  ) {
    const { prefix, namespace, clock, timers } = settings
    this.clock = clock
    this.timers = timers
    this.#namesOf = namesOf
    this.#namespace = namespace
    this.#names = namesOf(prefix, namespace)
    this.#keys = keyNames(prefix, namespace)
  }

  abstract readonly report: TransportErrorHandler

  /** Adds a job. Throws `TransportUnavailableError` when it could not be handed over. */
  abstract push(queue: string, name: string, payload: object, options?: JobOptions): Promise<void>

  /** Consumes a queue from now on. */
  abstract consume(options: QueueConsumption): QueueConsumer

  get names(): Names {
    return this.#names
  }

  get keys(): KeyNames {
    return this.#keys
  }

  /** The namespace that is folded into names; undefined for the bare ones. */
  get namespace(): string | undefined {
    return isDefaultPool(this.#namespace) ? undefined : this.#namespace
  }

  get closed(): boolean {
    return this.#closed
  }

  /** One that was given to the transport stays. */
  useNamespace(namespace: string): void {
    const { settings } = this
    if (settings.namespace !== undefined || this.#closed) return
    this.#namespace = namespace
    this.#names = this.#namesOf(settings.prefix, namespace)
    this.#keys = keyNames(settings.prefix, namespace)
  }

  assertOpen(): void {
    if (this.#closed) throw new TransportUnavailableError(`the ${this.driver} transport is closed`)
  }

  /** Marks the end. What is in flight may still answer. */
  refuse(): void {
    this.#closed = true
    this.gate.close()
  }

  /** Adds the job of a message, as `push` does. */
  send<K extends JobKind>(
    queue: string,
    kind: K,
    message: Messages[K],
    options?: JobOptions
  ): Promise<void> {
    return this.push(queue, JOB[kind], toWire(kind, message), options)
  }

  /** The message, or nothing for one that cannot be read: it would not become readable by coming again. */
  read<K extends MessageKind>(kind: K, payload: unknown): Messages[K] | undefined {
    try {
      return decode(kind, payload)
    } catch (error) {
      if (!(error instanceof WireFormatError)) throw error
      this.report(error)
      return undefined
    }
  }

  protected async handOver(problem: string, send: () => Promise<unknown>): Promise<void> {
    const silence = () => new Error(`no answer for ${SEND_TIMEOUT_MS}ms`)
    try {
      await within(this.timers, SEND_TIMEOUT_MS, send, silence)
    } catch (cause) {
      throw new TransportUnavailableError(`${problem}: ${messageOf(cause)}`, { cause })
    }
  }
}
