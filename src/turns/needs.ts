/*
 * What a turn needs from outside, as narrow interfaces. The engine's composition root passes the
 * implementations; a test passes literals. Nothing here is a class of the engine.
 */
import type { Clock, Timers } from '../foundation/clock.ts'
import type { StandardSchemaV1 } from '../foundation/standard_schema.ts'
import type { Admission } from '../flow/port.ts'
import type { QueuedCall } from '../flow/step_queues.ts'
import type { FullStore } from '../store/full_store.ts'
import type { EngineEvent, StepInvocation } from '../types/engine_event.ts'
import type { WorkflowFn } from '../types/ctx.ts'
import type { SingletonVerdict } from '../store/ports/singleton_claims.ts'
import type { RunStatus, WorkflowRun } from '../types/run.ts'
import type { SingletonConfig } from '../types/workflow.ts'
import type { Effect } from './effects.ts'
import type { RemoteTask, StepResult } from '../wire/messages.ts'

/** A volatile transport's task that is silent for this many lease lengths is taken for lost. */
export const SILENT_LEASES = 2

/** A registered workflow body. */
export interface RunnableWorkflow {
  name: string
  version: string
  fn: WorkflowFn
  inputSchema?: StandardSchemaV1
  /** Judges every merged `ctx.upsertSearchAttributes`. */
  searchAttributesSchema?: StandardSchemaV1
  singleton?: SingletonConfig
  /** Why this process cannot execute a run with this input; undefined when it can. */
  refuses?(input: unknown): Error | undefined
  /** Wall-clock budget of a run in ms. */
  executionTimeoutMs?: number
}

export interface WorkflowLookup {
  find(name: string, version: string): RunnableWorkflow | undefined
  /** The newest registered version; a continuation runs it. */
  newest(name: string): RunnableWorkflow | undefined
}

/** Who may go on with a run of a singleton workflow. */
export interface SingletonGate {
  /** Admits a claimed run, or has it parked in the store; undefined for a run without a key. */
  admit(
    run: WorkflowRun,
    config: SingletonConfig | undefined
  ): Promise<SingletonVerdict | undefined>
}

/** What a parent's turn needs to have child runs. */
export interface ChildRuns {
  /** Every check of a start, no write. The row of a new child of `parent`. Rejects with why it cannot be started. */
  prepare(child: ChildOrder, parent: WorkflowRun): Promise<WorkflowRun>
  /** Brings a failed or dead child back, as an operator would; answers how it stands. */
  retry(childId: string): Promise<RunStatus | undefined>
}

export interface ChildOrder {
  childId: string
  workflow: string
  input: unknown
  priority?: number
}

/** An operation on its way to an entity. */
export interface EntityOp {
  name: string
  key: string
  op: string
  arg: unknown
  /** Token that the answer is sent to; nobody waits without one. */
  replyTo?: string
  /** Makes sending it again harmless. */
  opId: string
  /** Pool of an entity that does not exist yet. */
  namespace?: string
}

export interface EntitySender {
  /** Durable when it resolves. */
  send(op: EntityOp): Promise<void>
}

/** Tells listeners; never throws, never waits (invariant 13). */
export interface Emitter {
  emit(event: Omit<EngineEvent, 'at'>): void
}

/** Where dispatched steps go. */
export interface StepSender {
  /** Hands a task over; rejects when no transport took it. */
  send(task: RemoteTask, transportId?: string): Promise<void>
  /** The transport that takes this task loses it with the process. */
  isVolatile(transportId?: string): boolean
  /** The step's handler runs, or waits to run, in this process. */
  isRunning(stepId: string): boolean
  /** Awaits the result of a step in memory; answers how to stop waiting. */
  onceSettled(stepId: string, listener: (result: StepResult) => void): () => void
  /** Calls back for every sign of life that a step's handler gives; answers how to stop. */
  onBeat(stepId: string, listener: () => void): () => void
}

/** Flow-control queues that a dispatched step may have to pass. */
export interface QueueGate {
  /** Steps that name this queue have to ask. */
  gates(queue: string): boolean
  /** Asks for a slot; never rejects. A holder is admitted again. */
  enter(call: QueuedCall): Promise<Admission>
  /** Gives the slot back, or leaves the line; not where a later attempt than this one has it. */
  leave(stepId: string, attempt?: number): void
}

/** What travels with a dispatched task, and how it is restored around local work. */
export interface Carriers {
  traceparent(): string | undefined
  context(): Record<string, unknown> | undefined
  rehydrate<T>(carrier: Record<string, unknown> | undefined, fn: () => T): T
}

export interface Interceptors {
  around(invocation: StepInvocation, body: () => Promise<unknown>): Promise<unknown>
}

export interface TurnSettings {
  /** Lease owner of this process. */
  instanceId: string
  leaseMs: number
  /** 0 turns the fallback wake off. */
  reconcileMs: number
  remoteRedispatchMs?: number
  remoteRedispatchMax: number
  maxPayloadBytes: number
  /** Builds the public address of a webhook. */
  webhookUrl?: (token: string) => string
  /** Age in ms after which a buffered event is never delivered. */
  eventBufferTtl?: number
  trackStepStart: boolean
  compensationRetries: number
  compensationTimeoutMs: number
  /** Suspended bodies kept live, and how long; false keeps none. */
  continuations: { max: number; idleMs: number } | false
  /** Suspended histories kept, in bytes, and how long. */
  warmHistory: { maxBytes: number; idleMs: number }
}

export interface TurnNeeds {
  store: FullStore
  clock: Clock
  timers: Timers
  random: () => number
  settings: TurnSettings
  lookup: WorkflowLookup
  emitter: Emitter
  sender: StepSender
  carriers: Carriers
  interceptors: Interceptors
  entities: EntitySender
  children: ChildRuns
  singletons: SingletonGate
  queues: QueueGate
  /** Performs what follows from a commit, detached and tracked. */
  effect(effect: Effect): void
  /** Told of errors that break nothing but should be seen. */
  report(error: unknown, what: string): void
}
