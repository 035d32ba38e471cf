/*
 * The composition root: builds the collaborators in order and connects them. Nobody receives the engine;
 * each receives ports and narrow interfaces.
 */
import { InvalidArgumentError, StoreCapabilityError } from '../errors.ts'
import { systemRandom } from '../foundation/backoff.ts'
import { bestEffort } from '../foundation/failure.ts'
import { InMemoryAdmissionBackend } from '../flow/memory_admission.ts'
import { Quotas } from '../flow/quotas.ts'
import { Singletons } from '../flow/singletons.ts'
import { StepQueues } from '../flow/step_queues.ts'
import { ScheduleClient } from '../schedules/schedule_client.ts'
import { Firing, Scheduler } from '../schedules/scheduler.ts'
import { fullStore, type FullStore } from '../store/full_store.ts'
import { SCHEDULE_MEMBERS } from '../store/ports/members.ts'
import { TransportPool } from '../transport/pool.ts'
import { LeaseKeeper } from '../turns/lease_keeper.ts'
import { SILENT_LEASES, type TurnNeeds } from '../turns/needs.ts'
import { RunTurn } from '../turns/run_turn.ts'
import { TurnQueue } from '../turns/turn_queue.ts'
import { WarmRuns } from '../turns/warm_runs.ts'
import { AfterEffects } from './after_effects.ts'
import type { EngineConfig } from './deps.ts'
import { Accumulators } from './builtins/accumulators.ts'
import { Entities } from './builtins/entities.ts'
import { EntityLinks } from './builtins/entity_links.ts'
import { Drain } from './drain.ts'
import { EventHub } from './event_hub.ts'
import { Events } from './delivery/events.ts'
import { EventSubscribers } from './delivery/event_subscribers.ts'
import { External } from './delivery/external.ts'
import { Heartbeats } from './delivery/heartbeats.ts'
import { Results } from './delivery/results.ts'
import { SettledSteps } from './delivery/settled_steps.ts'
import { Signals } from './delivery/signals.ts'
import { Updates } from './delivery/updates.ts'
import { InterceptorChain } from './interceptors.ts'
import { Registry } from './registry.ts'
import { Canceller } from './runs/canceller.ts'
import { DeadLetters } from './runs/dead_letters.ts'
import { Eraser } from './runs/eraser.ts'
import { LostSends } from './runs/lost_sends.ts'
import { FailureRoutes } from './runs/failure_routes.ts'
import { Operator } from './runs/operator.ts'
import { Redispatcher } from './runs/redispatcher.ts'
import { RunLeases } from './runs/run_leases.ts'
import { Starter } from './runs/starter.ts'
import { RunWaiter } from './runs/waiter.ts'
import { PoolSender } from './sender.ts'
import { unservedWarning } from './unserved.ts'
import { KeptRuns } from './upkeep/kept_runs.ts'
import { LostHandlers } from './upkeep/lost_handlers.ts'
import { DueTimes } from './upkeep/due_times.ts'
import { Polls } from './upkeep/polls.ts'
import { Recovery } from './upkeep/recovery.ts'
import { Retention } from './upkeep/retention.ts'
import { StalledRuns } from './upkeep/stalled.ts'
import { Timeouts } from './upkeep/timeouts.ts'
import { Wakes } from './wakes.ts'

export interface Collaborators {
  store: FullStore
  registry: Registry
  hub: EventHub
  interceptors: InterceptorChain
  pool?: TransportPool
  starter: Starter
  waiter: RunWaiter
  canceller: Canceller
  failures: FailureRoutes
  deadLetters: DeadLetters
  queues: StepQueues
  operator: Operator
  redispatcher: Redispatcher
  eraser: Eraser
  retention: Retention
  stalled: StalledRuns
  signals: Signals
  events: Events
  updates: Updates
  external: External
  entities: Entities
  polls: Polls
  dueTimes: DueTimes
  drain: Drain
  queue: TurnQueue
  warm: WarmRuns
  heartbeats: Heartbeats
  scheduler: Scheduler
  schedules: ScheduleClient
}

export function assemble(config: EngineConfig): Collaborators {
  const { clock, timers, namespace, turns: settings } = config
  const report = (error: unknown, what: string) => config.logger.error(`durable: ${what}`, error)
  const store = fullStore(config.store)
  if (config.persistedSchedules) requireScheduleRows(store)
  const registry = new Registry()
  const hub = new EventHub({ clock, report })
  const interceptors = new InterceptorChain()
  const settled = new SettledSteps()
  const pool = config.members.length > 0 ? new TransportPool(config.members) : undefined
  const sender = new PoolSender({ pool, settled, onBeat: (...how) => heartbeats.listen(...how) })
  const dueTimes = new DueTimes(clock)
  const singletons = new Singletons({
    store,
    clock,
    random: systemRandom,
    warn: config.announce,
  })
  const queues = new StepQueues({
    backend: config.admission ?? new InMemoryAdmissionBackend({ clock }),
    store,
    clock,
    patienceMs: SILENT_LEASES * settings.leaseMs,
    isRunning: (stepId) => sender.isRunning(stepId),
    wake: (runId) => wakes.newsInBackground(runId),
    inBackground: (work) => void drain.track(bestEffort('a review finds the slot', work, report)),
    report,
  })
  hub.subscribe(({ type, runId }) => {
    if (type === 'run.completed' || type === 'run.failed') queues.ended(runId)
  })
  const needs: TurnNeeds = {
    store,
    clock,
    timers,
    random: systemRandom,
    settings,
    lookup: registry,
    emitter: hub,
    sender,
    carriers: config.carriers,
    interceptors,
    entities: { send: (op) => entities.send(op) },
    children: {
      prepare: (order, parent) => starter.prepare(order, parent),
      retry: async (childId) => {
        const result = await operator.requeue(childId)
        return result?.status
      },
    },
    singletons,
    queues,
    effect: (effect) => effects.perform(effect),
    report,
  }
  const warm = new WarmRuns({
    clock,
    timers,
    continuations: settings.continuations,
    warmHistory: settings.warmHistory,
    onActivity: (runId) => wakes.newsInBackground(runId),
  })
  const leases = new LeaseKeeper({ store, clock, timers, leaseMs: settings.leaseMs, report })
  const queue = new TurnQueue({
    needs,
    runTurn: new RunTurn({ needs, leases, warm, namespace }),
    namespace,
    slots: config.turnSlots,
    draining: () => drain.draining,
    onReport: (turn) => effects.run(turn),
  })
  const drain: Drain = new Drain({ timers, turns: () => queue.inFlight() })
  drain.onBegin(() => queue.leave())
  const wakes = new Wakes({ store, queue, drain, runDispatcher: config.runDispatcher, report })
  const { maxPayloadBytes } = settings
  const quotas = new Quotas({ store })
  const starter = new Starter({
    store,
    registry,
    wakes,
    clock,
    singletons,
    quotas,
    dueTimes,
    namespace,
    maxPayloadBytes,
  })
  const canceller = new Canceller({ store, hub, wakes, clock, effect: needs.effect, report })
  const lostSends = new LostSends({ store, sender, carriers: config.carriers })
  const runLeases = new RunLeases({ store, clock, leaseMs: settings.leaseMs, report })
  const operator = new Operator({
    store,
    queue,
    wakes,
    lostSends,
    leases: runLeases,
    isFollowed: (run) => entityLinks.isFollowed(run),
    lookup: registry,
    clock,
    settings,
    namespace,
  })
  const tellChildren = (runId: string) => canceller.tellChildren(runId)
  const cancelRuns = (runIds: string[]) => canceller.cancelRuns(runIds)
  const failures = new FailureRoutes({ registry, starter, report })
  const deadLetters = new DeadLetters({
    registry,
    starter,
    deadLetterWorkflow: config.deadLetterWorkflow,
    effect: needs.effect,
    report,
  })
  const effects = new AfterEffects({
    store,
    wakes,
    singletons,
    lookup: registry,
    failures,
    deadLetters,
    drain,
    dueTimes,
    clock,
    tellChildren,
    cancelRuns,
    report,
  })
  const heartbeats: Heartbeats = new Heartbeats({
    store,
    clock,
    timers,
    silenceMs: settings.leaseMs,
    report,
  })
  const results = new Results({
    store,
    hub,
    wakes,
    clock,
    maxPayloadBytes,
    onSettled: (result) => {
      heartbeats.forget(result.stepId)
      queues.leave(result.stepId, result.status === 'failed' ? result.attempt : undefined)
      settled.settled(result)
    },
  })
  if (namespace !== undefined) pool?.useNamespace(namespace)
  // Silence must mean death well before a task is taken for lost.
  pool?.beatEvery(Math.max(50, settings.leaseMs / 4))
  pool?.bind({
    onResult: (result) => results.onResult(result),
    onHeartbeat: (beat) => heartbeats.onHeartbeat(beat),
    onUnserved: unservedWarning(config.logger),
  })
  const signals = new Signals({ store, queue, wakes, clock, maxPayloadBytes })
  const entityLinks = new EntityLinks({
    store,
    starter,
    leases: runLeases,
    timers,
    instanceId: settings.instanceId,
  })
  const entities = new Entities({
    store,
    registry,
    links: entityLinks,
    signals,
    hub,
    inBackground: (work) =>
      void drain.track(bestEffort('the next operation starts it', work, report)),
    maxPayloadBytes,
  })
  const accumulators = new Accumulators({ store, registry, starter, signals, report })
  const subscribers = new EventSubscribers({ registry, starter, accumulators, report })
  const isExecuting = (runId: string) => queue.isExecuting(runId)
  const { maxRecoveryAttempts, timerBatchSize } = config
  const recovery = new Recovery({
    store,
    hub,
    wakes,
    lostSends,
    effect: needs.effect,
    onDead: (run) => deadLetters.died(run),
    clock,
    settings,
    maxRecoveryAttempts,
    namespace,
    isExecuting,
    report,
  })
  const warn = (message: string) => config.logger.warn(message)
  const firing = new Firing({
    store,
    timers,
    drain,
    report,
    start: (...run) => starter.start(...run),
  })
  const scheduler = new Scheduler({ firing, store, clock, warn })
  const schedules = new ScheduleClient({
    store,
    firing,
    clock,
    namespace,
    isTaken: (key) => scheduler.has(key),
    maxPayloadBytes,
  })
  const catchupOf = async (key: string) => {
    const known = scheduler.maxCatchupOf(key)
    return known ?? (store.capabilities.schedules ? schedules.maxCatchupOf(key) : 0)
  }
  const eraser = new Eraser({
    store,
    canceller,
    clock,
    settings,
    onErased: (runIds) => runIds.forEach((runId) => warm.drop(runId)),
    report,
  })
  return {
    store,
    registry,
    hub,
    interceptors,
    pool,
    starter,
    waiter: new RunWaiter({ store, hub, timers }),
    canceller,
    failures,
    deadLetters,
    queues,
    signals,
    events: new Events({ store, subscribers, wakes, clock, maxPayloadBytes }),
    updates: new Updates({ store, signals }),
    external: new External({ store, signals }),
    entities,
    operator,
    redispatcher: new Redispatcher({
      store,
      sender,
      carriers: config.carriers,
      clock,
      settings,
      report,
    }),
    eraser,
    retention: new Retention({
      store,
      eraser,
      kept: new KeptRuns({ store, catchupOf }),
      rules: config.retention,
      eventBufferTtl: settings.eventBufferTtl,
      namespace,
      timers,
      draining: () => drain.draining,
      report,
    }),
    stalled: new StalledRuns({
      store,
      stalledAfterMs: config.stalledAfterMs,
      reconcileMs: settings.reconcileMs,
      namespace,
      draining: () => drain.draining,
      report,
    }),
    dueTimes,
    polls: new Polls({
      queue,
      recovery,
      drain,
      timerBatchSize,
      lostHandlers: new LostHandlers({ store, failed: failures, dead: deadLetters, namespace }),
      report,
      timeouts: new Timeouts({ store, registry, canceller, namespace, report }),
      unfinishedCancels: () => canceller.finishCancels(namespace),
      reviewSlots: () => queues.review(),
    }),
    drain,
    queue,
    warm,
    heartbeats,
    scheduler,
    schedules,
  }
}

function requireScheduleRows({ base, capabilities }: FullStore): void {
  if (capabilities.schedules) return
  const missing = SCHEDULE_MEMBERS.filter((name) => base[name] === undefined)
  throw new StoreCapabilityError(
    `persistedSchedules needs a store that keeps schedules; this one lacks ${missing.join(', ')}`
  )
}

/** The pool, for what cannot do without one. */
export function servingPool({ pool }: Collaborators, name: string): TransportPool {
  if (pool?.servesSteps) return pool
  throw new InvalidArgumentError(
    `handle("${name}")`,
    'needs a transport that can serve step handlers in this process'
  )
}
