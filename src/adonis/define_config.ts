/*
 * The shape of config/durable.ts. `defineConfig` is an identity helper: nothing is imported, opened or
 * checked here; `config_checks.ts` does that at boot.
 */
import type { RunDispatcher, WorkflowEngineDeps } from '../engine/deps.ts'
import type { ControlPlane } from '../control_plane/port.ts'
import type { AdmissionBackend, QueueConfig } from '../flow/port.ts'
import type { StateStore } from '../store/state_store.ts'
import type { Transport } from '../transport/ports.ts'
import type { RetentionConfig } from '../types/housekeeping.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'
import type { WorkflowRef } from '../types/workflow.ts'
import type { AdmissionFactory } from './admissions.ts'
import type { ControlPlaneFactory } from './control_planes.ts'
import type { StoreFactory } from './stores.ts'
import type { TransportFactory } from './transports.ts'

/** Where the worker loop runs inside the web process. Durations in ms. */
export interface EmbeddedWorkerConfig {
  /** Run the loop in this process once it serves requests; default false. */
  embedded?: boolean
  /** Pause between two ticks; default 1000. */
  intervalMs?: number
  /** Shutdown budget; wins over `drainTimeoutMs`. */
  drainTimeoutMs?: number
}

/** When consumption of a transport starts: `auto` defers it in console and REPL processes. */
export type ConsumersMode = 'auto' | 'always' | 'never'

/** One process, or several alike: each with the store, each able to execute runs. Durations in ms. */
export interface StandaloneConfig {
  role?: 'standalone'

  /** Key of `transports` over which steps are dispatched; default in-process. */
  transport?: string
  transports?: Record<string, TransportFactory | Transport>
  /** Further keys of `transports`, in order of failover; `ctx.step` pins one by its key (ours). */
  transportPool?: string[]

  /** Key of `stores` where runs are kept; default in memory. */
  store?: string
  stores?: Record<string, StoreFactory | StateStore>
  /** Provision the store's schema at boot; default true. `false` leaves it to migrations. */
  autoSchema?: boolean

  /** W3C trace context stamped on dispatched steps; wins over an installed integration. */
  traceparent?: () => string | undefined
  /** Record that a local step began, unless it ends within 25 ms; default true. */
  trackStepStart?: boolean

  /** Lease of an executing run; default 30 000. */
  leaseMs?: number
  /** Prefix of the lease owner of this process; default random. */
  instanceId?: string
  /** Worker pool; default `default`. */
  namespace?: string
  /** Reads of runs see this namespace alone; writes and signals are not fenced. Default false. */
  scopeReads?: boolean
  /** Crash pickups before a run is `dead`; default unlimited. */
  maxRecoveryAttempts?: number
  /** Handles the dead runs of workflows that name no handler of their own; default none. */
  deadLetterWorkflow?: WorkflowRef

  /** Attempts per saga undo; default 1. */
  compensationRetries?: number
  /** Longest wait for a dispatched undo without its own `timeoutMs`; default 300 000. */
  compensationTimeoutMs?: number

  /** Where started runs execute; wins over `drive`. */
  runDispatcher?: RunDispatcher
  /** `false`: runs started here stay pending for `node ace durable:work`; default true. */
  drive?: boolean
  /** Longest wait for turns in flight at shutdown; default 10 000. */
  drainTimeoutMs?: number
  consumers?: ConsumersMode
  worker?: EmbeddedWorkerConfig

  /** Send a dispatched step again that is pending this long; default off. Steps must be idempotent. */
  remoteRedispatchMs?: number
  /** Dispatches of one step before it fails as lost; default 10. */
  remoteRedispatchMax?: number
  /** Most due runs one timer pass takes; default 500. */
  timerBatchSize?: number
  /** Fallback wake of a run that waits for news; default 300 000, 0 turns it off. */
  reconcileMs?: number

  /** Flow-control queues that `ctx.step(…, { queue })` passes through; default none. */
  queues?: QueueConfig[]
  /** Who decides on their slots; default this process, for itself alone. */
  admission?: AdmissionBackend | AdmissionFactory

  /** Tells the processes of a fleet of each other's events, cancels and new runs; default none. */
  controlPlane?: ControlPlane | ControlPlaneFactory

  /** Recurring workflows, fired by workers; wins over a `static schedule` with the same key. */
  schedules?: ScheduledWorkflow[]
  /** Workers fire the schedules of `engine.schedules` too; default false. */
  persistedSchedules?: boolean

  /** Builds `DurableWebhook.url` from a token; default none. */
  webhookUrl?: (token: string) => string
  /** Age of a buffered event ('7d' or ms) after which it is never delivered; default: kept until taken. */
  eventBufferTtl?: string | number

  /** How long runs that are over are kept, by status and by scope; default: for ever. */
  retention?: RetentionConfig
  /** Silence ('15m' or ms) after which listeners of `engine.onStalled` are told; default '15m'. */
  stalledAfter?: string | number

  /** Directories of workflow classes, relative to the application; default `app/workflows`. */
  workflowsPath?: string | string[] | false
  /** Directories of steps; default `app/steps`. */
  stepsPath?: string | string[] | false

  /** Suspended bodies kept live (ours); default `{}`, which keeps up to 10 000 for 5 minutes. */
  continuations?: WorkflowEngineDeps['continuations']
  /** Largest payload in bytes of JSON (ours); default 8 MiB. */
  maxPayloadBytes?: number
}

/** What config/durable.ts exports. */
export type DurableConfig = StandaloneConfig

/** Types config/durable.ts and fills in the role. */
export function defineConfig(config: DurableConfig = {}): DurableConfig {
  return { ...config, role: config.role ?? 'standalone' }
}
