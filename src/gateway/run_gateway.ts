/*
 * The gateway to runs: what looks at and steers runs reads through it, wherever it runs. With a store at
 * hand it is a view of the engine; a process without one asks another that has it.
 */
import { randomId } from '../foundation/ids.ts'
import type {
  CancelOptions,
  DeliveryApi,
  FleetApi,
  InsightApi,
  ListeningApi,
  OperatingApi,
  OutsideApi,
  ReadApi,
  RedispatchResult,
  RunsApi,
} from '../engine/api.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { EngineEvent } from '../types/engine_event.ts'
import type { RunExplanation } from '../types/explanation.ts'
import type {
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../types/query.ts'
import type { RunResult, RunWaiting, SearchAttributes, WorkflowRun } from '../types/run.ts'
import type { FanPage, FanPageQuery, RunDetail, RunDetailOptions } from '../types/run_detail.ts'
import type { StartOptions, WorkflowRef } from '../types/workflow.ts'
import type { GroupHealth } from '../wire/messages.ts'

/** Where a process stands in a deployment. */
export interface DurableTopology {
  role: 'control-plane' | 'standalone' | 'tenant'
  /** The partition of a tenant. */
  tenant?: string
}

/** `StartOptions`, and the id of the run; a missing one is made. */
export type StartRunOptions = StartOptions & { runId?: string }

/** What every role offers. A member with a question mark may be missing where another process serves it. */
export interface RunGateway {
  topology(): DurableTopology
  getRun(runId: string): Promise<WorkflowRun | null>
  listRuns(query: RunQuery): Promise<WorkflowRun[]>
  countRuns?(query: RunFilter): Promise<number>
  /** Every recorded position of a run, ascending. */
  getCheckpoints(runId: string): Promise<StepCheckpoint[]>
  /** Those that have no end yet, at most 500 (ours). */
  getOpenCheckpoints?(runId: string): Promise<StepCheckpoint[]>
  getRunChildren(runId: string): Promise<string[]>
  getRunDetail?(runId: string, options?: RunDetailOptions): Promise<RunDetail | null>
  getFanMembers?(runId: string, group: string, query: FanPageQuery): Promise<FanPage | null>
  getSearchAttributes(runId: string): Promise<SearchAttributes | undefined>
  /** Backlog and live workers by routing token; empty where the transport does not report them. */
  workerHealth(): Promise<GroupHealth[]>
  /** As `engine.start`; without a `runId` every call starts another run. */
  start(workflow: WorkflowRef, input: unknown, options?: StartRunOptions): Promise<RunResult>
  /** Delivers a signal by its token. `runId` says whom it concerns, for a gateway that has to find its way. */
  signal(runId: string, signal: string, payload?: unknown): Promise<RunResult | null>
  cancel(runId: string, options?: CancelOptions): Promise<RunResult | null>
  redispatchPending(runId: string): Promise<RedispatchResult | null>
  /** As `engine.requeue`. */
  retry?(runId: string): Promise<RunResult | null>
  continue?(runId: string): Promise<RunResult | null>
  retryWithInput?(runId: string, input: unknown): Promise<{ runId: string } | null>
  runFacets?(query: RunFacetQuery): Promise<RunFacetRow[]>
  runValueFacets?(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]>
  waitingFor?(runIds: readonly string[]): Promise<Record<string, RunWaiting>>
  /** Why a run is where it is (ours). */
  explainRun?(runId: string): Promise<RunExplanation | null>
  /** Calls back for the events of one run that this process hears of; the answer stops it. */
  subscribe(runId: string, onEvent: (event: EngineEvent) => void): () => void
}

/** What a `StoreRunGateway` needs of an engine. */
export type RunGatewayEngine = Pick<
  ReadApi,
  'getRun' | 'listRuns' | 'countRuns' | 'listCheckpoints' | 'getRunChildren'
> &
  InsightApi &
  Pick<RunsApi, 'start' | 'cancel' | 'requeue'> &
  Pick<OperatingApi, 'redispatchPending' | 'retryWithInput'> &
  Pick<DeliveryApi, 'signal'> &
  Pick<OutsideApi, 'continue'> &
  Pick<ListeningApi, 'subscribe'> &
  Pick<FleetApi, 'workerHealth'>

/** The gateway of a process with a store: every call is one of the engine. */
export class StoreRunGateway implements Required<RunGateway> {
  readonly #engine: RunGatewayEngine
  readonly #role: 'standalone' | 'control-plane'

  constructor(engine: RunGatewayEngine, options: { role?: 'standalone' | 'control-plane' } = {}) {
    this.#engine = engine
    this.#role = options.role ?? 'standalone'
  }

  topology(): DurableTopology {
    return { role: this.#role }
  }

  getRun(runId: string): Promise<WorkflowRun | null> {
    return this.#engine.getRun(runId)
  }

  listRuns(query: RunQuery): Promise<WorkflowRun[]> {
    return this.#engine.listRuns(query)
  }

  countRuns(query: RunFilter): Promise<number> {
    return this.#engine.countRuns(query)
  }

  getCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return this.#engine.listCheckpoints(runId)
  }

  getOpenCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return this.#engine.getOpenCheckpoints(runId)
  }

  getRunChildren(runId: string): Promise<string[]> {
    return this.#engine.getRunChildren(runId)
  }

  getRunDetail(runId: string, options?: RunDetailOptions): Promise<RunDetail | null> {
    return this.#engine.getRunDetail(runId, options)
  }

  getFanMembers(runId: string, group: string, query: FanPageQuery): Promise<FanPage | null> {
    return this.#engine.getFanMembers(runId, group, query)
  }

  async getSearchAttributes(runId: string): Promise<SearchAttributes | undefined> {
    const run = await this.#engine.getRun(runId)
    return run?.searchAttributes
  }

  async workerHealth(): Promise<GroupHealth[]> {
    return this.#engine.workerHealth()
  }

  start(workflow: WorkflowRef, input: unknown, options: StartRunOptions = {}): Promise<RunResult> {
    const { runId = randomId(), ...start } = options
    return this.#engine.start(workflow as string, input, runId, start)
  }

  signal(_runId: string, signal: string, payload?: unknown): Promise<RunResult | null> {
    return this.#engine.signal(signal, payload)
  }

  cancel(runId: string, options?: CancelOptions): Promise<RunResult | null> {
    return this.#engine.cancel(runId, options)
  }

  redispatchPending(runId: string): Promise<RedispatchResult | null> {
    return this.#engine.redispatchPending(runId)
  }

  retry(runId: string): Promise<RunResult | null> {
    return this.#engine.requeue(runId)
  }

  continue(runId: string): Promise<RunResult | null> {
    return this.#engine.continue(runId)
  }

  retryWithInput(runId: string, input: unknown): Promise<{ runId: string } | null> {
    return this.#engine.retryWithInput(runId, input)
  }

  runFacets(query: RunFacetQuery): Promise<RunFacetRow[]> {
    return this.#engine.runFacets(query)
  }

  runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery,
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]> {
    return this.#engine.runValueFacets(axis, query, options)
  }

  waitingFor(runIds: readonly string[]): Promise<Record<string, RunWaiting>> {
    return this.#engine.waitingFor(runIds)
  }

  explainRun(runId: string): Promise<RunExplanation | null> {
    return this.#engine.explainRun(runId)
  }

  subscribe(runId: string, onEvent: (event: EngineEvent) => void): () => void {
    return this.#engine.subscribe((event) => {
      if (event.runId === runId) onEvent(event)
    })
  }
}
