/*
 * The options of the transport, and their defaults.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { type Clock, type Timers, systemClock, systemTimers } from '../../foundation/clock.ts'
import { DEFAULT_PREFIX, buildInstanceId } from '../../wire/names.ts'
import { type Concurrency, readResultConcurrency } from '../concurrency_options.ts'
import type { JobSettings } from '../job_broker.ts'
import { type TransportErrorHandler, reportToConsole } from '../ports.ts'
import { type BullMQConnection, type ConnectionSource, readConnection } from './connection.ts'

/** Durations in ms. */
export interface BullMQTransportConfig {
  /** Where Redis is: options of ioredis, a `redis://` or `rediss://` URL, or a client of ioredis. */
  connection: BullMQConnection
  /** Pool whose tasks `handle` serves unless told otherwise; default the bare one. */
  partition?: string
  /** Folded into every name; wins over `useNamespace`. Default none. */
  namespace?: string
  /** Start of every name; default `durable`. */
  prefix?: string
  /** Under which this process is seen alive; default `ts-<host>-<pid>`. */
  instanceId?: string
  /** Tasks at once in each queue: a number (default 1), `'adaptive'`, or limits for it. */
  concurrency?: Concurrency
  /** Results taken at once; default 1. */
  resultConcurrency?: number
  /** Messages of the run queue taken at once, per scope; default 10 (ours). */
  runConcurrency?: number
  /** How often a subscriber connection is pinged; default 30 000, `0` or `false` is off. */
  pingIntervalMs?: number | false
  /** A step handler that still runs after this fails, to be retried; default off. */
  stepTimeoutMs?: number
  /** Longest wait at `close` for what is in flight, before it is handed back; default 5000. */
  closeTimeoutMs?: number
  /**
   * How long a task stays with a worker that gives no sign of life: 30 000 for steps, 300 000 for queues
   * that serve remote workflows, whose turns may keep the event loop busy (ours; BullMQ's `lockDuration`).
   */
  lockDuration?: number
  /** How often tasks of silent workers are looked for; default 30 000 (ours; BullMQ's). */
  stalledInterval?: number
  /** Workers a task may silence before it fails, to be retried; default 3 (ours; BullMQ's is 1). */
  maxStalledCount?: number
  /** @deprecated Ignored: tasks are routed by name. */
  group?: string
  /** Told about failing handlers, broken messages and connections; default `console.error`. */
  onError?: TransportErrorHandler
  clock?: Clock
  timers?: Timers
}

export interface BullMQSettings extends JobSettings {
  source: ConnectionSource
  pingIntervalMs: number
  stepTimeoutMs?: number
  lockDuration?: number
  stalledInterval?: number
}

const RUN_CONCURRENCY = 10
const PING_INTERVAL_MS = 30_000
const CLOSE_TIMEOUT_MS = 5000
const MAX_STALLED_COUNT = 3

const what = (option: keyof BullMQTransportConfig): string => `transports.bullmq: ${option}`

/** Throws `InvalidArgumentError`, naming the option. */
export function readSettings(config: BullMQTransportConfig): BullMQSettings {
  const { partition, namespace, prefix = DEFAULT_PREFIX } = config
  const instanceId = config.instanceId ?? buildInstanceId()
  for (const [option, name] of Object.entries({ prefix, namespace, partition })) {
    checkName(what(option as 'prefix'), name)
  }
  if (prefix === '') throw new InvalidArgumentError(what('prefix'), 'must not be empty')
  if (typeof instanceId !== 'string' || instanceId === '') {
    throw new InvalidArgumentError(what('instanceId'), 'must be a text that is not empty')
  }
  return {
    source: readConnection(config.connection),
    partition,
    namespace: namespace === '' ? undefined : namespace,
    prefix,
    instanceId,
    concurrency: config.concurrency,
    resultConcurrency: readResultConcurrency(config.resultConcurrency, what('resultConcurrency')),
    runConcurrency: readResultConcurrency(
      config.runConcurrency ?? RUN_CONCURRENCY,
      what('runConcurrency')
    ),
    pingIntervalMs:
      config.pingIntervalMs === false ? 0 : (ms(config, 'pingIntervalMs', 0) ?? PING_INTERVAL_MS),
    stepTimeoutMs: ms(config, 'stepTimeoutMs', 1),
    closeTimeoutMs: ms(config, 'closeTimeoutMs', 0) ?? CLOSE_TIMEOUT_MS,
    lockDuration: ms(config, 'lockDuration', 1),
    stalledInterval: ms(config, 'stalledInterval', 1),
    maxStalledCount: ms(config, 'maxStalledCount', 0) ?? MAX_STALLED_COUNT,
    onError: config.onError ?? reportToConsole,
    clock: config.clock ?? systemClock,
    timers: config.timers ?? systemTimers,
  }
}

/** Names of queues: BullMQ takes no ':' in them. */
export function checkName(argument: string, name: unknown): void {
  if (name === undefined) return
  if (typeof name === 'string' && !name.includes(':')) return
  throw new InvalidArgumentError(argument, "must be a text without ':' (it is part of queue names)")
}

function ms(
  config: BullMQTransportConfig,
  option:
    | 'pingIntervalMs'
    | 'stepTimeoutMs'
    | 'closeTimeoutMs'
    | 'lockDuration'
    | 'stalledInterval'
    | 'maxStalledCount',
  least: number
): number | undefined {
  const value: unknown = config[option]
  if (value === undefined) return undefined
  if (Number.isSafeInteger(value) && Number(value) >= least) return Number(value)
  throw new InvalidArgumentError(what(option), `must be a whole number of at least ${least}`)
}
