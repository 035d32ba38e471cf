/*
 * The API reference of level 0.51 as tables: what each published name must look like. A member is written
 * as TypeScript declares it. What a later release brings is listed too, under the reason it waits for.
 */

export type Later = 'reliability' | 'transports' | 'cluster' | 'observability'

/** Members of a type. */
export interface MemberTable {
  of: string
  members: string[]
  later?: Partial<Record<Later, string[]>>
}

export const MEMBERS: MemberTable[] = [
  {
    of: 'WorkflowCtx',
    members: [
      'readonly runId: string',
      'step<TInput, TOutput>(handler: StepRef<TInput, TOutput>, input: TInput, opts?: StepDispatchOpts & { compensate?: StepRef<StepUndo<TInput, TOutput>, unknown> | string }): Promise<TOutput>',
      'step<TOutput = unknown>(name: string, input: unknown, opts?: StepDispatchOpts & { compensate?: StepRef<StepUndo<unknown, TOutput>, unknown> | string }): Promise<TOutput>',
      'localStep<TOutput>(name: string, fn: (log: StepLogger) => Promise<TOutput>, options?: StepOptions): Promise<TOutput>',
      'transaction<TOutput>(name: string, fn: (tx: unknown) => Promise<TOutput>): Promise<TOutput>',
      'sleep(duration: string | number): Promise<void>',
      'sleepUntil(when: Date | number): Promise<void>',
      'now(): Promise<number>',
      'waitForSignal<TPayload>(token: string, opts?: { timeoutMs?: number }): Promise<TPayload>',
      'waitForEvent<TPayload>(name: string, opts?: { match?: Record<string, unknown>; timeoutMs?: number }): Promise<TPayload>',
      'setEvent<TValue>(key: string, value: TValue): Promise<void>',
      'onUpdate<TArg>(name: string, opts?: { timeoutMs?: number }): Promise<TArg>',
      'child<C extends WorkflowClass>(workflow: C, input: WorkflowInputOf<C>, options?: string | ChildCallOptions): Promise<WorkflowOutputOf<C>>',
      'child<TOutput>(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<TOutput>',
      'startChild<C extends WorkflowClass>(workflow: C, input: WorkflowInputOf<C>, options?: string | ChildCallOptions): Promise<string>',
      'startChild(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<string>',
      'all<C extends WorkflowClass>(workflow: C, inputs: WorkflowInputOf<C>[], opts?: AllOptions): Promise<WorkflowOutputOf<C>[]>',
      'all<TOutput = unknown>(workflow: string, inputs: unknown[], opts?: AllOptions): Promise<TOutput[]>',
      'all<TInput, TOutput>(step: StepRef<TInput, TOutput>, inputs: TInput[], opts?: AllStepsOptions): Promise<TOutput[]>',
      'allSettled<C extends WorkflowClass>(workflow: C, inputs: WorkflowInputOf<C>[], opts?: AllSettledOptions): Promise<Settled<WorkflowOutputOf<C>>[]>',
      'allSettled<TInput, TOutput>(step: StepRef<TInput, TOutput>, inputs: TInput[], opts?: AllStepsSettledOptions): Promise<Settled<TOutput>[]>',
      'allSettled(workflow: string, inputs: unknown[], opts?: AllSettledOptions): Promise<Settled<unknown>[]>',
      'task<TResult>(name: string, dispatch: () => Promise<void>, options?: StepOptions): Promise<TResult>',
      'webhook<TPayload>(): DurableWebhook<TPayload>',
      'callEntity<TResult = unknown>(name: string, key: string, op: string, arg?: unknown): Promise<TResult>',
      'signalEntity(name: string, key: string, op: string, arg?: unknown): Promise<void>',
      'patched(id: string): Promise<boolean>',
      'continueAsNew(input?: unknown): Promise<never>',
      'sideEffect<TValue>(fn: () => TValue | Promise<TValue>): Promise<TValue>',
      'upsertSearchAttributes(attrs: Partial<SearchAttributes>): Promise<void>',
      'breakpoint(label?: string): Promise<void>',
    ],
  },
  {
    of: 'DynamicWorkflowCtx',
    members: [
      'step(name: string, input: unknown, opts?: StepDispatchOpts): Promise<unknown>',
      'child(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<unknown>',
      'startChild(workflow: string, input: unknown, options?: string | ChildCallOptions): Promise<string>',
      'all(workflow: string, inputs: unknown[], opts?: AllOptions): Promise<unknown[]>',
      'allSettled(workflow: string, inputs: unknown[], opts?: AllSettledOptions): Promise<Settled<unknown>[]>',
      'sleep(duration: string | number): Promise<void>',
    ],
  },
  {
    of: 'StepLogger',
    members: [
      'debug(message: string, data?: unknown): void',
      'info(message: string, data?: unknown): void',
      'warn(message: string, data?: unknown): void',
      'error(message: string, data?: unknown): void',
      'heartbeat(progress?: unknown): void',
      "sub(name: string, status: 'ok' | 'failed' | 'skipped', message?: string, data?: unknown): void",
      "subEvent(e: { id: string; name: string; group?: string; phase?: string; status?: 'ok' | 'failed' | 'skipped'; message?: string; data?: unknown }): void",
      'subProcess<T>(name: string, body: (sp: SubProcessHandle) => Promise<T> | T, opts?: { group?: string; id?: string }): Promise<T>',
    ],
  },
  {
    of: 'typeof BaseWorkflow',
    members: [
      'workflow?: WorkflowOptions',
      'schedule?: WorkflowScheduleConfig | WorkflowScheduleConfig[]',
      'start<C extends WorkflowClass<{ id: string }, number>>(this: C, input: WorkflowInputOf<C>, opts?: WorkflowDispatchOptions): Promise<WorkflowOutputOf<C>>',
      'dispatch<C extends WorkflowClass<{ id: string }, number>>(this: C, input: WorkflowInputOf<C>, opts?: WorkflowDispatchOptions): Promise<{ runId: string }>',
    ],
  },
  {
    of: 'BaseWorkflow',
    members: [
      'run(ctx: WorkflowCtx, input: unknown): unknown',
      'deadLetter?(ctx: WorkflowCtx, dead: DeadLetter): unknown',
    ],
  },
  {
    of: 'WorkflowEngine',
    members: [
      'register(name: string, version: string, fn: WorkflowFn, opts?: RegisterOptions): void',
      'handle(name: string, fn: StepHandler): void',
      'registerQueue(config: QueueConfig): void',
      'registerEntity<S>(name: string, config: EntityConfig<S>): void',
      'registerUpdateValidator<TArg>(workflow: string, name: string, validate: UpdateValidator<TArg>): void',
      'start<C extends WorkflowClass>(workflow: C, input: WorkflowInputOf<C>, runId: string, opts?: StartOptions): Promise<RunResult>',
      'start<TInput>(workflow: string, input: TInput, runId: string, opts?: StartOptions): Promise<RunResult>',
      'waitForRun(runId: string, opts?: { timeoutMs?: number; terminal?: boolean }): Promise<RunResult>',
      'signal(token: string, payload: unknown): Promise<RunResult | null>',
      'signalWithStart(workflow: WorkflowRef, input: unknown, runId: string, signal: { token: string; payload?: unknown }, opts?: StartOptions): Promise<{ runId: string }>',
      'publishEvent(name: string, payload: unknown, opts?: { id?: string; buffer?: boolean }): Promise<number>',
      'update(runId: string, name: string, arg: unknown): Promise<UpdateResult>',
      'getEvent<TValue = unknown>(runId: string, key: string): Promise<TValue | undefined>',
      'completeTask(runId: string, name: string, result: unknown): Promise<RunResult | null>',
      'failTask(runId: string, name: string, error: string): Promise<RunResult | null>',
      'signalEntity(name: string, key: string, op: string, arg?: unknown): Promise<void>',
      'getEntityState<S = unknown>(name: string, key: string): Promise<S | undefined>',
      'cancel(runId: string, opts?: { compensate?: boolean }): Promise<RunResult | null>',
      "cancelWhere(filter: Omit<RunQuery, 'page' | 'size'>, opts?: { compensate?: boolean }): Promise<RunResult[]>",
      'resume(runId: string): Promise<RunResult>',
      'requeue(runId: string): Promise<RunResult | null>',
      'redispatchPending(runId: string): Promise<(RunResult & { redispatched: number }) | null>',
      'retryWithInput(runId: string, input: unknown, newRunId?: string): Promise<{ runId: string } | null>',
      'continue(runId: string): Promise<RunResult | null>',
      'deleteRun(runId: string): Promise<number>',
      'purgeRuns(scope: RunScope, opts?: { batchSize?: number; cancelLive?: boolean; children?: boolean }): Promise<number>',
      'purgeNamespace(namespace: string, opts?: { batchSize?: number; cancelLive?: boolean }): Promise<number>',
      'getRun(runId: string): Promise<WorkflowRun | null>',
      'listRuns(query: RunQuery): Promise<WorkflowRun[]>',
      "countRuns(query: Omit<RunQuery, 'page' | 'size'>): Promise<number>",
      'listCheckpoints(runId: string): Promise<StepCheckpoint[]>',
      'getRunDetail(runId: string, options?: RunDetailOptions): Promise<RunDetail | null>',
      'getFanMembers(runId: string, group: string, query: FanPageQuery): Promise<FanPage | null>',
      'runFacets(query: RunFacetQuery): Promise<RunFacetRow[]>',
      'runValueFacets(axis: RunValueAxis, query: RunFacetQuery, opts?: RunValueFacetOptions): Promise<RunValueFacetRow[]>',
      'getRunChildren(parentRunId: string): Promise<string[]>',
      'listSchedules(now?: number): Promise<ScheduleInfo[]>',
      'setSchedulePaused(key: string, paused: boolean): boolean',
      'triggerSchedule(key: string, now?: number): Promise<RunResult | null>',
      'readonly schedules: ScheduleClient',
      'subscribe(listener: EngineListener): () => void',
      'onDead(listener: (run: WorkflowRun) => void): () => void',
      'unservedOnErrorRoutes(): Promise<{ workflow: string; route: OnErrorRoute }[]>',
      'use(interceptor: StepInterceptor): () => void',
      'runPending(nowMs?: number): Promise<RunResult[]>',
      'runOne(runId: string): Promise<RunResult | null>',
      'recoverIncomplete(nowMs?: number): Promise<RunResult[]>',
      'resumeDueTimers(nowMs?: number): Promise<RunResult[]>',
      'sweepTimeouts(now?: number): Promise<void>',
      'onEnqueued(listener: (runId: string) => void): () => void',
      'onCancel(listener: (runId: string) => void): () => void',
      'onStalled(listener: (info: StalledRunInfo) => void): () => void',
      'onEvict(listener: (run: WorkflowRun, checkpoints: StepCheckpoint[]) => void | Promise<void>): () => void',
      'sweepRetention(now?: number): Promise<number>',
      'sweepStalled(now?: number): Promise<StalledRunInfo[]>',
      'consumeRuns(): (() => Promise<void>) | undefined',
      'runEnqueued(run: RunDispatch | string): Promise<void>',
      'startConsumers(): void',
      'beginDrain(spentMs?: number): void',
      'isDraining(): boolean',
      'drain(timeoutMs?: number): Promise<void>',
      'workerHealth(extra?: string[]): Promise<GroupHealth[]>',
      'knownGroups(extra?: string[]): string[]',
    ],
    later: {
      transports: [
        'registerRemote(name: string, version: string, opts: never): void',
        'remote(name: string, opts: never): void',
      ],
      cluster: [
        'workflowDirectory(): Promise<unknown>',
        'announcedWorkflows(): Promise<unknown[]>',
      ],
    },
  },
  {
    of: 'RunGateway',
    members: [
      'topology(): DurableTopology',
      'getRun(runId: string): Promise<WorkflowRun | null>',
      'listRuns(query: RunQuery): Promise<WorkflowRun[]>',
      'getCheckpoints(runId: string): Promise<StepCheckpoint[]>',
      'getRunChildren(runId: string): Promise<string[]>',
      'getRunDetail?(runId: string, options?: RunDetailOptions): Promise<RunDetail | null>',
      'getFanMembers?(runId: string, group: string, query: FanPageQuery): Promise<FanPage | null>',
      'getSearchAttributes(runId: string): Promise<SearchAttributes | undefined>',
      'workerHealth(): Promise<GroupHealth[]>',
      'start(workflow: WorkflowRef, input: unknown, opts?: StartRunOptions): Promise<RunResult>',
      'signal(runId: string, signal: string, payload?: unknown): Promise<RunResult | null>',
      'cancel(runId: string, opts?: { compensate?: boolean }): Promise<RunResult | null>',
      'redispatchPending(runId: string): Promise<(RunResult & { redispatched: number }) | null>',
      'retry?(runId: string): Promise<RunResult | null>',
      'continue?(runId: string): Promise<RunResult | null>',
      'retryWithInput?(runId: string, input: unknown): Promise<{ runId: string } | null>',
      'runFacets?(query: RunFacetQuery): Promise<RunFacetRow[]>',
      'runValueFacets?(axis: RunValueAxis, query: RunFacetQuery, opts?: RunValueFacetOptions): Promise<RunValueFacetRow[]>',
      'waitingFor?(runIds: string[]): Promise<Record<string, RunWaiting>>',
      'subscribe(runId: string, onEvent: (event: EngineEvent) => void): () => void',
    ],
  },
  {
    of: 'FatalError',
    members: ['readonly code: string', 'readonly details?: unknown', 'readonly message: string'],
  },
  { of: 'SignalTimeoutError', members: ['readonly token: string', 'readonly timeoutMs: number'] },
  {
    of: 'NonDeterminismError',
    members: ['readonly code: string', 'readonly runId: string', 'readonly seq: number'],
  },
  {
    of: 'NestedWorkflowCallError',
    members: ['readonly runId: string', 'readonly primitive: string', 'readonly step: string'],
  },
  {
    of: 'SchemaValidationError',
    members: [
      'readonly code: string',
      'readonly issues: { message: string; path: string[] }[]',
      'readonly details?: unknown',
    ],
  },
  {
    of: 'ConcurrencyLimitError',
    members: [
      'readonly workflow: string',
      'readonly key: string',
      'readonly limit: number',
      'readonly active: number',
    ],
  },
  {
    of: 'SingletonQueueFullError',
    members: [
      'readonly workflow: string',
      'readonly key: string',
      'readonly maxQueueDepth: number',
    ],
  },
  { of: 'GatherError', members: ['readonly failures: GatherItemFailure[]'] },
  { of: 'RemoteStepTimeout', members: ['readonly stepId: string', 'readonly timeoutMs: number'] },
  { of: 'RemoteStepError', members: ['readonly stepError?: StepError'] },
  {
    of: 'RemoteWorkflowTimeout',
    members: ['readonly taskId: string', 'readonly timeoutMs: number'],
  },
  {
    of: 'DuplicateDiscoveryError',
    members: ['readonly kind: string', 'readonly id: string', 'readonly files: readonly string[]'],
  },
  { of: 'ScheduleNotFoundError', members: ['readonly scheduleId: string'] },
  { of: 'ScheduleAlreadyExistsError', members: ['readonly scheduleId: string'] },
  { of: 'WorkflowSuspended', members: ['readonly wakeAt?: number', 'readonly waitSeqs?: unknown'] },
  { of: 'ContinueAsNew', members: ['readonly input: unknown'] },
]

/** Values of the root door, and the type each must be usable as. */
export interface ValueTable {
  table: string
  values: Record<string, string>
  later?: Partial<Record<Later, string[]>>
}

export const VALUES: ValueTable[] = [
  {
    table: 'Authoring',
    values: {
      setWorkflowEngineResolver: '(resolver: WorkflowEngineResolver | undefined) => void',
      getCurrentWorkflowCtx: '() => WorkflowCtx | undefined',
      workflowName: '(ref: WorkflowRef) => string',
      workflowMeta: '(target: unknown) => WorkflowMeta | undefined',
      OnEvent: '(config: EmitterTriggerConfig) => ClassDecorator',
      OnDiagnostic: '(config: DiagnosticsTriggerConfig) => ClassDecorator',
      Scheduled: '(config: WorkflowScheduleConfig | WorkflowScheduleConfig[]) => ClassDecorator',
      Step: '(nameOrOptions?: string | StepDecoratorOptions) => unknown',
      defineStep:
        "<TInput, TOutput>(name: string, fn: (input: TInput, log: StepLogger) => TOutput | Promise<TOutput>, config?: Omit<StepDecoratorOptions, 'name'>) => StepRef<TInput, TOutput>",
      validateStandard:
        "(schema: StandardSchemaV1, value: unknown, label: string, code?: 'invalid_input' | 'invalid_output' | 'schema_validation') => Promise<unknown>",
      stepNameOf: '(ref: unknown) => string | undefined',
      stepConfigOf: '(ref: unknown) => StepConfig | undefined',
      attributesOf: '(workflow: never, run: WorkflowRun) => unknown',
      readSearchAttributes: '(schema: StandardSchemaV1, run: WorkflowRun) => unknown',
      currentStep: '() => StepLogger | undefined',
      isWorkflowControlFlowSignal: '(error: unknown) => boolean',
      CONTROL_FLOW_SIGNAL: 'symbol',
    },
  },
  {
    table: 'Errors',
    values: {
      'FatalError': 'new (message: string, code?: string, details?: unknown) => FatalError',
      'SignalTimeoutError': 'abstract new (...args: never) => Error',
      'NonDeterminismError': 'abstract new (...args: never) => Error',
      'NestedWorkflowCallError': 'abstract new (...args: never) => FatalError',
      'SchemaValidationError': 'abstract new (...args: never) => FatalError',
      'SchemaValidationError.code': 'string',
      'ConcurrencyLimitError': 'abstract new (...args: never) => Error',
      'SingletonQueueFullError': 'abstract new (...args: never) => Error',
      'GatherError': 'abstract new (...args: never) => Error',
      'RemoteStepTimeout': 'abstract new (...args: never) => Error',
      'RemoteStepError': 'abstract new (...args: never) => Error',
      'RemoteWorkflowTimeout': 'abstract new (...args: never) => Error',
      'NamespaceMismatch': 'abstract new (...args: never) => Error',
      'DuplicateDiscoveryError': 'abstract new (...args: never) => Error',
      'ScheduleAlreadyExistsError': 'abstract new (...args: never) => Error',
      'ScheduleNotFoundError': 'abstract new (...args: never) => Error',
      'ContinueAsNew': 'abstract new (...args: never) => { input: unknown }',
      'WorkflowSuspended':
        'abstract new (...args: never) => { wakeAt?: number; waitSeqs?: unknown }',
    },
    later: {
      cluster: [
        'WorkflowStepFailedError',
        'WorkflowGatherFailedError',
        'WorkflowNondeterminismError',
        'WorkflowTurnCancelled',
      ],
    },
  },
  {
    table: 'Discovery',
    values: {
      registerWorkflowsFromDir:
        '(engine: WorkflowEngine, dir: string | string[], factory?: InstanceFactory) => Promise<WorkflowMeta[]>',
      registerWorkflowsFromBarrel:
        '(engine: WorkflowEngine, barrel: Record<string, () => Promise<unknown>>, factory?: InstanceFactory, options?: { appRoot?: string | URL }) => Promise<WorkflowMeta[]>',
      registerStepsFromBarrel:
        '(server: StepServer, barrel: Record<string, () => Promise<unknown>>) => Promise<DurableStepMeta[]>',
      registerStepsFromDir: '(server: StepServer, dir: string) => Promise<DurableStepMeta[]>',
      registerWorkflowClass:
        '(engine: WorkflowEngine, cls: WorkflowClass, factory?: InstanceFactory) => unknown',
      registerSteps: '(server: StepServer, exports: unknown[]) => unknown',
      parseDuration: '(duration: string | number) => number',
    },
  },
  {
    table: 'Run detail',
    values: {
      summarizeTimeline:
        '(timeline: StepCheckpoint[], over: number) => { timeline: StepCheckpoint[]; fans: FanSummary[] }',
      summarizeFan: '(group: string, members: StepCheckpoint[]) => FanSummary',
      pageFan:
        '(timeline: StepCheckpoint[], group: string, query: FanPageQuery) => FanPage | null | undefined',
      summarizeRunFromStore: '(store: never, runId: string, over: number) => unknown',
      pageFanFromStore:
        '(store: never, runId: string, group: string, query: FanPageQuery) => unknown',
      etagMatches: '(ifNoneMatch: string | undefined, etag: string) => boolean',
      runDetailEtag: '(...args: never[]) => string',
      fanPageEtag: '(...args: never[]) => string',
      childIdsOf: '(checkpoints: StepCheckpoint[]) => string[]',
      parentRunIdOf: '(runId: string) => string | undefined',
      SUMMARY_CHILD_LIMIT: '200',
      FAN_SUMMARY_FAILURES: '20',
      RUN_VALUE_FACET_SCAN: 'number',
      runPageWindow: '(query: RunQuery) => { limit: number | undefined; offset: number }',
    },
  },
  {
    table: 'Binding, drivers and loop',
    values: {
      'defineConfig': '(config: DurableConfig) => DurableConfig',
      'transports.memory': '() => TransportFactory',
      'transports.eventEmitter': '() => TransportFactory',
      'transports.queue': '(config?: QueueTransportConfig) => TransportFactory',
      'transports.db': '(config?: DbTransportConfig) => TransportFactory',
      'transports.bullmq': '(config: BullMQTransportConfig) => TransportFactory',
      'stores.lucid': '(config?: LucidStoreConfig) => StoreFactory',
      'controlPlanes.redis': '(config?: RedisControlPlaneConfig) => ControlPlaneFactory',
      'admissions.redis': '(config?: RedisAdmissionConfig) => AdmissionFactory',
      'runTick':
        '(engine: WorkflowEngine, options?: { now?: number; schedules?: ScheduledWorkflow[] }) => Promise<TickResult>',
      'runSchedules':
        '(engine: WorkflowEngine, schedules: ScheduledWorkflow[], nowMs: number, opts?: object) => Promise<unknown>',
      'resolveSchedules': '(schedules: ScheduledWorkflow[]) => Promise<ScheduledWorkflow[]>',
      'runWorkerLoop': '(engine: WorkflowEngine, options: WorkerLoopOptions) => Promise<number>',
      'TERMINAL_RUN_STATUSES': 'readonly TerminalRunStatus[]',
    },
    later: {
      cluster: ['ProxyRunGateway', 'RunRequestResponder', 'signTenantToken', 'hmacTenantVerifier'],
    },
  },
  {
    table: 'Observability building blocks',
    values: {
      collectMetrics:
        '(engine: WorkflowEngine) => { prometheus(): string; snapshot(): MetricsSnapshot; stop(): void }',
      attachDurableDiagnostics:
        '(engine: DurableEventSource, options?: { includeRemote?: boolean }) => () => void',
      isRemoteEvent: '(event: EngineEvent) => boolean',
      withScheduleOrigin: '<T>(fn: () => T) => T',
      asHeartbeat: '<T>(fn: () => T) => T',
    },
  },
  {
    table: 'Command building blocks',
    values: {
      StoreRunGateway:
        "new (engine: WorkflowEngine, options?: { role?: 'standalone' | 'control-plane' }) => RunGateway",
      listRuns:
        '(source: RunLister, opts: { status?: RunStatus; statuses?: RunStatus[]; workflow?: string; limit?: number }) => Promise<WorkflowRun[]>',
      attachLiveness:
        '(source: WorkflowEngine, runs: WorkflowRun[], now?: number) => Promise<RunLiveness[]>',
      filterStale: '(liveRuns: RunLiveness[], thresholdMs?: number) => RunLiveness[]',
      DEFAULT_STALE_MS: 'number',
      renderRunsTable: '(liveRuns: RunLiveness[]) => string',
      staleHint: '(runId: string) => string',
      parseDurationMs: '(input: string) => number | undefined',
      retryRun: '(engine: WorkflowEngine, runId: string) => Promise<RunResult | null>',
    },
  },
]

/** Types of the root door: each is the same as what is written here. */
export const TYPES: Record<string, string> = {
  'BackoffStrategy': "'fixed' | 'exp'",
  'StepUndo<1, 2>': '{ input: 1; output: 2 }',
  'UndoOf<(input: 1) => Promise<2>>': 'StepUndo<1, 2>',
  'AllOptions': "{ mode?: 'waitAll' | 'failFast'; concurrency?: number }",
  'AllStepsOptions':
    "Omit<StepDispatchOpts, 'queue' | 'timeoutMs' | 'pickupTimeoutMs'> & { mode?: 'waitAll' | 'failFast'; concurrency?: number }",
  'AllSettledOptions': "Omit<AllOptions, 'mode'>",
  'AllStepsSettledOptions': "Omit<AllStepsOptions, 'mode'>",
  'Settled<1>':
    "{ status: 'fulfilled'; value: 1 } | { status: 'rejected'; id: string; error: string; code?: string; details?: unknown }",
  'ChildCallOptions': '{ childId?: string; priority?: number }',
  'DurableWebhook<1>':
    '{ readonly token: string; readonly url?: string; wait(opts?: { timeoutMs?: number }): Promise<1> }',
  'EmitterTriggerConfig': '{ event: string }',
  'DiagnosticsTriggerConfig': '{ lib: string; event?: string | RegExp }',
  'OnErrorRoute': '{ code?: string; workflow: string }',
  'OnErrorInput<1>': '{ runId: string; workflow: string; input: 1; error: StepError }',
  'DeadLetter<1>': '{ deadRunId: string; workflow: string; input: 1; error?: StepError }',
  'RunStatus':
    "'pending' | 'running' | 'suspended' | 'blocked' | 'completed' | 'failed' | 'cancelled' | 'dead'",
  'TerminalRunStatus': "'completed' | 'failed' | 'cancelled' | 'dead'",
  "StepCheckpoint['status']": "'pending' | 'running' | 'completed' | 'failed'",
  'ConcurrencyQuota': '{ key: string; limit: number; countStatuses?: RunStatus[] }',
}

/** What must be found wrong: a member that is missing, takes less, takes something else, answers another type. */
export const WRONG: Pick<MemberTable, 'of' | 'members'>[] = [
  {
    of: 'WorkflowCtx',
    members: [
      'sleeps(duration: string): Promise<void>',
      'sleep(duration: string | number | Date): Promise<void>',
      'sleepUntil(when: string): Promise<void>',
      'now(): Promise<string>',
      'readonly runId: number',
    ],
  },
  {
    of: 'WorkflowEngine',
    members: ['getRun(runId: string | number): Promise<WorkflowRun | null>'],
  },
]

/** Names of all members of a type. */
export const KEYS: Record<string, string[]> = {
  ScheduleClient: [
    'create',
    'upsert',
    'get',
    'list',
    'pause',
    'resume',
    'trigger',
    'delete',
    'tick',
  ],
  StepDispatchOpts: [
    'queue',
    'priority',
    'fairnessKey',
    'transport',
    'retries',
    'backoff',
    'backoffMs',
    'backoffMaxMs',
    'jitter',
    'timeoutMs',
    'pickupTimeoutMs',
    'requires',
  ],
  StepOptions: [
    'retries',
    'backoff',
    'backoffMs',
    'backoffMaxMs',
    'jitter',
    'timeoutMs',
    'pickupTimeoutMs',
    'compensate',
    'requires',
  ],
  WorkflowOptions: [
    'name',
    'version',
    'tags',
    'executionTimeout',
    'onEvent',
    'singleton',
    'concurrency',
    'origin',
    'onError',
    'deadLetterWorkflow',
    'inputSchema',
    'searchAttributes',
  ],
  StepDecoratorOptions: [
    'name',
    'input',
    'output',
    'retries',
    'backoff',
    'backoffMs',
    'backoffMaxMs',
    'jitter',
    'timeoutMs',
    'pickupTimeoutMs',
    'requires',
  ],
  StartOptions: [
    'version',
    'tags',
    'searchAttributes',
    'priority',
    'namespace',
    'startAt',
    'origin',
    'concurrency',
  ],
  RegisterOptions: [
    'tags',
    'singleton',
    'concurrency',
    'executionTimeout',
    'validateInput',
    'inputSchema',
    'searchAttributesSchema',
    'onEvent',
    'eventBatch',
    'requires',
    'origin',
    'onError',
    'deadLetterWorkflow',
  ],
  RunDetail: ['run', 'timeline', 'children', 'fans', 'childCount', 'etag', 'notModified'],
  RunDetailOptions: ['summarizeFansOver', 'ifNoneMatch'],
  FanPageQuery: ['offset', 'limit', 'failedOnly', 'ifNoneMatch'],
  FanPage: ['items', 'total', 'etag', 'notModified'],
  FanSummary: [
    'group',
    'label',
    'firstSeq',
    'lastSeq',
    'size',
    'total',
    'notStarted',
    'failFast',
    'counts',
    'startedAt',
    'finishedAt',
    'failures',
  ],
}
