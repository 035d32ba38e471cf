/*
 * What an engine can do, by concern. The behaviour of each verb is documented here and in
 * docs/reference/engine.md; the class that implements them forwards.
 */
import type { QueueConfig } from '../flow/port.ts'
import type { WorkflowFn } from '../types/ctx.ts'
import type { RunDispatch } from '../wire/messages.ts'
import type { EntityConfig } from '../types/entity.ts'
import type { EngineListener, StepInterceptor } from '../types/engine_event.ts'
import type { EvictListener, StalledListener, StalledRunInfo } from '../types/housekeeping.ts'
import type { RunFilter, RunQuery } from '../types/query.ts'
import type { RunResult, WorkflowRun } from '../types/run.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { StepHandler } from '../types/step.ts'
import type {
  OnErrorRoute,
  RegisterOptions,
  StartOptions,
  WorkflowClass,
  WorkflowInputOf,
  WorkflowRef,
} from '../types/workflow.ts'
import type { PublishOptions } from './delivery/events.ts'
import type { UpdateResult, UpdateValidator } from './delivery/updates.ts'
import type { CancelOptions } from './runs/canceller.ts'
import type { InsightApi, OperatingApi, RedispatchResult } from './operating_api.ts'
import type { FleetApi } from './fleet.ts'
import type { FireOptions, SchedulesApi } from './schedules_api.ts'
import type { WaitOptions } from './runs/waiter.ts'
import type { DueListener } from './upkeep/due_times.ts'

export type { CancelOptions, PublishOptions, UpdateResult, UpdateValidator, WaitOptions }
export type { InsightApi, OperatingApi, RedispatchResult }
export type { FireOptions, FleetApi, SchedulesApi }

export interface RegisteringApi {
  /**
   * Registers (or replaces) the body of `name@version` in this process. Nothing is written. Throws
   * `InvalidArgumentError` for an unusable name, version or option.
   */
  register(name: string, version: string, fn: WorkflowFn<never>, options?: RegisterOptions): void
  /**
   * Registers (or replaces) the validator of one update of one workflow, in this process: what it throws,
   * or a reason it answers, rejects.
   */
  registerUpdateValidator<TArg = unknown>(
    workflow: string,
    name: string,
    validate: UpdateValidator<TArg>
  ): void
  /**
   * Registers (or replaces) a durable entity in this process. Throws `InvalidArgumentError`; a name has no
   * colon.
   */
  registerEntity<TState>(name: string, config: EntityConfig<TState>): void
  /**
   * Registers (or replaces) a flow-control queue, which `ctx.step(…, { queue })` passes through; slots that
   * are held stay held. Nothing is written. Throws `InvalidArgumentError` for a queue that cannot be.
   */
  registerQueue(config: QueueConfig): void
  /** `onError` routes of registered workflows whose handler is not registered in this process. */
  unservedOnErrorRoutes(): Promise<{ workflow: string; route: OnErrorRoute }[]>
  /** Serves a step body on this engine's transport. Throws when the transport cannot serve. */
  handle(name: string, fn: StepHandler): void
}

export interface RunsApi {
  /**
   * Creates a run and has it executed; never runs the body inline. Idempotent by `runId`: a taken id
   * answers that run's state. Durable when it resolves: the run row. Rejects, nothing written, with
   * `WorkflowNotRegisteredError`, `SchemaValidationError` or `InvalidArgumentError`, or with the store's
   * error.
   */
  start<C extends WorkflowClass>(
    workflow: C,
    input: WorkflowInputOf<C>,
    runId: string,
    options?: StartOptions
  ): Promise<RunResult>
  start<TInput = unknown>(
    workflow: string,
    input: TInput,
    runId: string,
    options?: StartOptions
  ): Promise<RunResult>
  /**
   * Resolves when the run is terminal or suspended; with `terminal`, only when it (or the last run of
   * its continue-as-new chain) is terminal. Waits for an unknown id. Rejects with
   * `WaitTimeoutError` after `timeoutMs` (default never); the run goes on. Its timers keep no process
   * alive: a script in which nothing else does ends before it resolves.
   */
  waitForRun(runId: string, options?: WaitOptions): Promise<RunResult>
  /**
   * Cancels a run at once, or with `compensate` after its saga undos ran; that intent is durable when
   * this resolves. A terminal run is answered untouched; null for an unknown one.
   */
  cancel(runId: string, options?: CancelOptions): Promise<RunResult | null>
  /**
   * Executes a turn here and now and answers its outcome; re-opens a failed run. Completed, cancelled
   * and dead runs are answered untouched. Throws `RunNotFoundError`, `NamespaceMismatch`,
   * `WorkflowNotRegisteredError`.
   */
  resume(runId: string): Promise<RunResult>
  /**
   * Sets a run back to `pending` and dispatches it; a failed or dead one is re-opened, and a failed child
   * that it died of is brought back with it. Refuses completed
   * and cancelled runs and a running one with a live lease by answering their state; null when unknown.
   */
  requeue(runId: string): Promise<RunResult | null>
}

export interface DeliveryApi {
  /**
   * Delivers a payload to the run that waits on `token` and answers its state after the turn this
   * caused (as it stands when a turn of it is under way already, or happens elsewhere); null when nobody waits: the payload is buffered for a later wait. Durable when it resolves.
   */
  signal(token: string, payload?: unknown): Promise<RunResult | null>
  /** Makes sure the run exists, then signals: whatever interleaves, the payload arrives once. */
  signalWithStart(
    workflow: WorkflowRef,
    input: unknown,
    runId: string,
    signal: { token: string; payload?: unknown },
    options?: StartOptions
  ): Promise<{ runId: string }>
}

export interface OutsideApi {
  /**
   * Publishes to every run that waits for this event and starts every workflow whose `onEvent` names it (as
   * `evt:<id>:<workflow>`); answers how many runs it reached. One that reaches nobody is kept for one later
   * wait, unless `buffer` is false. Durable when it resolves. Throws `InvalidArgumentError`.
   */
  publishEvent(name: string, payload: unknown, options?: PublishOptions): Promise<number>
  /**
   * Delivers a validated argument to the run's `ctx.onUpdate(name)`, now or when it gets there. A rejection
   * (validator, unknown run, terminal run) touches nothing.
   */
  update(runId: string, name: string, arg: unknown): Promise<UpdateResult>
  /**
   * Reports the result of `ctx.task(name, …)`; also before the run waits for it. Null for an unknown run;
   * a report that comes too late changes nothing and answers the run's state.
   */
  completeTask(runId: string, name: string, result: unknown): Promise<RunResult | null>
  /** Reports its failure: the task throws `FatalError`. */
  failTask(runId: string, name: string, error: string): Promise<RunResult | null>
  /**
   * Sends an operation to the entity of this key. Durable when it resolves; operations of one key run one
   * after the other. A handler that throws fails the entity's run; what follows is applied to the
   * state before it.
   */
  signalEntity(name: string, key: string, op: string, arg?: unknown): Promise<void>
  /** Lets a run go on that stands at `ctx.breakpoint`; null when it stands at none. */
  continue(runId: string): Promise<RunResult | null>
}

export interface ReadApi {
  getRun(runId: string): Promise<WorkflowRun | null>
  /** Newest first; see `RunQuery`. */
  listRuns(query?: RunQuery): Promise<WorkflowRun[]>
  countRuns(query?: RunFilter): Promise<number>
  /** Every recorded position of a run, ascending; saga undos are negative. */
  listCheckpoints(runId: string): Promise<StepCheckpoint[]>
  /**
   * Ids of the runs this run started, whether or not they ended, in order of position; empty for an
   * unknown run. A child that continued as new is named by the link that is waited for.
   */
  getRunChildren(parentRunId: string): Promise<string[]>
  /** Latest value the run published with `ctx.setEvent(key, …)`; undefined if none. */
  getEvent<TValue = unknown>(runId: string, key: string): Promise<TValue | undefined>
  /** Durable state of an entity; undefined before its first operation. */
  getEntityState<TState = unknown>(name: string, key: string): Promise<TState | undefined>
}

export interface ListeningApi {
  /** Calls back for every event of this process; the answer stops it. */
  subscribe(listener: EngineListener): () => void
  /**
   * Calls back for every run that this process moves to `dead`; the answer stops it. For the deaths of all
   * processes see the dead-letter workflow.
   */
  onDead(listener: (run: WorkflowRun) => void): () => void
  /**
   * Calls back with the id of every run that is cancelled, by a verb or because its time is up, so that work
   * outside of steps can be cut short; of a cancel with undos when it is asked for. With a control plane also
   * of the cancels of other instances, of which a message may be lost. The answer stops it.
   */
  onCancel(listener: (runId: string) => void): () => void
  /**
   * Calls back with the id of every run that another instance enqueues, as the control plane tells; never
   * without one. The answer stops it.
   */
  onEnqueued(listener: (runId: string) => void): () => void
  /**
   * Calls back for every run that `sweepStalled` of this process finds silent for `stalledAfter`; the answer
   * stops it. Each run is told of once, and again when it moved and stalled again.
   */
  onStalled(listener: StalledListener): () => void
  /**
   * Calls back before retention of this process deletes a run, with its history, and waits; the answer
   * stops it. One that throws, rejects or takes longer than five minutes keeps the run and what it started
   * until a later pass, which calls back again.
   */
  onEvict(listener: EvictListener): () => void
  /** Wraps every real attempt of a local body; never on replay. The answer removes it. */
  use(interceptor: StepInterceptor): () => void
}

export interface UpkeepApi {
  /** Executes every `pending` run; resolves when their turns ended. */
  runPending(nowMs?: number): Promise<RunResult[]>
  /** Executes one run; null when it is leased elsewhere, foreign, not due to move, or while draining. */
  runOne(runId: string): Promise<RunResult | null>
  /**
   * Consumes the run queue of the transport: started runs of this engine's namespace (`*` without one), and
   * runs for which another process had no turn free. The engine calls it itself when it is built, unless
   * `drive` is false; every call answers the same stop, which resolves once the runs under way are claimed
   * or put back. A drain stops it too. Undefined without a run queue and with a custom `runDispatcher`.
   * Deferred consumers begin with `startConsumers`. See docs/operations/running.md.
   */
  consumeRuns(): (() => Promise<void>) | undefined
  /**
   * Acts on a run from the run queue, by what its row says: a pending one begins, a suspended one is leased
   * and resumed, one that executes elsewhere gets a durable wake request; one that is over, unknown or of
   * another namespace is skipped. Resolves once the run is claimed or the request is durable, and waits for
   * no turn. Rejects while draining, so that the message comes again elsewhere, and when the store fails.
   */
  runEnqueued(run: RunDispatch | string): Promise<void>
  /** Takes over runs left `running` by a crash; never executes a body inline. */
  recoverIncomplete(nowMs?: number): Promise<RunResult[]>
  /** Executes suspended runs that are due, at most `timerBatchSize`, most overdue first. */
  resumeDueTimers(nowMs?: number): Promise<RunResult[]>
  /**
   * Cancels runs past their `executionTimeout`, without undos, with the error `execution_timeout`, and
   * their children with them. `now` in epoch ms, default the engine's clock. Sends nothing where no
   * registered workflow has a timeout, and while draining.
   */
  sweepTimeouts(now?: number): Promise<void>
  /**
   * Deletes runs that `retention` does not keep any longer, with the runs they started, and buffered events
   * past `eventBufferTtl`; answers how many runs went. Looks at 100 runs, at most once a minute: a call in
   * between answers 0. `now` in epoch ms, default the engine's clock. Rejects with the store's error after
   * every rule had its turn.
   */
  sweepRetention(now?: number): Promise<number>
  /**
   * Tells the listeners of `onStalled` of runs that are silent for `stalledAfter`, and answers whom it told
   * of. At most once a minute; reads nothing where nobody listens.
   */
  sweepStalled(now?: number): Promise<StalledRunInfo[]>
  /**
   * Calls back in how many ms a run falls due that this process parked with a deadline, or starts later
   * (ours); the answer stops it. A worker loop wakes up by it.
   */
  onDue(listener: DueListener): () => void
  /** Starts consumption that was deferred. */
  startConsumers(): void
  /** Stops picking up work; `spentMs` already waited comes off the next drain's budget. */
  beginDrain(spentMs?: number): void
  isDraining(): boolean
  /** Stops picking up work and waits for turns in flight and what follows; default 10 000 ms. */
  drain(timeoutMs?: number): Promise<void>
}

export interface EngineApi
  extends
    RegisteringApi,
    RunsApi,
    OperatingApi,
    DeliveryApi,
    OutsideApi,
    ReadApi,
    InsightApi,
    ListeningApi,
    FleetApi,
    SchedulesApi,
    UpkeepApi {}
