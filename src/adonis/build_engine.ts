/*
 * Builds what one process runs on, in order: store, its schema, transports, engine. What was opened is
 * closed again when a later part fails.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import type { EngineLogger, RunDispatcher } from '../engine/deps.ts'
import { WorkflowEngine } from '../engine/workflow_engine.ts'
import { bestEffort } from '../foundation/failure.ts'
import { bootNonce } from '../foundation/ids.ts'
import type { ControlPlane } from '../control_plane/port.ts'
import type { AdmissionBackend } from '../flow/port.ts'
import type { StateStore } from '../store/state_store.ts'
import type { PoolMember } from '../transport/pool.ts'
import type { DurableConfig } from './define_config.ts'
import { withDeferredSchema } from './deferred_schema.ts'
import type { FactoryContext } from './factory_context.ts'
import { contextFromSlot, rehydrateFromSlot, traceparentFromSlot } from './slots.ts'
import { defaultStore } from './stores.ts'
import { transports } from './transports.ts'

/** What a process holds until it shuts down. */
export interface Built {
  engine: WorkflowEngine
  store: StateStore
  /** The first one is the primary transport. */
  members: PoolMember[]
  controlPlane?: ControlPlane
  admission?: AdmissionBackend
}

export interface BuildOptions {
  app: ApplicationService
  config: DurableConfig
  logger: EngineLogger
  /** True while a worker loop drives this process whatever `drive` says. */
  isDriving: () => boolean
}

const IN_PROCESS = 'memory'

/** Rejects with whatever a factory, the provisioning or the engine throws; nothing stays open then. */
export async function buildEngine(options: BuildOptions): Promise<Built> {
  const { app, config } = options
  const context: FactoryContext = { app }
  const members: PoolMember[] = []
  let store: StateStore | undefined
  let controlPlane: ControlPlane | undefined
  let admission: AdmissionBackend | undefined
  try {
    store = await buildStore(config, context)
    if (config.autoSchema !== false) {
      if (isPassing(app)) store = withDeferredSchema(store)
      else await store.ensureSchema?.()
    }
    for (const id of transportIds(config)) {
      const transport = await resolve(config.transports?.[id] ?? transports.memory(), context)
      members.push({ id, transport })
    }
    if (defersConsumers(app, config)) {
      for (const { transport } of members) transport.deferConsumers?.()
    }
    controlPlane = config.controlPlane && (await resolve(config.controlPlane, context))
    admission = config.admission && (await resolve(config.admission, context))
    const engine = createEngine(options, { store, members, controlPlane, admission })
    for (const queue of config.queues ?? []) engine.registerQueue(queue)
    return { engine, store, members, controlPlane, admission }
  } catch (error) {
    await closeAll(members, store, controlPlane, admission)
    throw error
  }
}

function createEngine(
  { config, logger, isDriving }: BuildOptions,
  { store, members, controlPlane, admission }: Omit<Built, 'engine'>
): WorkflowEngine {
  const engine: WorkflowEngine = new WorkflowEngine({
    store,
    transports: members,
    controlPlane,
    admission,
    logger,
    // Two processes with one name must not pass each other's fence.
    instanceId: config.instanceId && `${config.instanceId}-${bootNonce()}`,
    namespace: config.namespace || 'default',
    traceparent: config.traceparent ?? traceparentFromSlot,
    context: contextFromSlot,
    rehydrate: rehydrateFromSlot,
    runDispatcher:
      config.runDispatcher ??
      (config.drive === false && !haveRunQueue(members)
        ? onlyWhile(isDriving, () => engine.runPending())
        : undefined),
    // Runs are taken from the run queue once their workflows are registered.
    drive: false,
    continuations: config.continuations ?? {},
    leaseMs: config.leaseMs,
    maxRecoveryAttempts: config.maxRecoveryAttempts,
    deadLetterWorkflow: config.deadLetterWorkflow,
    reconcileMs: config.reconcileMs,
    remoteRedispatchMs: config.remoteRedispatchMs,
    remoteRedispatchMax: config.remoteRedispatchMax,
    timerBatchSize: config.timerBatchSize,
    compensationRetries: config.compensationRetries,
    compensationTimeoutMs: config.compensationTimeoutMs,
    trackStepStart: config.trackStepStart,
    maxPayloadBytes: config.maxPayloadBytes,
    scopeReads: config.scopeReads,
    persistedSchedules: config.persistedSchedules,
    webhookUrl: config.webhookUrl,
    eventBufferTtl: config.eventBufferTtl,
    retention: config.retention,
    stalledAfter: config.stalledAfter,
  })
  return engine
}

/** Some transport carries runs to whoever drives them. */
const haveRunQueue = (members: readonly PoolMember[]): boolean =>
  members.some(({ transport }) => transport.dispatchRun && transport.onRun)

/** Leaves runs pending for another process, except while a loop drives this one. */
function onlyWhile(isDriving: () => boolean, drive: () => unknown): RunDispatcher {
  const dispatch = () => (isDriving() ? drive() : undefined)
  return { dispatch, enqueued: dispatch }
}

function buildStore(config: DurableConfig, context: FactoryContext): Promise<StateStore> {
  const chosen = config.store === undefined ? undefined : config.stores?.[config.store]
  return resolve(chosen ?? defaultStore, context)
}

/** A factory is called; an instance is taken as it is. */
async function resolve<T extends object>(
  given: T | ((context: FactoryContext) => T | Promise<T>),
  context: FactoryContext
): Promise<T> {
  return typeof given === 'function' ? given(context) : given
}

function transportIds({ transport = IN_PROCESS, transportPool = [] }: DurableConfig): string[] {
  return [...new Set([transport, ...transportPool])]
}

/** A process that comes for something else: a console command, a REPL, an application only warmed up. */
function isPassing(app: ApplicationService): boolean {
  const environment = app.getEnvironment?.()
  return environment === 'console' || environment === 'repl' || app.getMode?.() === 'warmup'
}

function defersConsumers(app: ApplicationService, { consumers = 'auto' }: DurableConfig): boolean {
  return consumers === 'never' || (consumers === 'auto' && isPassing(app))
}

async function closeAll(
  members: PoolMember[],
  store: StateStore | undefined,
  controlPlane: ControlPlane | undefined,
  admission: AdmissionBackend | undefined
): Promise<void> {
  const because = 'the failure that ended the build is reported'
  for (const { transport } of members) {
    await bestEffort(because, Promise.resolve(transport.close?.()))
  }
  await bestEffort(because, Promise.resolve(controlPlane?.close?.()))
  await bestEffort(because, Promise.resolve(admission?.close?.()))
  await bestEffort(because, Promise.resolve(store?.close?.()))
}
