/*
 * The transport of one process in production: tasks, results, beats and control messages are events of
 * a Node EventEmitter, which several transports may share (an engine's and a worker's, say).
 * Delivery: at least once as long as the process lives; nothing polls, nothing is stored. A task goes to
 * one of the transports that serve its name; a name that nobody serves stays silent, since another
 * listener on the bus may own it. If there is no such listener, whoever asked is told. Also a control plane of this process.
 */
import { EventEmitter } from 'node:events'
import { type Clock, type Timers, systemClock, systemTimers } from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import { LocalControlPlane, stamped } from '../../control_plane/local.ts'
import type { ControlPlane } from '../../control_plane/port.ts'
import { TransportUnavailableError } from '../../errors.ts'
import type { StepHandler } from '../../types/step.ts'
import type { ControlMessage, Heartbeat, RemoteTask, StepResult } from '../../wire/messages.ts'
import { decode } from '../../wire/codec.ts'
import { type EmitterEvent, emitterEvents } from '../../wire/names.ts'
import { ConsumerGate } from '../consumer_gate.ts'
import { type Transport, type TransportErrorHandler, reportToConsole } from '../ports.ts'
import { runStepHandler } from '../run_step_handler.ts'
import { HEARTBEAT_INTERVAL_MS } from '../step_logger.ts'
import {
  BeatInbox,
  HandlerTable,
  HoldScope,
  Inbox,
  LiveSteps,
  type Served,
  TimerScope,
  laterInNeutralContext,
  ownCopy,
} from '../volatile.ts'

export interface EventEmitterTransportConfig {
  /** The bus; default: one of its own. */
  emitter?: EventEmitter
  /** Folded into event names; wins over `useNamespace`. */
  namespace?: string
  /** Stamped as `from` on control messages; default random. */
  instanceId?: string
  /** @deprecated Ignored: tasks are routed by name. */
  group?: string
  /** Told about a failing result, heartbeat or control handler; default `console.error`. */
  onError?: TransportErrorHandler
  /** How often a running step reports life by itself, in ms; default 5000. */
  heartbeatIntervalMs?: number
  clock?: Clock
  timers?: Timers
}

/** Rides along with a task event, so that one of the listeners gets the task, and the best fitting one. */
interface Auction {
  /** How many transports were asked. */
  asked: number
  bid(rank: Rank, take: () => void): void
}

/** Consumers before parked ones, the task's own partition before handlers of every partition. */
type Rank = 0 | 1 | 2 | 3

const LIVE_STEPS: unique symbol = Symbol.for('@agora/durable:live-steps') as never

/** The steps alive on a bus, whichever of its transports runs them. */
function liveStepsOf(emitter: EventEmitter & { [LIVE_STEPS]?: LiveSteps }): LiveSteps {
  const known = emitter[LIVE_STEPS]
  if (known) return known
  const value = new LiveSteps()
  Object.defineProperty(emitter, LIVE_STEPS, { value })
  return value
}

export class EventEmitterTransport implements Transport, ControlPlane {
  readonly volatile = true
  readonly #emitter: EventEmitter
  readonly #live: LiveSteps
  readonly #holds: HoldScope
  readonly #explicitNamespace: boolean
  readonly #instanceId: string
  readonly #onError: TransportErrorHandler
  #heartbeatIntervalMs: number
  readonly #clock: Clock
  readonly #timers: TimerScope
  readonly #gate = new ConsumerGate()
  readonly #handlers = new HandlerTable(this.#gate)
  readonly #results: Inbox<StepResult>
  readonly #beats: BeatInbox
  readonly #controls: LocalControlPlane
  readonly #later = laterInNeutralContext()
  readonly #attached = new Set<EmitterEvent>()
  readonly #unserved: ((task: RemoteTask) => void)[] = []
  #events: Record<EmitterEvent, string>
  #closed = false

  readonly #listeners = {
    task: (task: RemoteTask, auction?: Auction) => this.#offered(task, auction),
    result: (result: StepResult) => {
      this.#results.deliver(result, this.#holds.hold(result.stepId))
    },
    heartbeat: (beat: Heartbeat) => this.#beats.deliver(beat),
    control: (message: ControlMessage) => this.#controls.deliver(message),
  }

  constructor(config: EventEmitterTransportConfig = {}) {
    this.#emitter = config.emitter ?? new EventEmitter()
    this.#emitter.setMaxListeners(0)
    this.#live = liveStepsOf(this.#emitter)
    this.#holds = new HoldScope(this.#live)
    this.#explicitNamespace = config.namespace !== undefined && config.namespace !== ''
    this.#events = emitterEvents(config.namespace)
    this.#instanceId = config.instanceId ?? randomId()
    this.#onError = config.onError ?? reportToConsole
    this.#heartbeatIntervalMs = config.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS
    this.#clock = config.clock ?? systemClock
    this.#timers = new TimerScope(config.timers ?? systemTimers)
    const deps = { timers: this.#timers, gate: this.#gate, onError: this.#onError }
    this.#results = new Inbox(deps)
    this.#beats = new BeatInbox(deps)
    this.#controls = new LocalControlPlane({ onError: this.#onError })
  }

  beatEvery(ms: number): void {
    this.#heartbeatIntervalMs = Math.min(this.#heartbeatIntervalMs, ms)
  }

  /** True for a step of any transport on the same bus. */
  isRunning(stepId: string): boolean {
    return this.#live.has(stepId)
  }

  async dispatch(task: RemoteTask): Promise<void> {
    if (this.#closed) throw new TransportUnavailableError('the event emitter transport is closed')
    const bids: { rank: Rank; take: () => void }[] = []
    const auction: Auction = { asked: 0, bid: (rank, take) => void bids.push({ rank, take }) }
    const copy = ownCopy(task)
    try {
      this.#emitter.emit(this.#events.task, copy, auction)
    } catch (cause) {
      throw new TransportUnavailableError('a listener of the task event threw', { cause })
    }
    const [best] = bids.sort((a, b) => a.rank - b.rank)
    if (best) return best.take()
    // Whoever else listens is no transport, and may have taken it.
    if (this.#emitter.listenerCount(this.#events.task) > auction.asked) return
    for (const tell of this.#unserved) isolate(() => tell(task), this.#onError)
  }

  onUnserved(handler: (task: RemoteTask) => void): void {
    this.#unserved.push(handler)
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.#results.add(handler)
    this.#attach('result')
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    this.#beats.add(handler)
    this.#attach('heartbeat')
  }

  /** Without `partition` it serves every partition that has no handler of its own on the bus. */
  handle(name: string, fn: StepHandler, partition?: string): void {
    this.#handlers.set(name, fn, partition)
    this.#attach('task')
  }

  heartbeat(beat: Heartbeat): Promise<void> {
    this.#emit('heartbeat', beat)
    return Promise.resolve()
  }

  publishControl(message: ControlMessage): Promise<void> {
    this.#emit('control', stamped(message, this.#instanceId))
    return Promise.resolve()
  }

  onControl(handler: (message: ControlMessage) => void): void {
    this.#controls.onControl(handler)
    this.#attach('control')
  }

  useNamespace(namespace: string): void {
    if (this.#explicitNamespace || this.#closed) return
    const attached = [...this.#attached]
    this.#detach()
    this.#events = emitterEvents(namespace)
    for (const event of attached) this.#attach(event)
  }

  deferConsumers(): void {
    this.#gate.defer()
  }

  startConsumers(): void {
    this.#gate.start()
  }

  /** Detaches its own listeners, drops what they hold, and every timer. The bus goes on. */
  async close(): Promise<void> {
    this.#closed = true
    this.#detach()
    this.#gate.close()
    this.#timers.close()
    this.#holds.close()
    this.#results.close()
    this.#beats.close()
    await this.#controls.close()
  }

  #offered(task: RemoteTask, auction?: Auction): void {
    // Somebody else's event, made without an auction, is for everybody who listens.
    if (!auction) return isolate(() => this.#foreign(task), this.#onError)
    auction.asked += 1
    const exact = this.#handlers.exact(task)
    const served = exact ?? this.#handlers.bare(task)
    if (!served) return
    const fit = exact ? 0 : 1
    const rank = served.lane.open ? fit : ((fit + 2) as Rank)
    auction.bid(rank, () => this.#take(task, served))
  }

  #foreign(raw: unknown): void {
    const task = decode('task', raw)
    const served = this.#handlers.exact(task) ?? this.#handlers.bare(task)
    if (served) this.#take(ownCopy(task), served)
  }

  #take(task: RemoteTask, served: Served): void {
    const release = this.#holds.hold(task.stepId)
    this.#later(() => served.lane.run(() => void this.#run(task, served.fn, release)))
  }

  async #run(task: RemoteTask, fn: StepHandler, release: () => void): Promise<void> {
    if (this.#closed) return release()
    const result = await runStepHandler(task, fn, {
      clock: this.#clock,
      timers: this.#timers,
      repeatBeatMs: this.#heartbeatIntervalMs,
      emitBeat: (beat) => this.#emit('heartbeat', beat),
    })
    this.#later(() => {
      this.#emit('result', result)
      release()
    })
  }

  #emit(event: EmitterEvent, message: unknown): void {
    if (this.#closed) return
    // A listener of somebody else may throw into this call.
    isolate(() => this.#emitter.emit(this.#events[event], message), this.#onError)
  }

  #attach(event: EmitterEvent): void {
    if (this.#closed || this.#attached.has(event)) return
    this.#attached.add(event)
    this.#emitter.on(this.#events[event], this.#listeners[event])
  }

  #detach(): void {
    for (const event of this.#attached) {
      this.#emitter.off(this.#events[event], this.#listeners[event])
    }
    this.#attached.clear()
  }
}
