/*
 * The options of the `db` transport and their defaults.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { Clock, Timers } from '../../foundation/clock.ts'
import type { Concurrency } from '../concurrency_options.ts'
import type { TransportErrorHandler } from '../ports.ts'
import type { Tuning } from './shared.ts'

export interface DbTransportConfig {
  /** Lucid connection; default the primary one. */
  connection?: string
  /** Pool of the handlers served here. */
  partition?: string
  /** Of every row; wins over `useNamespace`. */
  namespace?: string
  /** How often each loop looks for work, in ms; default 200. */
  pollIntervalMs?: number
  /** Idle loops for tasks and heartbeats look up to so many times less often; default 4, `1`: never. */
  idleBackoffMax?: number
  /** How long a claim holds without renewal, in ms; default 30000. */
  leaseMs?: number
  /** Heartbeats and messages taken at once; default 20. */
  batchSize?: number
  /** Tasks run at once by this process; default 1. */
  concurrency?: Concurrency
  /** Results handled at once by this process; default 1. */
  resultConcurrency?: number
  /** How often a task may outlive its worker before it fails (retryably); default 3. */
  maxStalledCount?: number
  /** How long `close` waits for what runs, in ms; default 5000. */
  closeTimeoutMs?: number
  /** Creates missing tables at the first use; default true. */
  autoCreate?: boolean
  /** Of this process; default random. At most 200 bytes. */
  instanceId?: string
  /** How long a message waits for a recipient that is gone, in ms; default 300000. */
  inboxTtlMs?: number
  /** How long the subscribers of a tenant are remembered, in ms; default 5000. */
  tenantSubscribersCacheMs?: number
  /** How often messages to the gone are deleted, in ms; default 60000. */
  inboxSweepIntervalMs?: number
  /** Told about failing handlers, lost claims and what else nobody awaits; default `console.error`. */
  onError?: TransportErrorHandler
  /** Told about repairs of the tables; default the console. */
  logger?: { warn(message: string): void }
  clock?: Clock
  timers?: Timers
}

const DEFAULTS: Tuning & { closeTimeoutMs: number } = {
  pollIntervalMs: 200,
  idleBackoffMax: 4,
  leaseMs: 30_000,
  batchSize: 20,
  resultConcurrency: 1,
  maxStalledCount: 3,
  inboxTtlMs: 300_000,
  tenantSubscribersCacheMs: 5_000,
  inboxSweepIntervalMs: 60_000,
  closeTimeoutMs: 5_000,
}

const MAX_INSTANCE_ID_BYTES = 200
const MAY_BE_ZERO = new Set(['maxStalledCount', 'tenantSubscribersCacheMs', 'closeTimeoutMs'])
const WHOLE = new Set(['batchSize', 'resultConcurrency', 'maxStalledCount'])

/** Throws `InvalidArgumentError` naming the option. */
export function readTuning(options: DbTransportConfig): {
  tuning: Tuning
  closeTimeoutMs: number
} {
  const read = { ...DEFAULTS }
  for (const name of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) {
    const value: unknown = options[name]
    if (value === undefined) continue
    const least = MAY_BE_ZERO.has(name) ? 0 : 1
    if (typeof value !== 'number' || !Number.isFinite(value) || value < least) {
      throw new InvalidArgumentError(
        `transports.db: ${name}`,
        `must be a number from ${least}, not ${JSON.stringify(value)}`
      )
    }
    if (WHOLE.has(name) && !Number.isInteger(value)) {
      throw new InvalidArgumentError(`transports.db: ${name}`, 'must be a whole number')
    }
    // Bigint columns take no fractions.
    read[name] = name === 'idleBackoffMax' ? value : Math.ceil(value)
  }
  checkNames(options)
  const { closeTimeoutMs, ...tuning } = read
  return { tuning, closeTimeoutMs }
}

function checkNames({ namespace, partition, instanceId }: DbTransportConfig): void {
  for (const [name, value] of Object.entries({ namespace, partition, instanceId })) {
    if (value === undefined || typeof value === 'string') continue
    throw new InvalidArgumentError(`transports.db: ${name}`, 'must be a text')
  }
  if (instanceId === '' || Buffer.byteLength(instanceId ?? '') > MAX_INSTANCE_ID_BYTES) {
    const size = `must have 1 to ${MAX_INSTANCE_ID_BYTES} bytes`
    throw new InvalidArgumentError('transports.db: instanceId', size)
  }
}
