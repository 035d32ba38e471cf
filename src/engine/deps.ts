/*
 * What an engine is built from, and the settings that follow: defaults and checks in one place.
 */
import { workflowName } from '../authoring/workflow_ref.ts'
import { InvalidArgumentError } from '../errors.ts'
import type { ControlPlane } from '../control_plane/port.ts'
import type { AdmissionBackend } from '../flow/port.ts'
import { backendProblem } from '../flow/queue_config.ts'
import { type Clock, type Timers, systemClock, systemTimers } from '../foundation/clock.ts'
import { isDurationMs, parseDuration } from '../foundation/duration.ts'
import { messageOf } from '../foundation/failure.ts'
import { randomId } from '../foundation/ids.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../foundation/json.ts'
import { keyProblem } from '../foundation/keys.ts'
import type { StateStore } from '../store/state_store.ts'
import type { PoolMember } from '../transport/pool.ts'
import type { Transport } from '../transport/ports.ts'
import type { TurnSettings } from '../turns/needs.ts'
import type { RetentionConfig } from '../types/housekeeping.ts'
import type { WorkflowRef } from '../types/workflow.ts'
import { type RetentionRule, retentionRules } from './upkeep/retention_rules.ts'

export { retentionRules }

/** Hands a started, requeued or recovered run to whatever executes it. */
export interface RunDispatcher {
  dispatch(runId: string): unknown
  /** Another instance enqueued a run, and nobody has taken it yet (ours); told seldom, of one for many. */
  enqueued?(runId: string): unknown
}

/** Where the engine says what nobody awaits. */
export interface EngineLogger {
  warn(message: string): void
  error(message: string, error?: unknown): void
}

/** Constructor dependencies; everything but `store` is optional. Durations in ms unless said otherwise. */
export interface WorkflowEngineDeps {
  store: StateStore
  /** Where dispatched steps go; without one `ctx.step` fails. */
  transport?: Transport
  /** Several, in order of failover; instead of `transport`. */
  transports?: PoolMember[]
  /** Who decides on the slots of flow-control queues; default this process, for itself alone. */
  admission?: AdmissionBackend
  /** Tells other instances what happens here, and this one what happens there; default nobody. */
  controlPlane?: ControlPlane
  /** Epoch ms; everything the engine decides by time reads it. */
  clock?: Clock
  /** Timers behind every wait of the engine (ours). */
  timers?: Timers
  /** Unique per process; run leases are held by it. Default random. */
  instanceId?: string
  /** Worker pool; absent drives every namespace. */
  namespace?: string
  /**
   * Reads of runs see `namespace` alone: every other run is unknown to this engine. Writes, waits, signals
   * and the claims of singleton slots are not fenced. Needs a namespace; default false.
   */
  scopeReads?: boolean
  /** Lease of an executing run; default 30 000. */
  leaseMs?: number
  /** Crash pickups before a run is `dead`; default unlimited. */
  maxRecoveryAttempts?: number
  /** Handles the dead runs of workflows that name no handler of their own; default none. */
  deadLetterWorkflow?: WorkflowRef
  /** Fallback wake of a run that waits for news; default 300 000, 0 turns it off. */
  reconcileMs?: number
  /** Opt-in: send a dispatched step again that is pending this long. */
  remoteRedispatchMs?: number
  /** Dispatches of one step before it fails as lost; default 10. */
  remoteRedispatchMax?: number
  /** Most due runs one timer pass takes; default 500. */
  timerBatchSize?: number
  /** Read per task: W3C trace context. */
  traceparent?: () => string | undefined
  /** Read per task: what travels with it. */
  context?: () => Record<string, unknown> | undefined
  /** Restores a carrier around local work. */
  rehydrate?: <T>(carrier: Record<string, unknown> | undefined, fn: () => T) => T
  /** Attempts per saga undo, unless the undo's own `retries` allow more; default 1. */
  compensationRetries?: number
  /** Longest wait for a dispatched undo without its own `timeoutMs`; default 300 000. */
  compensationTimeoutMs?: number
  /** Record that a local step began, unless it ends within 25 ms; default true. */
  trackStepStart?: boolean
  /** Instead of executing started runs on this instance, and instead of the transport's run queue. */
  runDispatcher?: RunDispatcher
  /**
   * False: nothing is taken from the transport's run queue until `consumeRuns` is called (ours); default
   * true. Without a run queue it has no effect.
   */
  drive?: boolean
  /** Suspended bodies kept live (ours): default false. */
  continuations?: { max?: number; idleMs?: number | string } | false
  /** Turns that execute at once (ours); default 100. */
  turnSlots?: number
  /** Age of a buffered event ('7d' or ms) after which it is never delivered; default: kept until taken. */
  eventBufferTtl?: number | string
  /** How long runs that are over are kept; default: for ever. */
  retention?: RetentionConfig
  /** Silence ('15m' or ms) after which listeners of `onStalled` are told; default 15 minutes. */
  stalledAfter?: number | string
  /** A tick fires persisted schedules too; default false. */
  persistedSchedules?: boolean
  /** Builds `DurableWebhook.url` from a token; without it a webhook has none. */
  webhookUrl?: (token: string) => string
  /** Largest payload in bytes of JSON (ours); default 8 MiB. */
  maxPayloadBytes?: number
  logger?: EngineLogger
}

/** Dependencies with every default filled in. */
export interface EngineConfig {
  store: StateStore
  members: PoolMember[]
  admission?: AdmissionBackend
  controlPlane?: ControlPlane
  clock: Clock
  timers: Timers
  namespace?: string
  scopeReads: boolean
  maxRecoveryAttempts: number
  deadLetterWorkflow?: string
  timerBatchSize: number
  turnSlots: number
  persistedSchedules: boolean
  retention: readonly RetentionRule[]
  stalledAfterMs: number
  runDispatcher?: RunDispatcher
  drive: boolean
  carriers: {
    traceparent: () => string | undefined
    context: () => Record<string, unknown> | undefined
    rehydrate: <T>(carrier: Record<string, unknown> | undefined, fn: () => T) => T
  }
  logger: EngineLogger
  /** Says what must be seen although no logger was given. */
  announce: (message: string) => void
  turns: TurnSettings
}

const MINUTE = 60_000
const WARM_HISTORY = { maxBytes: 64 * 1024 * 1024, idleMs: 5 * MINUTE }
const CONTINUATIONS = { max: 10_000, idleMs: 5 * MINUTE }

/** Throws `InvalidArgumentError` naming the dependency that cannot be used. */
export function resolveDeps(deps: WorkflowEngineDeps): EngineConfig {
  if (!deps?.store) throw new InvalidArgumentError('WorkflowEngine: store', 'is required')
  if (deps.transport && deps.transports) {
    throw new InvalidArgumentError('WorkflowEngine: transport', 'and transports exclude each other')
  }
  const namespace = deps.namespace === '' ? undefined : deps.namespace
  checkName('namespace', namespace)
  checkName('instanceId', deps.instanceId)
  if (deps.scopeReads && namespace === undefined) {
    throw new InvalidArgumentError(
      'WorkflowEngine: scopeReads',
      'needs a namespace: without one there is nothing to keep to'
    )
  }
  const problem = deps.admission === undefined ? undefined : backendProblem(deps.admission)
  if (problem) throw new InvalidArgumentError('WorkflowEngine: admission', problem)
  const { controlPlane } = deps
  const wrongPlane = controlPlaneProblem(controlPlane)
  if (wrongPlane) throw new InvalidArgumentError('WorkflowEngine: controlPlane', wrongPlane)
  return {
    store: deps.store,
    members:
      deps.transports ?? (deps.transport ? [{ id: 'default', transport: deps.transport }] : []),
    admission: deps.admission,
    controlPlane,
    clock: deps.clock ?? systemClock,
    timers: deps.timers ?? systemTimers,
    namespace,
    scopeReads: deps.scopeReads === true,
    maxRecoveryAttempts: count('maxRecoveryAttempts', deps.maxRecoveryAttempts, Infinity),
    deadLetterWorkflow: nameOf('deadLetterWorkflow', deps.deadLetterWorkflow),
    timerBatchSize: count('timerBatchSize', deps.timerBatchSize, 500),
    turnSlots: Math.max(1, count('turnSlots', deps.turnSlots, 100)),
    persistedSchedules: deps.persistedSchedules ?? false,
    retention: retentionRules(deps.retention, 'WorkflowEngine: retention'),
    stalledAfterMs: durationOf('stalledAfter', deps.stalledAfter, 15 * MINUTE),
    runDispatcher: deps.runDispatcher,
    drive: deps.drive !== false,
    carriers: {
      traceparent: deps.traceparent ?? (() => undefined),
      context: deps.context ?? (() => undefined),
      rehydrate: deps.rehydrate ?? ((_carrier, fn) => fn()),
    },
    logger: deps.logger ?? SILENT,
    announce: (message) => (deps.logger ?? console).warn(message),
    turns: turnSettings(deps),
  }
}

/** Why this is no control plane; absent is fine. */
export function controlPlaneProblem(given: unknown): string | undefined {
  if (given === undefined) return undefined
  const what = 'must be a control plane'
  if (typeof given !== 'object' || given === null) return what
  const members = ['publishControl', 'onControl'] as const
  const missing = members.find((name) => typeof Reflect.get(given, name) !== 'function')
  return missing === undefined ? undefined : `${what}; this one lacks ${missing}`
}

function turnSettings(deps: WorkflowEngineDeps): TurnSettings {
  const { remoteRedispatchMs, reconcileMs = 5 * MINUTE } = deps
  return {
    instanceId: deps.instanceId ?? randomId(),
    leaseMs: leaseOf(deps.leaseMs),
    reconcileMs: Number.isFinite(reconcileMs) && reconcileMs >= 0 ? reconcileMs : 5 * MINUTE,
    remoteRedispatchMs:
      remoteRedispatchMs === undefined
        ? undefined
        : count('remoteRedispatchMs', remoteRedispatchMs, 0, 1),
    remoteRedispatchMax: count('remoteRedispatchMax', deps.remoteRedispatchMax, 10, 1),
    maxPayloadBytes: count('maxPayloadBytes', deps.maxPayloadBytes, DEFAULT_MAX_PAYLOAD_BYTES, 1),
    trackStepStart: deps.trackStepStart ?? true,
    webhookUrl: functionOf('webhookUrl', deps.webhookUrl),
    eventBufferTtl:
      deps.eventBufferTtl === undefined
        ? undefined
        : durationOf('eventBufferTtl', deps.eventBufferTtl, 0),
    compensationRetries: count('compensationRetries', deps.compensationRetries, 1, 1),
    compensationTimeoutMs: count('compensationTimeoutMs', deps.compensationTimeoutMs, 5 * MINUTE),
    continuations: continuationSettings(deps.continuations),
    warmHistory: WARM_HISTORY,
  }
}

function continuationSettings(
  given: WorkflowEngineDeps['continuations']
): TurnSettings['continuations'] {
  if (!given) return false
  return {
    max: count('continuations.max', given.max, CONTINUATIONS.max),
    idleMs: given.idleMs === undefined ? CONTINUATIONS.idleMs : parseDuration(given.idleMs),
  }
}

function count(key: string, value: number | undefined, fallback: number, least = 0): number {
  if (value === undefined) return fallback
  if (typeof value === 'number' && value >= least) return value
  throw new InvalidArgumentError(
    `WorkflowEngine: ${key}`,
    `must be a number of at least ${least}, got ${String(value)}`
  )
}

/** Whole, as the columns are that it is compared with. */
function leaseOf(value: number | undefined): number {
  const ms = count('leaseMs', value, 30_000, 1)
  if (isDurationMs(ms)) return Math.ceil(ms)
  throw new InvalidArgumentError('WorkflowEngine: leaseMs', `must be finite, got ${ms}`)
}

function durationOf(key: string, value: number | string | undefined, fallback: number): number {
  if (value === undefined) return fallback
  try {
    return Math.ceil(parseDuration(value))
  } catch (error) {
    throw new InvalidArgumentError(`WorkflowEngine: ${key}`, `cannot be used: ${messageOf(error)}`)
  }
}

function functionOf<F>(key: string, value: F | undefined): F | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw new InvalidArgumentError(`WorkflowEngine: ${key}`, 'must be a function')
}

function nameOf(key: string, ref: WorkflowRef | undefined): string | undefined {
  if (ref === undefined) return undefined
  const name = workflowName(ref)
  checkName(key, name)
  return name
}

function checkName(key: string, value: string | undefined): void {
  const problem = value === undefined ? undefined : keyProblem(value)
  if (problem) throw new InvalidArgumentError(`WorkflowEngine: ${key}`, problem)
}

const SILENT: EngineLogger = { warn: () => {}, error: () => {} }
