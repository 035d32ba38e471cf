/*
 * Workflows: their options, references to them, and what can be given when one is started.
 */
import type { StepError } from '../foundation/failure.ts'
import type { StandardSchemaV1 } from '../foundation/standard_schema.ts'
import type { RunStatus, SearchAttributes } from './run.ts'
import type { WorkflowScheduleConfig } from './schedule.ts'

/** A workflow class: an instantiable class whose instances have `run`. */
export interface WorkflowClass<TInput = never, TOutput = unknown> {
  // `any`: constructors take whatever the container injects.
  new (...args: any[]): { run(ctx: never, input: TInput): TOutput }
  workflow?: WorkflowOptions
  on?: WorkflowTrigger | readonly WorkflowTrigger[]
  schedule?: WorkflowScheduleConfig | readonly WorkflowScheduleConfig[]
}

/** A class or a registered name. */
export type WorkflowRef = string | WorkflowClass

/** The input a workflow class's `run` declares. */
export type WorkflowInputOf<C> = C extends {
  // `any`: matches every class.
  new (...args: any[]): { run(ctx: never, input: infer I): unknown }
}
  ? I
  : unknown

/** The output a workflow class's `run` returns. */
export type WorkflowOutputOf<C> = C extends {
  // `any`: matches every class.
  new (...args: any[]): { run(ctx: never, input: never): infer O }
}
  ? Awaited<O>
  : unknown

/** Durable FIFO mutex per key. */
export interface SingletonConfig {
  key(input: unknown): string
  /** Runs inside at once; default 1. */
  limit?: number
  /** Runs that may wait behind them; unbounded when absent. */
  maxQueueDepth?: number
}

/** Start-time quota per key, shared across workflows. */
export interface ConcurrencyConfig {
  key(input: unknown): string | undefined
  limit: number | ((key: string) => number | Promise<number>)
  countStatuses?: RunStatus[]
}

/** A per-start quota, in place of the registered one. */
export interface ConcurrencyQuota {
  key: string
  limit: number
  countStatuses?: RunStatus[]
}

/** `static workflow` of a workflow class. */
export interface WorkflowOptions {
  /** The registered, cross-runtime name. */
  name: string
  /** Default '1'. Old runs keep the version they started on. */
  version?: string
  tags?: string[]
  /** Wall-clock budget of a run: '5m' or ms. */
  executionTimeout?: string | number
  /** Published event names that start a run. */
  onEvent?: string[]
  singleton?: SingletonConfig
  concurrency?: ConcurrencyConfig
  /** Package attribution; default: the nearest named package.json of the declaring file. */
  origin?: string
  /** Handler workflows by error code; without `code`, the catch-all. */
  onError?: { code?: string | { readonly code: string }; workflow: WorkflowRef }[]
  deadLetterWorkflow?: WorkflowRef
  /** Validated at start and before every turn; `run` receives its output. */
  inputSchema?: StandardSchemaV1
  /** Validates every merged `ctx.upsertSearchAttributes`; must be synchronous. */
  searchAttributes?: StandardSchemaV1
}

/** Starts a workflow on an event of the application's emitter. */
export interface EmitterTriggerConfig {
  /** The exact name of the event. */
  event: string
}

/** Starts a workflow on what a library reports to the diagnostics bus. */
export interface DiagnosticsTriggerConfig {
  lib: string
  /** The exact name of the event, or a pattern; default every event of the library. */
  event?: string | RegExp
}

/** One entry of `static on`: what starts a workflow beside calls. */
export type WorkflowTrigger = EmitterTriggerConfig | DiagnosticsTriggerConfig

/** `static workflow` with the version filled in. */
export interface WorkflowMeta extends WorkflowOptions {
  version: string
  /** The triggers of the class; absent when it has none. */
  on?: WorkflowTrigger[]
  /** The schedules of the class; absent when it has none. */
  schedules?: WorkflowScheduleConfig[]
  /** File the class was discovered in. */
  file?: string
}

/** A failure route with names resolved. */
export interface OnErrorRoute {
  code?: string
  workflow: string
}

/** Options of `engine.register`. */
export interface RegisterOptions {
  tags?: string[]
  singleton?: SingletonConfig
  concurrency?: ConcurrencyConfig
  executionTimeout?: string | number
  /** Called with the parsed input; throws or returns a reason to refuse the start. */
  validateInput?: (input: unknown) => unknown
  inputSchema?: StandardSchemaV1
  searchAttributesSchema?: StandardSchemaV1
  onEvent?: string[]
  eventBatch?: { mode: 'debounce' | 'batch'; windowMs: number; maxSize?: number }
  requires?: string[]
  origin?: string
  onError?: OnErrorRoute[]
  deadLetterWorkflow?: string
}

/** Options of `engine.start`. */
export interface StartOptions {
  /** Pin the run to this registered version instead of the newest. */
  version?: string
  /** Merged with the workflow's static tags. */
  tags?: string[]
  searchAttributes?: SearchAttributes
  /** Dispatch priority of a remote run; higher first. */
  priority?: number
  /** Worker pool of the run; default the engine's. */
  namespace?: string
  /** Create now, start then (epoch ms or Date). A past time starts at once. */
  startAt?: number | Date
  origin?: string
  concurrency?: ConcurrencyQuota
}

/** Options of `BaseWorkflow.start` and `.dispatch`. */
export type WorkflowDispatchOptions = { runId?: string } & StartOptions

/** Arguments of `BaseWorkflow.start` and `.dispatch`; the input may be left out where `run` takes none. */
export type StartArguments<C> =
  undefined extends WorkflowInputOf<C>
    ? [input?: WorkflowInputOf<C>, options?: WorkflowDispatchOptions]
    : [input: WorkflowInputOf<C>, options?: WorkflowDispatchOptions]

/** Input of a dead-letter handler. */
export interface DeadLetter<TInput = unknown> {
  deadRunId: string
  workflow: string
  input: TInput
  error?: StepError
}

/** Input of an `onError` handler. */
export interface OnErrorInput<TInput = unknown> {
  runId: string
  workflow: string
  input: TInput
  error: StepError
}
