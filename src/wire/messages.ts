/*
 * Every message that crosses a process boundary (protocol major 1): plain JSON without an envelope.
 * Members are declared in the order in which they are emitted; absent optionals are left out, never
 * null; times are epoch ms, except inside an `EngineEvent` or a `WorkflowRun`, where they are ISO text.
 * A higher `priority` is more urgent. `group` is always the final routing token (names.ts).
 */
import type { StepError } from '../foundation/failure.ts'
import type { EngineEvent } from '../types/engine_event.ts'
import type { RunFacetQuery, RunQuery, RunValueAxis, RunValueFacetOptions } from '../types/query.ts'
import type { SearchAttributes } from '../types/run.ts'
import type { StepEvent } from '../types/step.ts'
import type { ConcurrencyQuota } from '../types/workflow.ts'

/** One dispatched step. Engine → worker. */
export interface RemoteTask {
  runId: string
  seq: number
  /** The registered handler name, unsanitised. */
  name: string
  /** `<runId>:<seq>`; the dedupe key. */
  stepId: string
  group: string
  input: unknown
  /** W3C trace context of the dispatching run. */
  traceparent?: string
  /** Opaque carrier of ambient context. */
  context?: Record<string, unknown>
  /** The pool member it was sent on, and where its answer goes. */
  transport?: string
  priority?: number
  /** 1-based; 0 is tolerated. */
  attempt: number
}

/** Outcome of one dispatched step. Worker → engine. */
export interface StepResult {
  runId: string
  seq: number
  stepId: string
  status: 'completed' | 'failed'
  output?: unknown
  error?: StepError
  /** When a worker picked the task up. */
  startedAt?: number
  events?: StepEvent[]
  /** That of the task; absent from workers that do not tell. */
  attempt?: number
}

/** Sign of life. Without `stepId` it belongs to the run's turn (`seq` is 0) and never to a step. */
export interface Heartbeat {
  runId: string
  seq: number
  stepId?: string
  group: string
  at?: number
  progress?: unknown
}

export type HistoryEventKind = 'step' | 'call' | 'timer' | 'signal' | 'child'

/** One resolved operation of a run, as a remote turn reads it. */
export interface HistoryEvent {
  seq: number
  kind: HistoryEventKind
  /** Absent on signal and child events. */
  name?: string
  output?: unknown
  error?: StepError
}

/** A payload that was delivered and that no turn has consumed yet. */
export interface PendingSignal {
  seq: number
  signal: string
  payload: unknown
}

/** One turn of a remote workflow. Engine → workflow worker, on the queue of the token's steps. */
export interface WorkflowTask {
  /** Opaque id of the turn; echoed by its decision. */
  taskId: string
  runId: string
  workflow: string
  workflowVersion: string
  input: unknown
  /** Ordered by seq. */
  history: HistoryEvent[]
  pendingSignals?: PendingSignal[]
  group: string
  transport?: string
  traceparent?: string
  priority?: number
  attempt: number
}

/** What a remote turn asks for. `parallelGroup` is `gather:<firstSeq>`. */
export type WorkflowCommand =
  | {
      kind: 'call'
      seq: number
      name: string
      /** Only a hint: the run decides the pool. */
      group: string
      input: unknown
      parallelGroup?: string
    }
  | {
      kind: 'recordStep'
      seq: number
      name: string
      output?: unknown
      error?: StepError
      startedAt?: number
      finishedAt?: number
      events?: StepEvent[]
    }
  | { kind: 'sleep'; seq: number; ms: number }
  | { kind: 'waitSignal'; seq: number; signal: string }
  | { kind: 'startChild'; seq: number; workflow: string; input: unknown; parallelGroup?: string }

/** Outcome of one remote turn. Its commands are applied whatever the status. Worker → engine. */
export interface WorkflowDecision {
  taskId: string
  runId: string
  status: 'continue' | 'completed' | 'failed' | 'cancelled'
  commands: WorkflowCommand[]
  output?: unknown
  error?: StepError
}

/** Live view of a step inside a remote turn; observability only. Worker → engine. */
export interface WorkflowStepEvent {
  runId: string
  seq: number
  name: string
  phase: 'running' | 'completed' | 'failed'
  startedAt: number
  finishedAt?: number
  output?: unknown
  error?: StepError
  events?: StepEvent[]
}

/** A start asked for by a pod without a store. */
export interface StartRunMessage {
  /** Signed token, or the raw partition. */
  tenant: string
  workflow: string
  input: unknown
  runId?: string
  tags?: string[]
  searchAttributes?: SearchAttributes
  version?: string
  priority?: number
  startAt?: number
  concurrency?: ConcurrencyQuota
}

/** The query of a proxied listing; `limit` is what peers sent before there were pages. */
export type WireRunQuery = RunQuery & { limit?: number }

/** What a pod without a store may ask for. */
export type RunRequestBody =
  | { kind: 'getRun' | 'getCheckpoints' | 'getRunChildren' | 'getSearchAttributes'; runId: string }
  | { kind: 'redispatch' | 'retry' | 'continue'; runId: string }
  | { kind: 'listRuns'; query: WireRunQuery }
  | { kind: 'workerHealth' }
  | { kind: 'signal'; runId: string; signal: string; payload?: unknown }
  | { kind: 'cancel'; runId: string; opts?: { compensate?: boolean } }
  | {
      kind: 'getRunDetail'
      runId: string
      options?: { summarizeFansOver?: number; ifNoneMatch?: string }
    }
  | {
      kind: 'getFanMembers'
      runId: string
      group: string
      query: { offset?: number; limit?: number; failedOnly?: boolean; ifNoneMatch?: string }
    }
  | { kind: 'retryWithInput'; runId: string; input: unknown }
  | { kind: 'runFacets'; query: RunFacetQuery }
  | {
      kind: 'runValueFacets'
      axis: RunValueAxis
      query: RunFacetQuery
      opts?: RunValueFacetOptions
    }
  | { kind: 'waitingFor'; runIds: string[] }

/** A read or a verb asked for by a pod without a store. */
export interface RunRequest {
  requestId: string
  tenant: string
  body: RunRequestBody
}

export type RunReplyResult =
  { ok: true; data?: unknown } | { ok: false; error: { message: string; code?: string } }

/** The one answer to a `RunRequest`, or to a `StartRunMessage` (then `requestId` is its run id). */
export interface RunReply {
  requestId: string
  result: RunReplyResult
}

/** A lifecycle event for the subscribers of one tenant; `tenant` is the resolved namespace. */
export interface TenantEvent {
  tenant: string
  event: EngineEvent
}

/** Broadcast between engines. `from` is the publisher's instance id; unknown kinds are ignored. */
export type ControlMessage = { from?: string } & (
  | { kind: 'event'; event: EngineEvent }
  | { kind: 'cancel'; runId: string }
  /** `taken`: it executes where it was enqueued. */
  | { kind: 'enqueued'; runId: string; taken?: boolean }
  /** `at`: when it was said; a repetition keeps it, so that it loses against what was said since. */
  | { kind: 'schedulePaused'; key: string; paused: boolean; at?: number }
)

/** A hint that a run can move; the store is the truth. Engine ↔ engine. */
export interface RunDispatch {
  runId: string
  /** The run's. */
  namespace?: string
  reason: 'start' | 'resume'
  priority?: number
  /** When it was enqueued. */
  at: number
}

/** What a worker announces about one handler it serves. */
export interface WorkerRegistration {
  name: string
  version?: string
  group?: string
  requires?: string[]
  origin?: string
}

/** What a worker announces about itself. */
export interface WorkerDescriptor {
  instanceId: string
  runtime: 'node' | 'python'
  /** Observability only. */
  sdk: { name: string; version: string }
  /** Absent on a legacy worker. */
  protocol?: { version: number; range: [min: number, max: number] }
  /** A set. Absent on a legacy worker; an empty one means none. */
  capabilities?: string[]
  workflows: string[]
  steps: string[]
  registrations?: WorkerRegistration[]
  partition?: string
  namespace?: string
  startedAt: number
}

/** Compact value of a worker's heartbeat key; the hash tells when to fetch the descriptor again. */
export interface HeartbeatStatus {
  ts: number
  status: 'up' | 'draining' | 'quiescing' | 'stopped'
  descriptorHash: string
}

/** Load of one worker. */
export interface WorkerStatus {
  runtime?: string
  concurrency: { mode: 'fixed' | 'adaptive'; limit: number; min?: number; max?: number }
  inFlight: number
  rssBytes?: number
  rssLimitBytes?: number
  rssPct?: number
  cpuPct?: number
  throughputPerMin?: number
  p95Ms?: number
  lastAdjust?: {
    at: number
    from: number
    to: number
    reason: 'grow' | 'shrink' | 'ram_ceiling' | 'cpu_ceiling' | 'backpressure'
  }
}

/** A worker seen alive on one token. `lastBeatAt` is 0 when its beat could not be read. */
export interface WorkerHeartbeat {
  group: string
  instanceId: string
  lastBeatAt: number
  status?: WorkerStatus
}

/** Backlog and live workers of one token. */
export interface GroupHealth {
  group: string
  depth: number
  liveWorkers: WorkerHeartbeat[]
  kind?: 'workflow' | 'step'
}
