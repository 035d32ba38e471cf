/*
 * The root door of the package: everything public that needs no subpath, grouped by room. Importing it
 * loads no optional peer.
 */

export { VERSION } from './src/foundation/package_version.ts'

// AdonisJS binding
export { configure } from './configure.ts'
export { defineConfig } from './src/adonis/define_config.ts'
export type {
  ConsumersMode,
  DurableConfig,
  EmbeddedWorkerConfig,
  StandaloneConfig,
} from './src/adonis/define_config.ts'
export { admissions } from './src/adonis/admissions.ts'
export type { AdmissionFactory, RedisAdmissionConfig } from './src/adonis/admissions.ts'
export { controlPlanes } from './src/adonis/control_planes.ts'
export type { ControlPlaneFactory, RedisControlPlaneConfig } from './src/adonis/control_planes.ts'
export { stores } from './src/adonis/stores.ts'
export type { LucidStoreConfig, StoreFactory } from './src/adonis/stores.ts'
export { transports } from './src/adonis/transports.ts'
export type {
  FactoryContext,
  MemoryTransportConfig,
  TransportFactory,
} from './src/adonis/transports.ts'
export { stubsRoot } from './stubs/main.ts'

// Authoring
export { getCurrentWorkflowCtx } from './src/authoring/ambient.ts'
export { BaseWorkflow } from './src/authoring/base_workflow.ts'
export { OnDiagnostic, OnEvent, Scheduled } from './src/authoring/decorators.ts'
export { setWorkflowEngineResolver } from './src/authoring/engine_resolver.ts'
export type { WorkflowEngineResolver, WorkflowStarter } from './src/authoring/engine_resolver.ts'
export { attributesOf, readSearchAttributes } from './src/authoring/search_attributes.ts'
export type {
  InferSearchAttributes,
  SearchAttributesOf,
  SearchAttributesSchema,
} from './src/authoring/search_attributes.ts'
export { defineStep, Step } from './src/authoring/step.ts'
export { stepConfigOf, stepNameOf, stepSchemasOf } from './src/authoring/step_ref.ts'
export { validateStandard } from './src/authoring/validate_standard.ts'
export { workflowMeta, workflowName } from './src/authoring/workflow_ref.ts'

// Discovery
export type { Constructor, DiscoveryOptions, InstanceFactory } from './src/authoring/discovery.ts'
export type { Barrel } from './src/authoring/barrel.ts'
export {
  registerSteps,
  registerStepsFromBarrel,
  registerStepsFromDir,
} from './src/authoring/discover_steps.ts'
export {
  registerWorkflowClass,
  registerWorkflowsFromBarrel,
  registerWorkflowsFromDir,
} from './src/authoring/discover_workflows.ts'
export type { BarrelOptions, WorkflowRegistrar } from './src/authoring/discover_workflows.ts'

// Engine
export { WorkflowEngine } from './src/engine/workflow_engine.ts'
export type {
  CancelOptions,
  DeliveryApi,
  EngineApi,
  InsightApi,
  ListeningApi,
  OutsideApi,
  PublishOptions,
  OperatingApi,
  ReadApi,
  RedispatchResult,
  FireOptions,
  RegisteringApi,
  RunsApi,
  SchedulesApi,
  UpdateResult,
  UpdateValidator,
  UpkeepApi,
  WaitOptions,
} from './src/engine/api.ts'
export type { EngineLogger, RunDispatcher, WorkflowEngineDeps } from './src/engine/deps.ts'

// Flow control
export type { Admission, AdmissionBackend, AdmissionRequest, QueueConfig } from './src/flow/port.ts'

// Run detail
export { etagMatches, fanPageEtag, runDetailEtag } from './src/insight/etags.ts'
export { pageFanFromStore, summarizeRunFromStore } from './src/insight/fan_reads.ts'
export type { FanStore, RunSummary } from './src/insight/fan_reads.ts'
export { pageFan, summarizeFan, summarizeTimeline } from './src/insight/fans.ts'
export { childIdsOf } from './src/insight/lineage.ts'
export { waitingOf } from './src/insight/waiting.ts'
export { parentRunIdOf } from './src/foundation/ids.ts'
export { RUN_VALUE_FACET_SCAN } from './src/store/ports/aggregates.ts'
export {
  FAN_PAGE_DEFAULT_LIMIT,
  FAN_PAGE_MAX_LIMIT,
  FAN_SUMMARY_FAILURES,
  SUMMARY_CHILD_LIMIT,
} from './src/types/run_detail.ts'
export type {
  FanFailure,
  FanPage,
  FanPageQuery,
  FanSummary,
  PurgeOptions,
  RunDetail,
  RunDetailOptions,
  RunScope,
} from './src/types/run_detail.ts'

// Observability
export { attachDurableDiagnostics, collectMetrics } from './src/observability/main.ts'
export type {
  DurableDiagnostic,
  DurableEventSource,
  MetricsCollector,
  MetricsSnapshot,
} from './src/observability/main.ts'
export { asHeartbeat, withScheduleOrigin } from './src/foundation/origins.ts'
export { isRemoteEvent } from './src/wire/remote_events.ts'

// Runs, wherever they are kept
export {
  attachLiveness,
  DEFAULT_STALE_MS,
  filterStale,
  listRuns,
  parseDurationMs,
  renderRunsTable,
  retryRun,
  staleHint,
  StoreRunGateway,
} from './src/gateway/main.ts'
export type {
  DurableTopology,
  ListRunsOptions,
  RunGateway,
  RunGatewayEngine,
  RunLister,
  RunLiveness,
  StartRunOptions,
  TableOptions,
  TimelineReader,
} from './src/gateway/main.ts'
export type {
  Explanation,
  ExplanationCode,
  ExplanationText,
  NextCode,
  RemedyCode,
  RunExplanation,
  Sentence,
  SentencePart,
} from './src/types/explanation.ts'

// Worker loop
export { runTick, runWorkerLoop } from './src/loop/main.ts'
export type {
  TickEngine,
  TickError,
  TickOptions,
  TickResult,
  WorkerLogger,
  WorkerLoopEngine,
  WorkerLoopOptions,
} from './src/loop/main.ts'

// Schedules
export { resolveSchedules, runSchedules } from './src/schedules/scheduler.ts'
export type {
  ResolvedSchedule,
  ScheduleFailure,
  ScheduleReport,
  SchedulingEngine,
} from './src/schedules/scheduler.ts'
export type { ScheduleClient } from './src/schedules/schedule_client.ts'
export type {
  LazyWorkflowImport,
  NewSchedule,
  ScheduledInputOf,
  ScheduledRef,
  ScheduledWorkflow,
} from './src/types/scheduled_workflow.ts'

// Stores
export { InMemoryStateStore } from './src/store/memory/memory_store.ts'
export { LucidStateStore, onCorruptJsonColumn } from './src/store/lucid/lucid_store.ts'
export type {
  CorruptJsonColumn,
  CorruptJsonReporter,
  LucidStoreOptions,
} from './src/store/lucid/lucid_store.ts'
export { CodecStateStore } from './src/store/codec/codec_store.ts'
export type { CodecStoreOptions, PayloadCodec } from './src/store/codec/codec_store.ts'
export { createDurableTables, dropDurableTables } from './src/store/lucid/schema/ensure.ts'
export type { ProvisionOptions as CreateDurableTablesOptions } from './src/store/lucid/schema/ensure.ts'
export { DURABLE_SCHEMA_REVISION } from './src/store/lucid/schema/revision.ts'
export {
  DURABLE_JSON_COLUMNS,
  DURABLE_SCHEMA_META_TABLE,
  DURABLE_TABLES,
} from './src/store/lucid/schema/tables.ts'
export { fullStore } from './src/store/full_store.ts'
export type { FullStore, StoreCapabilities } from './src/store/full_store.ts'
export type { OptionalRoles, RequiredRoles, StateStore } from './src/store/state_store.ts'

// What stores take and answer
export type { CheckpointSettlement } from './src/store/ports/pending_settles.ts'
export type { ClaimedRun, DueClaim, RunClaim } from './src/store/ports/run_claims.ts'
export type { SingletonClaim, SingletonVerdict } from './src/store/ports/singleton_claims.ts'
export {
  singletonAdmissionDenialPatch,
  singletonAdmissionTags,
  withoutSingletonMarkers,
} from './src/store/ports/singleton_rules.ts'
export type { LeaseFence, StoreTransaction } from './src/store/ports/transactions.ts'
export type {
  EventClaim,
  OrderStamp,
  RowWrite,
  SettleTarget,
  SignalDelivery,
  SignalOutcome,
  SignalWait,
  TurnCommit,
  TurnSettle,
  TurnVerdict,
  WaitExpiry,
} from './src/store/ports/turn_commits.ts'
export type { WakeHint } from './src/store/ports/wake_hints.ts'

// Transports
export { RedisControlPlane } from './src/control_plane/redis/main.ts'
export type {
  AdonisRedisConnection,
  IoRedisClient,
  RedisClient,
  RedisControlPlaneOptions,
} from './src/control_plane/redis/main.ts'
export type { ControlPlane } from './src/control_plane/port.ts'
export { DbTransport } from './src/transport/db/db_transport.ts'
export type { DbTransportConfig } from './src/transport/db/db_transport.ts'
export {
  createDurableTransportTables,
  dropDurableTransportTables,
} from './src/transport/db/schema.ts'
export { BullMQTransport } from './src/transport/bullmq/bullmq_transport.ts'
export type {
  BullMQConnection,
  BullMQDeps,
  BullMQTransportConfig,
} from './src/transport/bullmq/bullmq_transport.ts'
export type {
  AdaptiveConcurrencyOptions,
  Concurrency,
} from './src/transport/concurrency_options.ts'
export { EventEmitterTransport } from './src/transport/event_emitter/event_emitter_transport.ts'
export type { EventEmitterTransportConfig } from './src/transport/event_emitter/event_emitter_transport.ts'
export { InMemoryTransport } from './src/transport/memory/memory_transport.ts'
export type { InMemoryTransportOptions } from './src/transport/memory/memory_transport.ts'
export { QueueTransport } from './src/transport/queue/queue_transport.ts'
export type {
  QueueAdapter,
  QueueJob,
  QueueTransportConfig,
  WorkerKeyStore,
} from './src/transport/queue/queue_transport.ts'
export { TransportPool } from './src/transport/pool.ts'
export type { PoolMember, TransportHandlers } from './src/transport/pool.ts'
export type { Transport, TransportErrorHandler } from './src/transport/ports.ts'
export { currentStep } from './src/transport/step_logger.ts'
export type {
  ControlMessage,
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
} from './src/wire/messages.ts'
export { runStepHandler } from './src/transport/run_step_handler.ts'

// Types
export type {
  BufferedEvent,
  CheckpointKind,
  CheckpointStatus,
  SignalWaiter,
  StepCheckpoint,
} from './src/types/checkpoint.ts'
export type {
  ChildCallOptions,
  DurableWebhook,
  DynamicWorkflowCtx,
  StepCallOptions,
  WorkflowCtx,
  WorkflowFn,
} from './src/types/ctx.ts'
export type { EntityConfig, EntityHandler } from './src/types/entity.ts'
export type {
  EngineEvent,
  EngineEventType,
  EngineListener,
  StepInterceptor,
  StepInvocation,
} from './src/types/engine_event.ts'
export type {
  EvictListener,
  RetentionConfig,
  RetentionPolicy,
  StalledListener,
  StalledRunInfo,
  StalledStep,
} from './src/types/housekeeping.ts'
export type {
  AllOptions,
  AllSettledOptions,
  AllStepsOptions,
  AllStepsSettledOptions,
  Settled,
} from './src/types/fan.ts'
export { runPageWindow } from './src/types/query.ts'
export type {
  AttributeFilter,
  AttributeOperator,
  CheckpointGroupStats,
  CheckpointKey,
  CheckpointQuery,
  CheckpointRange,
  CheckpointStats,
  RunFacetQuery,
  RunFacetRow,
  RunFilter,
  RunQuery,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from './src/types/query.ts'
export { TERMINAL_RUN_STATUSES } from './src/types/run.ts'
export type {
  RunResult,
  RunStatus,
  RunWaiting,
  SearchAttributes,
  TerminalRunStatus,
  WorkflowRun,
} from './src/types/run.ts'
export type {
  PersistedSchedule,
  ScheduleCadence,
  ScheduleInfo,
  ScheduleOptions,
  ScheduleRecord,
  ScheduleSource,
  WorkflowScheduleConfig,
} from './src/types/schedule.ts'
export { DURABLE_STEP_CONFIG, DURABLE_STEP_META, DURABLE_STEP_NAME } from './src/types/step.ts'
export type {
  BackoffStrategy,
  DurableStepMeta,
  StepConfig,
  StepDecoratorOptions,
  StepDispatchOpts,
  StepError,
  StepEvent,
  StepEventLevel,
  StepHandler,
  StepLogger,
  StepOptions,
  StepRef,
  StepSchemas,
  StepServer,
  StepUndo,
  SubProcessHandle,
  SubStepStatus,
  UndoOf,
} from './src/types/step.ts'
export type {
  ConcurrencyConfig,
  ConcurrencyQuota,
  DeadLetter,
  DiagnosticsTriggerConfig,
  EmitterTriggerConfig,
  OnErrorInput,
  OnErrorRoute,
  RegisterOptions,
  SingletonConfig,
  StartArguments,
  StartOptions,
  WorkflowClass,
  WorkflowDispatchOptions,
  WorkflowInputOf,
  WorkflowMeta,
  WorkflowOptions,
  WorkflowOutputOf,
  WorkflowRef,
  WorkflowTrigger,
} from './src/types/workflow.ts'

// Control flow and time
export {
  CONTROL_FLOW_SIGNAL,
  isContinueAsNew,
  isWorkflowControlFlowSignal,
} from './src/foundation/control_flow.ts'
export type { Cancel, Clock, Timers } from './src/foundation/clock.ts'
export { parseDuration } from './src/foundation/duration.ts'
export type { SeqRange } from './src/foundation/control_flow.ts'
export type { SchemaIssue, StandardSchemaV1 } from './src/foundation/standard_schema.ts'

// Errors
export {
  ConcurrencyLimitError,
  ContinueAsNew,
  DuplicateDiscoveryError,
  DuplicateRunError,
  DurableError,
  FatalError,
  GatherError,
  InvalidArgumentError,
  InvalidDurationError,
  InvariantError,
  LeaseLostError,
  NamespaceMismatch,
  NestedWorkflowCallError,
  NonDeterminismError,
  PayloadCodecError,
  RemoteStepError,
  RemoteStepTimeout,
  RemoteWorkflowTimeout,
  RunNotFoundError,
  ScheduleAlreadyExistsError,
  ScheduleNotFoundError,
  SchemaValidationError,
  SignalTimeoutError,
  SingletonQueueFullError,
  StepTimeoutError,
  StoreCapabilityError,
  StoreUnavailableError,
  TransportUnavailableError,
  UnstorableValueError,
  TransactionSpoiledError,
  WaitTimeoutError,
  WorkflowNotRegisteredError,
  WorkflowSuspended,
} from './src/errors.ts'
export type { GatherItemFailure, SchemaErrorCode } from './src/errors.ts'
