/*
 * The port to workers, by role: only `Tasks` is required, every other member may be absent by itself.
 * What holds for all of them: any message may arrive twice or out of order; a consumer that throws gets
 * its message again, later, and the error goes to `onError`; only JSON crosses; `close` is idempotent,
 * bounded and leaves nothing that keeps the process alive.
 * Writing one: docs/transports/custom.md.
 */
import type { StepHandler } from '../types/step.ts'
import type {
  GroupHealth,
  Heartbeat,
  RemoteTask,
  RunDispatch,
  RunReply,
  RunRequest,
  StartRunMessage,
  StepResult,
  TenantEvent,
  WorkerDescriptor,
  WorkerHeartbeat,
  WorkflowDecision,
  WorkflowStepEvent,
  WorkflowTask,
} from '../wire/messages.ts'

/** Runs one turn of a remote workflow. */
export type WorkflowTurnHandler = (task: WorkflowTask) => Promise<WorkflowDecision>

/** Told about what a transport cannot answer for: a failing consumer, a broken message. */
export type TransportErrorHandler = (error: unknown) => void

/** Role: dispatched steps. Required of every transport. */
export interface Tasks {
  /**
   * Hands a task to the workers of `task.group`. Its result never arrives before this resolved and the
   * dispatching turn could suspend. Throws for input that has no JSON form, and
   * `TransportUnavailableError` when it could not be handed over.
   */
  dispatch(task: RemoteTask): Promise<void>
  /** Receives results; a result is acknowledged when the handler resolves and comes again otherwise. */
  onResult(handler: (result: StepResult) => Promise<void>): void
  /** Receives heartbeats. They may be lost. */
  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void
}

/** Role: running handlers in this process. */
export interface Serving {
  /**
   * Serves `name` for tasks of `partition` (default: the transport's own, else unpartitioned ones).
   * Registering a name again swaps the function; a name never shares its queue with another.
   */
  handle(name: string, fn: StepHandler, partition?: string): void
  handleWorkflow(name: string, turn: WorkflowTurnHandler): void
  /** Reports life of a step or, without `stepId`, of a remote turn. */
  heartbeat(beat: Heartbeat): Promise<void>
}

/** Role: turns of remote workflows. A second registration is a no-op. */
export interface Turns {
  dispatchWorkflowTask(task: WorkflowTask): Promise<void>
  onDecision(handler: (decision: WorkflowDecision) => Promise<void>): void
  dispatchStepEvent(event: WorkflowStepEvent): Promise<void>
  onStepEvent(handler: (event: WorkflowStepEvent) => Promise<void>): void
}

/** Role: what is known of the fleet. Reads skip what they cannot parse and never throw for it. */
export interface Fleet {
  groupHealth(group: string): Promise<GroupHealth>
  /** Tokens with a live worker. */
  listWorkerGroups(): Promise<string[]>
  listWorkerDescriptors(token: string): Promise<WorkerDescriptor[]>
  readAllWorkerDescriptors(): Promise<WorkerDescriptor[]>
  readAllWorkerHeartbeats(): Promise<WorkerHeartbeat[]>
}

/** Role: the link between pods without a store and a control plane. */
export interface TenantLink {
  dispatchStartRun(message: StartRunMessage): Promise<void>
  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void
  dispatchRunRequest(request: RunRequest): Promise<void>
  onRunRequest(handler: (request: RunRequest) => Promise<void>): void
  publishRunReply(reply: RunReply): Promise<void>
  onRunReply(handler: (reply: RunReply) => void): void
  publishTenantEvent(event: TenantEvent): Promise<void>
  /** Any number of subscribers; the answer detaches this one. */
  onTenantEvent(tenant: string, handler: (event: TenantEvent) => void): () => void
}

/**
 * Role: hints that runs can move. At least once; a lost one costs latency up to the poll. A scope is a
 * namespace, or `*` for engines that drive every namespace: a scope of its own, which takes nothing of
 * the others.
 */
export interface RunQueue {
  /** Hands a run to the consumers of `scope`; default: the run's namespace, else `default`. */
  dispatchRun(run: RunDispatch, scope?: string): Promise<void>
  /** Consumes one scope. The answer stops it after handlers in flight. Consuming a scope twice takes nothing twice. */
  onRun(scope: string, handler: (run: RunDispatch) => Promise<void>): () => Promise<void>
}

/** Role: lifecycle of consumption. */
export interface Consumption {
  /** Folds a namespace into every name; one given to the constructor always wins. */
  useNamespace(namespace: string): void
  /** Parks consumption registered from now on; producing goes on. */
  deferConsumers(): void
  /** Starts what was parked and parks nothing more. */
  startConsumers(): void
  /** Stops consuming and lets go of everything. */
  close(): Promise<void>
}

/** Role (ours): tasks that live in this process only. */
export interface VolatileTasks {
  /** Tasks, results and beats die with the process: whoever waits for one must be able to re-send it. */
  readonly volatile: true
  /** Is this step queued, running, or its result not yet accepted, in this process right now? */
  isRunning(stepId: string): boolean
  /** A running step reports life at least this often, in ms, whether or not its handler does. */
  beatEvery(ms: number): void
  /**
   * Told of a task that went out and that nobody serves at that moment. Only for a transport that can
   * know: one whose tasks somebody unknown may take tells nothing.
   */
  onUnserved?(handler: (task: RemoteTask) => void): void
}

/** A transport. Ask for an optional member before using it; `TransportPool` does so once. */
export interface Transport
  extends
    Tasks,
    Partial<Serving>,
    Partial<Turns>,
    Partial<Fleet>,
    Partial<TenantLink>,
    Partial<RunQueue>,
    Partial<Consumption>,
    Partial<VolatileTasks> {}

/** Where errors go when nobody said otherwise. */
export const reportToConsole: TransportErrorHandler = (error) => {
  // eslint-disable-next-line no-console -- the documented default of `onError`
  console.error(error)
}
