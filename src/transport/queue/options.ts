/*
 * The options of the transport, and their defaults.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { type Clock, type Timers, systemClock, systemTimers } from '../../foundation/clock.ts'
import { randomId } from '../../foundation/ids.ts'
import { DEFAULT_PREFIX } from '../../wire/names.ts'
import { type Concurrency, readResultConcurrency } from '../concurrency_options.ts'
import type { JobSettings } from '../job_broker.ts'
import { type TransportErrorHandler, reportToConsole } from '../ports.ts'
import type { WorkerKeyStore } from '../worker_keys.ts'
import type { QueueAdapter } from './adapter.ts'

/** Durations in ms. */
export interface QueueTransportConfig {
  /** Key of `adapters` in config/queue.ts; default that file's `default`. */
  connection?: string
  /**
   * An adapter instead of `connection`: one of its own, which is left open at `close`, or a function that
   * makes one, which is destroyed then.
   */
  adapter?: QueueAdapter | (() => QueueAdapter)
  /** Pool whose tasks `handle` serves unless told otherwise; default the bare one. */
  partition?: string
  /** Folded into every name; wins over `useNamespace`. Default none. */
  namespace?: string
  /** Start of every name; default `durable`. */
  prefix?: string
  /** Of this process, and the worker id of its adapter; default random. At most 150 bytes. */
  instanceId?: string
  /** How often each loop looks for work, and how long a refused message waits; default 200. */
  pollIntervalMs?: number
  /** Idle loops for tasks and heartbeats look up to so many times less often; default 4, `1`: never. */
  idleBackoffMax?: number
  /** Tasks at once in each queue: a number (default 1), `'adaptive'`, or limits for it. */
  concurrency?: Concurrency
  /** Results taken at once; default 1. */
  resultConcurrency?: number
  /** Messages of the run queue taken at once, per scope; default 10 (ours). */
  runConcurrency?: number
  /** How often jobs of silent workers are looked for; default 30 000, `0`: never. */
  stalledCheckIntervalMs?: number
  /** How long a job stays with a worker that gives no sign of life; default 120 000. */
  stalledThresholdMs?: number
  /** Workers a task may silence before it fails, to be retried; default 3. */
  maxStalledCount?: number
  /** Where workers and pods are seen alive; default a table of the database, if there is one. */
  workerKeys?: WorkerKeyStore | false
  /** How long a message waits for a pod that is gone; default 300 000. */
  inboxTtlMs?: number
  /** How long the subscribers of a tenant are remembered; default 5000. */
  tenantSubscribersCacheMs?: number
  /** How often messages to pods that are gone are deleted; default 60 000. */
  inboxSweepIntervalMs?: number
  /** Longest wait at `close` for what is in flight, before it is handed back; default 5000. */
  closeTimeoutMs?: number
  /** @deprecated Ignored: tasks are routed by name. */
  group?: string
  /** Told about failing handlers, lost claims and what else nobody awaits; default `console.error`. */
  onError?: TransportErrorHandler
  clock?: Clock
  timers?: Timers
}

export interface QueueSettings extends JobSettings {
  adapter: QueueAdapter | (() => QueueAdapter)
  pollIntervalMs: number
  idleBackoffMax: number
  stalledCheckIntervalMs: number
  stalledThresholdMs: number
  workerKeys?: WorkerKeyStore
  inboxTtlMs: number
  tenantSubscribersCacheMs: number
  inboxSweepIntervalMs: number
}

const RUN_CONCURRENCY = 10

/** Default and least value of every duration and count. */
const NUMBERS = {
  pollIntervalMs: [200, 1],
  idleBackoffMax: [4, 1],
  stalledCheckIntervalMs: [30_000, 0],
  stalledThresholdMs: [120_000, 1],
  maxStalledCount: [3, 0],
  inboxTtlMs: [300_000, 1],
  tenantSubscribersCacheMs: [5000, 0],
  inboxSweepIntervalMs: [60_000, 1],
  closeTimeoutMs: [5000, 0],
} as const

const MAX_INSTANCE_ID_BYTES = 150

const what = (option: keyof QueueTransportConfig): string => `transports.queue: ${option}`

/** Throws `InvalidArgumentError`, naming the option. */
export function readSettings(config: QueueTransportConfig): QueueSettings {
  const { adapter, partition, namespace, prefix = DEFAULT_PREFIX } = config
  const instanceId = config.instanceId ?? randomId()
  checkAdapter(adapter)
  for (const [option, value] of Object.entries({ prefix, namespace, partition, instanceId })) {
    if (value === undefined || typeof value === 'string') continue
    throw new InvalidArgumentError(what(option as 'prefix'), 'must be a text')
  }
  if (prefix === '') throw new InvalidArgumentError(what('prefix'), 'must not be empty')
  if (instanceId === '' || Buffer.byteLength(instanceId) > MAX_INSTANCE_ID_BYTES) {
    const size = `must have 1 to ${MAX_INSTANCE_ID_BYTES} bytes`
    throw new InvalidArgumentError(what('instanceId'), size)
  }
  const { resultConcurrency, runConcurrency = RUN_CONCURRENCY, workerKeys } = config
  return {
    ...numbers(config),
    adapter,
    partition,
    namespace: namespace === '' ? undefined : namespace,
    prefix,
    instanceId,
    concurrency: config.concurrency,
    resultConcurrency: readResultConcurrency(resultConcurrency, what('resultConcurrency')),
    runConcurrency: readResultConcurrency(runConcurrency, what('runConcurrency')),
    workerKeys: workerKeys === false ? undefined : workerKeys,
    onError: config.onError ?? reportToConsole,
    clock: config.clock ?? systemClock,
    timers: config.timers ?? systemTimers,
  }
}

function checkAdapter(
  adapter: QueueTransportConfig['adapter']
): asserts adapter is QueueAdapter | (() => QueueAdapter) {
  if (typeof adapter === 'function' || typeof adapter?.popFrom === 'function') return
  throw new InvalidArgumentError(
    what('adapter'),
    'must be an adapter of @adonisjs/queue, or a function that makes one'
  )
}

function numbers(config: QueueTransportConfig): Record<keyof typeof NUMBERS, number> {
  const read = {} as Record<keyof typeof NUMBERS, number>
  for (const option of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    const [standard, least] = NUMBERS[option]
    const value: unknown = config[option] ?? standard
    if (typeof value !== 'number' || !Number.isFinite(value) || value < least) {
      throw new InvalidArgumentError(what(option), `must be a number of at least ${least}`)
    }
    if (option === 'maxStalledCount' && !Number.isSafeInteger(value)) {
      throw new InvalidArgumentError(what(option), 'must be a whole number')
    }
    // Adapters keep times in columns that take no fractions.
    read[option] = option === 'idleBackoffMax' ? value : Math.ceil(value)
  }
  return read
}
