/*
 * The transport of tests: handlers run in this process, results and beats come back to the engine that
 * registered last. Delivery: at least once as long as the process lives; nothing polls, nothing is
 * stored. Every task starts on a later tick in a neutral async context, as if it had crossed a wire,
 * and its result arrives on a tick of its own. Also a control plane.
 */
import { type Clock, type Timers, systemClock, systemTimers } from '../../foundation/clock.ts'
import { DurableError, isolate } from '../../foundation/failure.ts'
import { LocalControlPlane } from '../../control_plane/local.ts'
import type { ControlPlane } from '../../control_plane/port.ts'
import { TransportUnavailableError } from '../../errors.ts'
import type { StepHandler } from '../../types/step.ts'
import type {
  ControlMessage,
  Heartbeat,
  RemoteTask,
  StepResult,
  WorkflowStepEvent,
} from '../../wire/messages.ts'
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
  TimerScope,
  laterInNeutralContext,
  ownCopy,
} from '../volatile.ts'

export interface InMemoryTransportOptions {
  clock?: Clock
  timers?: Timers
  /** Told about a failing result, heartbeat or control handler; default `console.error`. */
  onError?: TransportErrorHandler
  /** How often a running step reports life by itself, in ms; default 5000. */
  heartbeatIntervalMs?: number
  /**
   * Test hook between a worker and its engine: call `deliver` never, later, twice or in another order.
   * A result that is never delivered counts as running.
   */
  intercept?: (result: StepResult, deliver: (result: StepResult) => void) => void
}

export class InMemoryTransport implements Transport, ControlPlane {
  readonly volatile = true
  readonly #clock: Clock
  readonly #timers: TimerScope
  readonly #onError: TransportErrorHandler
  #heartbeatIntervalMs: number
  readonly #intercept: InMemoryTransportOptions['intercept']
  readonly #gate = new ConsumerGate()
  readonly #handlers = new HandlerTable(this.#gate)
  readonly #live = new LiveSteps()
  readonly #holds = new HoldScope(this.#live)
  readonly #results: Inbox<StepResult>
  readonly #beats: BeatInbox
  readonly #stepEvents: Inbox<WorkflowStepEvent>
  readonly #controls: LocalControlPlane
  readonly #tick = laterInNeutralContext()
  #closed = false

  constructor(options: InMemoryTransportOptions = {}) {
    const { onError = reportToConsole } = options
    this.#onError = onError
    this.#clock = options.clock ?? systemClock
    this.#timers = new TimerScope(options.timers ?? systemTimers)
    this.#heartbeatIntervalMs = options.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS
    this.#intercept = options.intercept
    const deps = { timers: this.#timers, gate: this.#gate, onError }
    this.#results = new Inbox(deps)
    this.#beats = new BeatInbox(deps)
    this.#stepEvents = new Inbox(deps)
    this.#controls = new LocalControlPlane({ onError })
  }

  /** Steps that are queued, running, or whose result was not accepted yet. */
  get inFlight(): number {
    return this.#live.size
  }

  beatEvery(ms: number): void {
    this.#heartbeatIntervalMs = Math.min(this.#heartbeatIntervalMs, ms)
  }

  isRunning(stepId: string): boolean {
    return this.#live.has(stepId)
  }

  async dispatch(task: RemoteTask): Promise<void> {
    this.#assertOpen()
    if (!this.#results.hasConsumer) {
      throw new DurableError('no result handler registered', { code: 'no_result_handler' })
    }
    const copy = ownCopy(task)
    const release = this.#holds.hold(copy.stepId)
    this.#later(() => {
      const served = this.#handlers.exact(copy) ?? this.#handlers.bare(copy)
      if (!served) return void this.#run(copy, undefined, release)
      served.lane.run(() => void this.#run(copy, served.fn, release))
    })
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    this.#results.add(handler)
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    this.#beats.add(handler)
  }

  /** Without `partition` it serves every partition that has no handler of its own. */
  handle(name: string, fn: StepHandler, partition?: string): void {
    this.#handlers.set(name, fn, partition)
  }

  heartbeat(beat: Heartbeat): Promise<void> {
    this.#beats.deliver(beat)
    return Promise.resolve()
  }

  async dispatchStepEvent(event: WorkflowStepEvent): Promise<void> {
    this.#assertOpen()
    this.#later(() => this.#stepEvents.deliver(event))
  }

  onStepEvent(handler: (event: WorkflowStepEvent) => Promise<void>): void {
    if (!this.#stepEvents.hasConsumer) this.#stepEvents.add(handler)
  }

  publishControl(message: ControlMessage): Promise<void> {
    return this.#controls.publishControl(message)
  }

  onControl(handler: (message: ControlMessage) => void): void {
    this.#controls.onControl(handler)
  }

  /** Accepted and without effect: this transport is not shared. */
  useNamespace(_namespace: string): void {}

  deferConsumers(): void {
    this.#gate.defer()
  }

  startConsumers(): void {
    this.#gate.start()
  }

  /** Drops what is queued, running or undelivered, and every timer. */
  async close(): Promise<void> {
    this.#closed = true
    this.#gate.close()
    this.#timers.close()
    this.#holds.close()
    this.#results.close()
    this.#beats.close()
    this.#stepEvents.close()
    await this.#controls.close()
  }

  async #run(task: RemoteTask, fn: StepHandler | undefined, release: () => void): Promise<void> {
    const result = await runStepHandler(task, fn, {
      clock: this.#clock,
      timers: this.#timers,
      repeatBeatMs: this.#heartbeatIntervalMs,
      emitBeat: (beat) => this.#beats.deliver(beat),
    })
    if (this.#closed) return release()
    const deliver = (what: StepResult) => this.#later(() => this.#results.deliver(what, release))
    const intercept = this.#intercept
    if (intercept) isolate(() => intercept(result, deliver), this.#onError)
    else deliver(result)
  }

  #later(work: () => void): void {
    this.#tick(() => {
      if (!this.#closed) work()
    })
  }

  #assertOpen(): void {
    if (this.#closed) throw new TransportUnavailableError('the in-memory transport is closed')
  }
}
