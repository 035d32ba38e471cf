/*
 * The context of a workflow body. Every interaction with the outside world goes through it: the call
 * takes a position of the run's history, and what it answered is recorded there.
 * Behaviour: docs/concepts/durability.md and docs/authoring/.
 */
import type {
  AllOptions,
  AllSettledOptions,
  AllStepsOptions,
  AllStepsSettledOptions,
  Settled,
} from './fan.ts'
import type { StepDispatchOpts, StepLogger, StepOptions, StepRef, StepUndo } from './step.ts'
import type { SearchAttributes } from './run.ts'
import type { WorkflowClass, WorkflowInputOf, WorkflowOutputOf } from './workflow.ts'

/** Options of a dispatched step, with a dispatched saga undo. */
export interface StepCallOptions<TInput, TOutput> extends StepDispatchOpts {
  /**
   * The step that undoes this one, by reference or name. It is dispatched with
   * `{ input, output }` of this call when the run fails or is cancelled with `compensate`.
   */
  compensate?: StepRef<StepUndo<TInput, TOutput>, unknown> | string
}

/** Options of `ctx.child` and `ctx.startChild`; a bare string is its `childId`. */
export interface ChildCallOptions {
  /** Must be the same in every replay. */
  childId?: string
  /** Dispatch priority of a remote child; higher first. */
  priority?: number
}

/** What `ctx.webhook` mints. */
export interface DurableWebhook<TPayload = unknown> {
  readonly token: string
  /** Absent without the `webhookUrl` option. */
  readonly url?: string
  /**
   * Waits for `engine.signal(token, body)`, also for one that came before. One wait at a time. With
   * `timeoutMs`, throws `SignalTimeoutError` after it.
   */
  wait(options?: { timeoutMs?: number }): Promise<TPayload>
}

/** `TAttributes`: the search attributes of this workflow. */
export interface WorkflowCtx<TAttributes extends SearchAttributes = SearchAttributes> {
  /** This run's id. */
  readonly runId: string

  /**
   * Dispatches a durable step by reference and waits for its result. The run suspends until the result
   * lands. Durable: a `pending` row before the dispatch, the result when it lands.
   * Throws `RemoteStepError` when the step failed for good.
   */
  step<TInput, TOutput>(
    handler: StepRef<TInput, TOutput>,
    input: NoInfer<TInput>,
    options?: StepCallOptions<NoInfer<TInput>, NoInfer<TOutput>>
  ): Promise<TOutput>
  /** The same, addressed by name: for a handler of another runtime. */
  step<TOutput = unknown>(
    name: string,
    input: unknown,
    options?: StepCallOptions<never, TOutput>
  ): Promise<TOutput>

  /**
   * Runs `fn` in the engine's process and records its result. At least once: a crash before the result
   * is durable runs it again. Retried in process as `options` say; throws the body's own error.
   */
  localStep<TOutput>(
    name: string,
    fn: (log: StepLogger) => Promise<TOutput> | TOutput,
    options?: StepOptions
  ): Promise<TOutput>

  /**
   * Exactly-once database step: `fn` and the record that it ran commit in one transaction of the store.
   * `tx` is the store's native transaction handle. Throws, before taking a position, on a store without
   * transactions.
   */
  transaction<TOutput>(name: string, fn: (tx: unknown) => Promise<TOutput>): Promise<TOutput>

  /** Sleeps for '30s', '2h', '7 days' or ms, across restarts. The first deadline is the only one. */
  sleep(duration: string | number): Promise<void>
  /** Sleeps until a time (Date or epoch ms). */
  sleepUntil(when: Date | number): Promise<void>
  /** The engine's clock in epoch ms, recorded. */
  now(): Promise<number>

  /** Waits for `engine.signal(token, payload)`. With `timeoutMs`, throws `SignalTimeoutError` after it. */
  waitForSignal<TPayload = unknown>(
    token: string,
    options?: { timeoutMs?: number }
  ): Promise<TPayload>
  /**
   * Waits for `engine.publishEvent(name, payload)`, also for one that came before and met nobody. `match`
   * is a subset of the payload that must be equal, compared structurally. With `timeoutMs`, throws
   * `SignalTimeoutError` after it.
   */
  waitForEvent<TPayload = unknown>(
    name: string,
    options?: { match?: Record<string, unknown>; timeoutMs?: number }
  ): Promise<TPayload>
  /**
   * Waits for `engine.update(runId, name, arg)`, whose validator accepted `arg`. With `timeoutMs`, throws
   * `SignalTimeoutError` after it.
   */
  onUpdate<TArg = unknown>(name: string, options?: { timeoutMs?: number }): Promise<TArg>

  /**
   * Starts a child run, or attaches to the run that has its id, and waits for its end. Throws
   * `FatalError` when the child failed, was cancelled, or could not be started. Default id
   * `<runId>.child.<position>`. Durable: the child's run row and the wait in one commit.
   */
  child<C extends WorkflowClass>(
    workflow: C,
    input: WorkflowInputOf<C>,
    options?: string | ChildCallOptions
  ): Promise<WorkflowOutputOf<C>>
  /** The same, addressed by name. */
  child<TOutput = unknown>(
    workflow: string,
    input: unknown,
    options?: string | ChildCallOptions
  ): Promise<TOutput>
  /**
   * Starts a child run and answers its id without waiting for it; `child` with the same id joins it
   * later, and then hears of a start that failed.
   */
  startChild<C extends WorkflowClass>(
    workflow: C,
    input: WorkflowInputOf<C>,
    options?: string | ChildCallOptions
  ): Promise<string>
  /** The same, addressed by name. */
  startChild(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<string>

  /**
   * Runs one child per input and waits for all of them; outputs in input order. Throws `GatherError` when
   * members failed: of all of them with `waitAll` (default), of the first with `failFast`, which also
   * cancels the others. Takes one position per input; none for an empty list.
   */
  all<C extends WorkflowClass>(
    workflow: C,
    inputs: WorkflowInputOf<C>[],
    options?: AllOptions
  ): Promise<WorkflowOutputOf<C>[]>
  /** One dispatched step per input, joined once. */
  all<TInput, TOutput>(
    step: StepRef<TInput, TOutput>,
    inputs: TInput[],
    options?: AllStepsOptions
  ): Promise<TOutput[]>
  /** The children, addressed by name. */
  all<TOutput = unknown>(
    workflow: string,
    inputs: unknown[],
    options?: AllOptions
  ): Promise<TOutput[]>
  /** As `all`, answering one `Settled` per input instead of throwing for a member. */
  allSettled<C extends WorkflowClass>(
    workflow: C,
    inputs: WorkflowInputOf<C>[],
    options?: AllSettledOptions
  ): Promise<Settled<WorkflowOutputOf<C>>[]>
  allSettled<TInput, TOutput>(
    step: StepRef<TInput, TOutput>,
    inputs: TInput[],
    options?: AllStepsSettledOptions
  ): Promise<Settled<TOutput>[]>
  allSettled<TOutput = unknown>(
    workflow: string,
    inputs: unknown[],
    options?: AllSettledOptions
  ): Promise<Settled<TOutput>[]>

  /**
   * Work that somebody outside does: runs `dispatch` in process like a local step (at least once, retried
   * as `options` say), then waits until `engine.completeTask` or `engine.failTask` reports back. `name` must
   * be unique per run. Throws `FatalError` for a reported failure, and what `dispatch` threw for good.
   */
  task<TResult = unknown>(
    name: string,
    dispatch: () => Promise<void>,
    options?: StepOptions
  ): Promise<TResult>
  /** A callback address: its `token` is usable at once, and `wait` answers what was signalled to it. */
  webhook<TPayload = unknown>(): DurableWebhook<TPayload>
  /**
   * Sends an operation to a durable entity and waits for what it answers. Operations of one key run one
   * after the other, each once. Throws `FatalError` when the handler threw.
   */
  callEntity<TResult = unknown>(
    name: string,
    key: string,
    op: string,
    arg?: unknown
  ): Promise<TResult>
  /** Sends an operation to a durable entity, once, without waiting for it. */
  signalEntity(name: string, key: string, op: string, arg?: unknown): Promise<void>
  /** Pauses the run until `engine.continue(runId)`. */
  breakpoint(label?: string): Promise<void>

  /** Publishes a value that `engine.getEvent(runId, key)` reads. */
  setEvent<TValue>(key: string, value: TValue): Promise<void>

  /**
   * Merges queryable attributes into the run's own, key by key, in the commit that records it. With a
   * declared `searchAttributes` schema the merged result is validated first; throws
   * `SchemaValidationError`.
   */
  upsertSearchAttributes(attributes: Partial<TAttributes>): Promise<void>
  /** True for a run that reached this call first with the change in place, false for older history. */
  patched(id: string): Promise<boolean>
  /** Completes this run and starts the next one of the chain with clean history. Always throws. */
  continueAsNew(input?: unknown): Promise<never>
  /** Runs `fn` once and records what it returned: ids, random numbers. */
  sideEffect<TValue>(fn: () => TValue | Promise<TValue>): Promise<TValue>
}

/**
 * `WorkflowCtx` with one signature per name, addressed by strings: for code that drives a context by names,
 * and for fakes in tests. Every `WorkflowCtx` is one.
 */
export interface DynamicWorkflowCtx extends Omit<
  WorkflowCtx,
  'step' | 'child' | 'startChild' | 'all' | 'allSettled'
> {
  step(name: string, input: unknown, options?: StepCallOptions<never, unknown>): Promise<unknown>
  child(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<unknown>
  startChild(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<string>
  all(workflow: string, inputs: unknown[], options?: AllOptions): Promise<unknown[]>
  allSettled(
    workflow: string,
    inputs: unknown[],
    options?: AllSettledOptions
  ): Promise<Settled<unknown>[]>
}

/** The function form of a workflow. */
export type WorkflowFn<TInput = unknown, TOutput = unknown> = (
  ctx: WorkflowCtx,
  input: TInput
) => Promise<TOutput>
