/*
 * The engine: a facade. Every verb is one line into a collaborator; what it does is documented in api.ts.
 */
import { openRows } from '../insight/explain_run.ts'
import { checkedAxis } from '../insight/facets.ts'
import { knownChildrenOf } from '../insight/lineage.ts'
import { fanMembers, runDetail } from '../insight/run_detail.ts'
import { waitingFor } from '../insight/waiting.ts'
import { assemble, type Collaborators } from './assemble.ts'
import type { EngineApi, FireOptions } from './api.ts'
import { type EngineConfig, resolveDeps, type WorkflowEngineDeps } from './deps.ts'
import type { ScheduleClient } from '../schedules/schedule_client.ts'
import { fire, type ScheduleReport } from '../schedules/scheduler.ts'
import type { QueueConfig } from '../flow/port.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { EntityConfig } from '../types/entity.ts'
import type { EngineListener, StepInterceptor } from '../types/engine_event.ts'
import type { RunExplanation } from '../types/explanation.ts'
import type { EvictListener, StalledListener, StalledRunInfo } from '../types/housekeeping.ts'
import type {
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../types/query.ts'
import type { RunResult, RunWaiting, WorkflowRun } from '../types/run.ts'
import type {
  FanPage,
  FanPageQuery,
  PurgeOptions,
  RunDetail,
  RunDetailOptions,
  RunScope,
} from '../types/run_detail.ts'
import type { ScheduleInfo, ScheduleSource } from '../types/schedule.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'
import type { StepHandler } from '../types/step.ts'
import type { WorkflowFn } from '../types/ctx.ts'
import type { GroupHealth, RunDispatch } from '../wire/messages.ts'
import type { OnErrorRoute, RegisterOptions, StartOptions, WorkflowRef } from '../types/workflow.ts'
import type { PublishOptions } from './delivery/events.ts'
import type { UpdateResult, UpdateValidator } from './delivery/updates.ts'
import type { CancelOptions } from './runs/canceller.ts'
import { explained } from './runs/explained.ts'
import type { RedispatchResult } from './runs/redispatcher.ts'
import { resultOfTurn } from './runs/result.ts'
import { knownGroups, workerHealth } from './fleet.ts'
import { checkFunction, checkListener } from './listeners.ts'
import { checkedRunId, serve } from './requirements.ts'
import { checkQuery } from './runs/scope.ts'
import { retryWithInput } from './runs/retrier.ts'
import type { WaitOptions } from './runs/waiter.ts'
import type { DueListener } from './upkeep/due_times.ts'

export class WorkflowEngine implements EngineApi {
  readonly #config: EngineConfig
  readonly #parts: Collaborators

  /** Needs nothing but a store; see `WorkflowEngineDeps`. Throws for a dependency it cannot use. */
  constructor(deps: WorkflowEngineDeps) {
    this.#config = resolveDeps(deps)
    this.#parts = assemble(this.#config)
    if (this.#config.drive) this.consumeRuns()
  }

  /** The lease owner of this engine. */
  get instanceId(): string {
    return this.#config.turns.instanceId
  }

  /** The worker pool this engine drives; undefined for all. */
  get namespace(): string | undefined {
    return this.#config.namespace
  }

  register(name: string, version: string, fn: WorkflowFn<never>, options?: RegisterOptions): void {
    this.#parts.registry.register(name, version, fn as WorkflowFn, options)
    // A body kept live is of the code it replaces.
    this.#parts.warm.dropLive()
  }

  handle(name: string, fn: StepHandler): void {
    serve(this.#parts, name, fn)
  }

  registerQueue(config: QueueConfig): void {
    this.#parts.queues.register(config)
  }

  registerEntity<TState>(name: string, config: EntityConfig<TState>): void {
    this.#parts.entities.register(name, config as EntityConfig)
  }

  registerUpdateValidator<TArg>(
    workflow: string,
    name: string,
    validate: UpdateValidator<TArg>
  ): void {
    this.#parts.updates.register(workflow, name, validate as UpdateValidator)
  }

  start(
    workflow: WorkflowRef,
    input: unknown,
    runId: string,
    options?: StartOptions
  ): Promise<RunResult> {
    return this.#parts.starter.start(workflow, input, runId, options)
  }

  waitForRun(runId: string, options?: WaitOptions): Promise<RunResult> {
    return this.#parts.waiter.waitFor(runId, options)
  }

  cancel(runId: string, options?: CancelOptions): Promise<RunResult | null> {
    return this.#parts.canceller.cancel(runId, options)
  }

  resume(runId: string): Promise<RunResult> {
    return this.#parts.operator.resume(runId)
  }

  requeue(runId: string): Promise<RunResult | null> {
    return this.#parts.operator.requeue(runId)
  }

  // Operating on runs, and looking at them: operating_api.ts

  cancelWhere(filter: RunFilter, options?: CancelOptions): Promise<RunResult[]> {
    return this.#parts.canceller.cancelWhere(filter, options)
  }

  redispatchPending(runId: string): Promise<RedispatchResult | null> {
    return this.#parts.redispatcher.redispatchPending(runId)
  }

  retryWithInput(
    runId: string,
    input: unknown,
    newRunId?: string
  ): Promise<{ runId: string } | null> {
    return retryWithInput(this.#parts, { runId, input, newRunId })
  }

  deleteRun(runId: string): Promise<number> {
    return this.#parts.eraser.deleteRun(runId)
  }

  async purgeRuns(scope: RunScope, options?: PurgeOptions): Promise<number> {
    return this.#parts.eraser.purge(scope, options)
  }

  purgeNamespace(namespace: string, options?: Omit<PurgeOptions, 'children'>): Promise<number> {
    return this.#parts.eraser.purge({ namespace }, options)
  }

  getRunDetail(runId: string, options?: RunDetailOptions): Promise<RunDetail | null> {
    return runDetail(this.#parts.store, runId, options)
  }

  getFanMembers(runId: string, group: string, query?: FanPageQuery): Promise<FanPage | null> {
    return fanMembers(this.#parts.store, runId, group, query)
  }

  runFacets(query: RunFacetQuery = {}): Promise<RunFacetRow[]> {
    return this.#parts.store.runFacets(query)
  }

  async runValueFacets(
    axis: RunValueAxis,
    query: RunFacetQuery = {},
    options?: RunValueFacetOptions
  ): Promise<RunValueFacetRow[]> {
    return this.#parts.store.runValueFacets(checkedAxis(axis), query, options)
  }

  waitingFor(runIds: readonly string[]): Promise<Record<string, RunWaiting>> {
    return waitingFor(this.#parts.store, runIds)
  }

  getOpenCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return openRows(this.#parts.store, runId)
  }

  explainRun(runId: string): Promise<RunExplanation | null> {
    return explained(this.#parts, this.#config, runId)
  }

  signal(token: string, payload?: unknown): Promise<RunResult | null> {
    return this.#parts.signals.signal(token, payload)
  }

  async signalWithStart(
    workflow: WorkflowRef,
    input: unknown,
    runId: string,
    signal: { token: string; payload?: unknown },
    options?: StartOptions
  ): Promise<{ runId: string }> {
    const send = this.#parts.signals.prepare(signal.token, signal.payload)
    await this.start(workflow, input, runId, options)
    await send()
    return { runId }
  }

  publishEvent(name: string, payload: unknown, options?: PublishOptions): Promise<number> {
    return this.#parts.events.publish(name, payload, options)
  }

  update(runId: string, name: string, arg: unknown): Promise<UpdateResult> {
    return this.#parts.updates.update(runId, name, arg)
  }

  completeTask(runId: string, name: string, result: unknown): Promise<RunResult | null> {
    return this.#parts.external.completeTask(runId, name, result)
  }

  failTask(runId: string, name: string, error: string): Promise<RunResult | null> {
    return this.#parts.external.failTask(runId, name, error)
  }

  signalEntity(name: string, key: string, op: string, arg?: unknown): Promise<void> {
    return this.#parts.entities.signal(name, key, op, arg)
  }

  continue(runId: string): Promise<RunResult | null> {
    return this.#parts.external.continue(runId)
  }

  getRun(runId: string): Promise<WorkflowRun | null> {
    return this.#parts.store.getRun(runId)
  }

  async listRuns(query: RunQuery = {}): Promise<WorkflowRun[]> {
    checkQuery('listRuns', query)
    return this.#parts.store.listRuns(query)
  }

  async countRuns(query: RunFilter = {}): Promise<number> {
    checkQuery('countRuns', query)
    return this.#parts.store.countRuns(query)
  }

  listCheckpoints(runId: string): Promise<StepCheckpoint[]> {
    return this.#parts.store.listCheckpoints(runId)
  }

  getRunChildren(parentRunId: string): Promise<string[]> {
    return knownChildrenOf(this.#parts.store, parentRunId)
  }

  getEvent<TValue = unknown>(runId: string, key: string): Promise<TValue | undefined> {
    return this.#parts.signals.getEvent(runId, key) as Promise<TValue | undefined>
  }

  getEntityState<TState = unknown>(name: string, key: string): Promise<TState | undefined> {
    return this.#parts.entities.state(name, key) as Promise<TState | undefined>
  }

  subscribe(listener: EngineListener): () => void {
    return this.#parts.hub.subscribe(checkListener('subscribe', listener))
  }

  onDead(listener: (run: WorkflowRun) => void): () => void {
    return this.#parts.deadLetters.onDead(checkListener('onDead', listener))
  }

  onCancel(listener: (runId: string) => void): () => void {
    return this.#parts.canceller.onCancel(checkListener('onCancel', listener))
  }

  onEnqueued(listener: (runId: string) => void): () => void {
    return this.#parts.control.onEnqueued(checkListener('onEnqueued', listener))
  }

  onStalled(listener: StalledListener): () => void {
    return this.#parts.stalled.onStalled(checkListener('onStalled', listener))
  }

  onEvict(listener: EvictListener): () => void {
    return this.#parts.retention.onEvict(checkListener('onEvict', listener))
  }

  async unservedOnErrorRoutes(): Promise<{ workflow: string; route: OnErrorRoute }[]> {
    return this.#parts.failures.unserved()
  }

  use(interceptor: StepInterceptor): () => void {
    return this.#parts.interceptors.use(checkFunction('use: the interceptor', interceptor))
  }

  registerSchedules(
    schedules: readonly ScheduledWorkflow[],
    source: ScheduleSource = 'config'
  ): Promise<void> {
    return this.#parts.scheduler.add(schedules, source)
  }

  resolveKnownSchedules(): Promise<void> {
    return this.#parts.scheduler.resolve()
  }

  fireSchedules(options: FireOptions = {}): Promise<ScheduleReport> {
    const { clock, persistedSchedules } = this.#config
    const { now = clock(), schedules, persisted = persistedSchedules } = options
    return fire(this.#parts, now, { schedules, persisted })
  }

  listSchedules(nowMs = this.#config.clock()): Promise<ScheduleInfo[]> {
    return this.#parts.scheduler.list(nowMs)
  }

  setSchedulePaused(key: string, paused: boolean): boolean {
    const { scheduler, control } = this.#parts
    if (!scheduler.setPaused(key, paused)) return false
    control.schedulePaused(key, paused)
    return true
  }

  triggerSchedule(key: string, nowMs = this.#config.clock()): Promise<RunResult | null> {
    return this.#parts.scheduler.trigger(key, nowMs)
  }

  get schedules(): ScheduleClient {
    return this.#parts.schedules
  }

  runPending(nowMs = this.#config.clock()): Promise<RunResult[]> {
    return this.#parts.polls.pending(nowMs)
  }

  async runOne(runId: string): Promise<RunResult | null> {
    if (this.isDraining()) return null
    const report = await this.#parts.queue.run(runId)
    return report && !report.refused && !report.lost ? resultOfTurn(report) : null
  }

  recoverIncomplete(nowMs = this.#config.clock()): Promise<RunResult[]> {
    return this.#parts.polls.recovery(nowMs)
  }

  resumeDueTimers(nowMs = this.#config.clock()): Promise<RunResult[]> {
    return this.#parts.polls.timers(nowMs)
  }

  sweepTimeouts(now = this.#config.clock()): Promise<void> {
    return this.#parts.polls.timeouts(now)
  }

  sweepRetention(now = this.#config.clock()): Promise<number> {
    return this.#parts.retention.sweep(now)
  }

  sweepStalled(now = this.#config.clock()): Promise<StalledRunInfo[]> {
    return this.#parts.stalled.sweep(now)
  }

  onDue(listener: DueListener): () => void {
    return this.#parts.dueTimes.subscribe(listener)
  }

  consumeRuns(): (() => Promise<void>) | undefined {
    return this.#parts.runs.consume()
  }

  async runEnqueued(run: RunDispatch | string): Promise<void> {
    await this.#parts.wakes.taken(checkedRunId('runEnqueued', run))
  }

  knownGroups(extra?: string[]): string[] {
    return knownGroups(extra)
  }

  workerHealth(extra?: string[]): Promise<GroupHealth[]> {
    return workerHealth(this.#parts, extra)
  }

  startConsumers(): void {
    this.#parts.pool?.startConsumers()
  }

  beginDrain(spentMs?: number): void {
    this.#parts.drain.begin(spentMs)
  }

  isDraining(): boolean {
    return this.#parts.drain.draining
  }

  async drain(timeoutMs?: number): Promise<void> {
    await this.#parts.drain.drain(timeoutMs)
    this.#parts.warm.clear()
    this.#parts.heartbeats.close()
  }
}
