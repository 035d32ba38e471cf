/*
 * Steps: references, policies, handlers, the logger a handler receives.
 */
import type { BackoffStrategy } from '../foundation/backoff.ts'
import type { StandardSchemaV1 } from '../foundation/standard_schema.ts'

export type { BackoffStrategy } from '../foundation/backoff.ts'
export type { StepError } from '../foundation/failure.ts'

/** Carries a step's routing name on its function. Shared by all copies of the package. */
export const DURABLE_STEP_NAME: unique symbol = Symbol.for('@agora/durable:step-name') as never
/** Carries a step's declared policy on its function. */
export const DURABLE_STEP_CONFIG: unique symbol = Symbol.for('@agora/durable:step-config') as never
/** Carries a step's schemas on its function. */
export const DURABLE_STEP_META: unique symbol = Symbol.for('@agora/durable:step-meta') as never

/** Declared dispatch policy of a step. Durations in ms. */
export interface StepConfig {
  /** Attempts before the step fails; default 1. */
  retries?: number
  backoff?: BackoffStrategy
  backoffMs?: number
  backoffMaxMs?: number
  /** Scales each delay by a random 50–100 %. */
  jitter?: boolean
  /** Liveness window: no result or heartbeat within it fails the dispatch (`RemoteStepTimeout`). */
  timeoutMs?: number
  /** The window before the worker's first heartbeat; default `timeoutMs`. */
  pickupTimeoutMs?: number
  /** Capabilities a live worker must advertise. */
  requires?: string[]
}

/** What `@Step` and `defineStep` accept. */
export interface StepDecoratorOptions extends StepConfig {
  name?: string
  /** Validates the input where the handler is served; the handler gets the schema's output. */
  input?: StandardSchemaV1
  /** Validates the output where the handler is served; the caller gets the schema's output. */
  output?: StandardSchemaV1
}

export interface StepSchemas {
  input?: StandardSchemaV1
  output?: StandardSchemaV1
}

/** A typed handle onto a step's name and policy. `ctx.step` reads it and never calls it. */
export type StepRef<TInput = unknown, TOutput = unknown> = ((
  input: TInput,
  ...rest: never[]
) => Promise<TOutput> | TOutput) & {
  [DURABLE_STEP_NAME]?: string
  [DURABLE_STEP_CONFIG]?: StepConfig
  [DURABLE_STEP_META]?: StepSchemas
}

/** The argument of a dispatched saga undo: the undone call's own input and result. */
export interface StepUndo<TInput = unknown, TOutput = unknown> {
  input: TInput
  output: TOutput
}

/** Derives an undo's argument from the signature of the step it undoes. */
export type UndoOf<H> = H extends (input: infer I, ...rest: never[]) => infer R
  ? StepUndo<I, Awaited<R>>
  : StepUndo<unknown, unknown>

/** Per-call options of `ctx.step`; each field overrides the declared one. Durations in ms. */
export interface StepDispatchOpts extends StepConfig {
  /** Flow-control queue to pass through. */
  queue?: string
  /** Higher first, within the queue and on the broker. */
  priority?: number
  fairnessKey?: string
  /** Pins a named transport of the pool. */
  transport?: string
}

/** Options of `ctx.localStep` and `ctx.task`. Durations in ms. */
export interface StepOptions extends StepConfig {
  /** In-process saga undo, run when the run fails or is cancelled with `compensate`. */
  compensate?: () => Promise<void> | void
}

export type StepEventLevel = 'debug' | 'info' | 'warn' | 'error'
export type SubStepStatus = 'ok' | 'failed' | 'skipped'

/** One line a step recorded; kept on its checkpoint. `at` is epoch ms. */
export interface StepEvent {
  at: number
  level: StepEventLevel
  message: string
  subId?: string
  name?: string
  group?: string
  status?: SubStepStatus
  phase?: string
  process?: string
  data?: unknown
}

export interface SubProcessHandle {
  /** Records that the sub-process entered a phase. */
  phase(label: string): void
  /** Ends the sub-process as skipped. */
  skip(reason: string): void
  /** Ends the sub-process as failed without throwing. */
  fail(reason: string): void
}

/** Second argument of a step handler and argument of a local step's body. */
export interface StepLogger {
  debug(message: string, data?: unknown): void
  info(message: string, data?: unknown): void
  warn(message: string, data?: unknown): void
  error(message: string, data?: unknown): void
  /** Reports "alive"; rearms the step's `timeoutMs`. Throttled to one per 5 s. */
  heartbeat(progress?: unknown): void
  /** Records the outcome of a sub-step. */
  sub(name: string, status: SubStepStatus, message?: string, data?: unknown): void
  /** Records a sub-process event: a phase or a terminal status. */
  subEvent(event: {
    id: string
    name: string
    group?: string
    phase?: string
    status?: SubStepStatus
    message?: string
    data?: unknown
  }): void
  /** Times `body` and records `ok` or `failed`; rethrows what `body` throws. */
  subProcess<T>(
    name: string,
    body: (sp: SubProcessHandle) => Promise<T> | T,
    options?: { group?: string; id?: string }
  ): Promise<T>
}

/** A served step body. */
export type StepHandler = (input: unknown, log: StepLogger) => unknown

/** Whatever can serve step bodies by name: an engine, a transport, a worker. */
export interface StepServer {
  handle(name: string, fn: StepHandler): void
}

/** What is known of a served step. */
export interface DurableStepMeta {
  name: string
  config?: StepConfig
  file?: string
}
