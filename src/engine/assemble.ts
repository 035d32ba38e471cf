/*
 * The composition root: builds the collaborators in order and connects them. Nobody receives the engine;
 * each receives ports and narrow interfaces.
 */
import { systemRandom } from '../foundation/backoff.ts'
import { bestEffort } from '../foundation/failure.ts'
import { InMemoryAdmissionBackend } from '../flow/memory_admission.ts'
import { Quotas } from '../flow/quotas.ts'
import { Singletons } from '../flow/singletons.ts'
import { StepQueues } from '../flow/step_queues.ts'
import type { ScheduleClient } from '../schedules/schedule_client.ts'
import type { Scheduler } from '../schedules/scheduler.ts'
import { fullStore, type FullStore } from '../store/full_store.ts'
import { TransportPool } from '../transport/pool.ts'
import { LeaseKeeper } from '../turns/lease_keeper.ts'
import { SILENT_LEASES, type TurnNeeds } from '../turns/needs.ts'
import { RunTurn } from '../turns/run_turn.ts'
import { TurnQueue } from '../turns/turn_queue.ts'
import { WarmRuns } from '../turns/warm_runs.ts'
import { AfterEffects } from './after_effects.ts'
import { ControlLink } from './control_link.ts'
import { assembleSchedules } from './assemble_schedules.ts'
import type { EngineConfig } from './deps.ts'
import { assembleBuiltins } from './builtins/assemble.ts'
import type { Entities } from './builtins/entities.ts'
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
import { requireScheduleRows } from './requirements.ts'
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
import { readsOf } from './scoped_reads.ts'
import { RunQueueLink } from './run_queue_link.ts'
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
  control: ControlLink
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
  runs: RunQueueLink
  wakes: Wakes
  warm: WarmRuns
  heartbeats: Heartbeats
  scheduler: Scheduler
  schedules: ScheduleClient
}

export function assemble(config: EngineConfig): Collaborators {
  const { clock, timers, namespace, carriers, turns: settings } = config
  const report = (error: unknown, what: string) => config.logger.error(`durable: ${what}`, error)
  const whole = fullStore(config.store)
  const store = readsOf(whole, config)
  if (config.persistedSchedules) requireScheduleRows(store)
  const registry = new Registry()
  const hub = new EventHub({ clock, report, relay: (event) => control.event(event) })
  const interceptors = new InterceptorChain()
  const settled = new SettledSteps()
  const pool = config.members.length > 0 ? new TransportPool(config.members) : undefined
  const sender = new PoolSender({ pool, settled, onBeat: (...how) => heartbeats.listen(...how) })
  const dueTimes = new DueTimes(clock)
  const singletons = new Singletons({
    // A slot is shared by every namespace; how many wait for one is an ordinary read.
    store: config.scopeReads ? { ...whole, countRuns: store.countRuns } : store,
    clock,
    random: systemRandom,
    warn: config.announce,
  })
  const queues = new StepQueues({
    backend: config.admission ?? new InMemoryAdmissionBackend({ clock }),
    store,
    clock,
    timers,
    patienceMs: SILENT_LEASES * settings.leaseMs,
    isRunning: (stepId) => sender.isRunning(stepId),
    wake: (runId) => wakes.newsInBackground(runId),
    inBackground: (work) => void drain.track(bestEffort('a review finds the slot', work, report)),
    report,
  })
  hub.subscribe((event) => queues.heard(event))
  const needs: TurnNeeds = {
    store,
    clock,
    timers,
    random: systemRandom,
    settings,
    lookup: registry,
    emitter: hub,
    sender,
    carriers,
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
  const { runDispatcher } = config
  const runs = new RunQueueLink({
    queue: runDispatcher ? undefined : pool?.runQueue,
    namespace,
    clock,
    take: ({ runId }) => wakes.taken(runId),
    report,
  })
  drain.onBegin(
    () => void drain.track(bestEffort('its runs are due for polls', runs.stop(), report))
  )
  const wakes: Wakes = new Wakes({
    store,
    queue,
    runs,
    drain,
    namespace,
    runDispatcher,
    announce: (runId, taken) => control.enqueued(runId, taken),
    takeDue: () => queue.runDue('pending', clock()),
    report,
  })
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
  const { effect } = needs
  const broadcast = (runId: string) => control.cancelled(runId)
  const canceller = new Canceller({ store, hub, wakes, clock, effect, broadcast, report })
  const lostSends = new LostSends({ store, sender, carriers })
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
  const { entityLinks, entities, accumulators } = assembleBuiltins({
    store,
    registry,
    starter,
    signals,
    hub,
    drain,
    leases: runLeases,
    timers,
    instanceId: settings.instanceId,
    maxPayloadBytes,
    report,
  })
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
  const { scheduler, schedules, catchupOf } = assembleSchedules({
    store,
    starter,
    drain,
    clock,
    timers,
    namespace,
    maxPayloadBytes,
    warn,
    report,
  })
  const control = new ControlLink({
    plane: config.controlPlane,
    instanceId: settings.instanceId,
    clock,
    timers,
    takePending: (runId) => wakes.takePending(runId),
    onEvent: (event) => hub.deliver(event),
    onCancel: (runId) => canceller.tell(runId),
    onSchedulePaused: (key, paused) => void scheduler.setPaused(key, paused),
    report,
  })
  drain.onBegin(() => control.close())
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
    control,
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
    redispatcher: new Redispatcher({ store, sender, carriers, clock, settings, report }),
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
    runs,
    wakes,
    warm,
    heartbeats,
    scheduler,
    schedules,
  }
}
