/*
 * What transports share whose messages live in this process only: the steps that are alive here, the
 * handlers by name and partition, and consumers that get a message again until they take it. Nothing
 * here survives the process; an engine re-sends what it misses.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { backoffDelay, spread } from '../foundation/backoff.ts'
import type { Cancel, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import { toStored } from '../foundation/json.ts'
import type { StepHandler } from '../types/step.ts'
import type { Heartbeat, RemoteTask } from '../wire/messages.ts'
import { isDefaultPool, partitionOf } from '../wire/names.ts'
import type { ConsumerGate, ConsumerLane } from './consumer_gate.ts'
import type { TransportErrorHandler } from './ports.ts'

const REDELIVERY = { backoff: 'exp', backoffMs: 100, backoffMaxMs: 10_000 } as const
const REDELIVERY_SPREAD = 0.2

/** A task that shares nothing with its sender, as if it had crossed a wire. Throws if it could not. */
export function ownCopy(task: RemoteTask): RemoteTask {
  const copy = { ...task, input: toStored(task.input, `the input of step "${task.name}"`) }
  if (task.context !== undefined) {
    copy.context = toStored(task.context, 'the propagated context') as Record<string, unknown>
  }
  return copy
}

/**
 * Runs work on a later tick in the async context of this call, with nothing of the context in which the
 * work is handed over: what crosses a wire carries no ambient scope.
 */
export function laterInNeutralContext(): (work: () => void) => void {
  const outside = AsyncLocalStorage.snapshot()
  return (work) => outside(() => void setImmediate(work))
}

/** Steps that are queued, running, or whose result nobody has taken yet. */
export class LiveSteps {
  readonly #holds = new Map<string, number>()

  has(stepId: string): boolean {
    return this.#holds.has(stepId)
  }

  get size(): number {
    return this.#holds.size
  }

  /** Keeps a step alive until the answer is called; calling it twice is harmless. */
  hold(stepId: string): Cancel {
    this.#holds.set(stepId, (this.#holds.get(stepId) ?? 0) + 1)
    return once(() => {
      const left = (this.#holds.get(stepId) ?? 1) - 1
      if (left > 0) this.#holds.set(stepId, left)
      else this.#holds.delete(stepId)
    })
  }
}

/** The part of the live steps that one transport answers for; closing it lets go of all of them. */
export class HoldScope {
  readonly #live: LiveSteps
  readonly #held = new Set<Cancel>()
  #closed = false

  constructor(live: LiveSteps) {
    this.#live = live
  }

  hold(stepId: string): Cancel {
    if (this.#closed) return () => {}
    const release = this.#live.hold(stepId)
    const cancel = () => {
      this.#held.delete(cancel)
      release()
    }
    this.#held.add(cancel)
    return cancel
  }

  close(): void {
    this.#closed = true
    for (const release of [...this.#held]) release()
  }
}

function once(fn: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    fn()
  }
}

/** Timers that one call stops all together; afterwards none can be set. */
export class TimerScope implements Timers {
  readonly #timers: Timers
  readonly #pending = new Set<Cancel>()
  #closed = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  after(ms: number, fn: () => void): Cancel {
    const cancel = this.#track(() =>
      this.#timers.after(ms, () => {
        this.#pending.delete(cancel)
        fn()
      })
    )
    return cancel
  }

  every(ms: number, fn: () => void): Cancel {
    return this.#track(() => this.#timers.every(ms, fn))
  }

  close(): void {
    this.#closed = true
    for (const cancel of [...this.#pending]) cancel()
  }

  #track(set: () => Cancel): Cancel {
    if (this.#closed) return () => {}
    const stop = set()
    const cancel = () => {
      this.#pending.delete(cancel)
      stop()
    }
    this.#pending.add(cancel)
    return cancel
  }
}

/** A served name. Swapping the function keeps the consumer. */
export interface Served {
  fn: StepHandler
  readonly lane: ConsumerLane
}

/** Handlers by name and partition. */
export class HandlerTable {
  readonly #served = new Map<string, Map<string, Served>>()
  readonly #gate: ConsumerGate

  constructor(gate: ConsumerGate) {
    this.#gate = gate
  }

  set(name: string, fn: StepHandler, partition?: string): void {
    let pools = this.#served.get(name)
    if (!pools) this.#served.set(name, (pools = new Map()))
    const pool = poolKey(partition)
    const served = pools.get(pool)
    if (served) served.fn = fn
    else pools.set(pool, { fn, lane: this.#gate.lane() })
  }

  /** Who serves exactly this task's partition. */
  exact(task: RemoteTask): Served | undefined {
    return this.#served.get(task.name)?.get(poolKey(partitionOf(task.group, task.name)))
  }

  /** Who serves the name for every partition that has no handler of its own. */
  bare(task: RemoteTask): Served | undefined {
    return this.#served.get(task.name)?.get(poolKey(undefined))
  }
}

const poolKey = (partition: string | undefined): string =>
  partition === undefined || isDefaultPool(partition) ? '' : partition

/**
 * Consumers of one kind of message. A message goes to the consumer registered last; when that one
 * rejects it, the error is reported and the message comes again, to the consumers in turn, after 100 ms
 * doubling to 10 s (± 20 %), until one takes it or the inbox closes.
 */
export class Inbox<T> {
  readonly #timers: Timers
  readonly #gate: ConsumerGate
  readonly #onError: TransportErrorHandler
  readonly #consumers: ((message: T) => Promise<void>)[] = []
  #lane?: ConsumerLane
  #closed = false

  /** `timers` are stopped by their owner when it closes. */
  constructor(deps: { timers: Timers; gate: ConsumerGate; onError: TransportErrorHandler }) {
    this.#timers = deps.timers
    this.#gate = deps.gate
    this.#onError = deps.onError
  }

  get hasConsumer(): boolean {
    return this.#consumers.length > 0
  }

  add(consumer: (message: T) => Promise<void>): void {
    this.#consumers.push(consumer)
    this.#lane ??= this.#gate.lane()
  }

  /** Starts delivering; `taken` is called once a consumer took the message. Without one it is dropped. */
  deliver(message: T, taken: () => void = () => {}): void {
    if (this.#closed || !this.#lane) return taken()
    this.#lane.run(() => void this.#attempt(message, 0, taken))
  }

  close(): void {
    this.#closed = true
    this.#consumers.length = 0
  }

  async #attempt(message: T, failures: number, taken: () => void): Promise<void> {
    if (this.#closed) return
    const newest = this.#consumers.length - 1
    const consumer = this.#consumers[newest - (failures % this.#consumers.length)]
    try {
      await consumer(message)
      taken()
    } catch (error) {
      isolate(() => this.#onError(error))
      const wait = spread(backoffDelay(failures + 1, REDELIVERY), REDELIVERY_SPREAD)
      this.#timers.after(wait, () => void this.#attempt(message, failures + 1, taken))
    }
  }
}

/** Consumers of heartbeats: every one gets every beat, and a beat that fails is only reported. */
export class BeatInbox {
  readonly #gate: ConsumerGate
  readonly #onError: TransportErrorHandler
  readonly #consumers: ((beat: Heartbeat) => void)[] = []

  constructor(deps: { gate: ConsumerGate; onError: TransportErrorHandler }) {
    this.#gate = deps.gate
    this.#onError = deps.onError
  }

  add(consumer: (beat: Heartbeat) => Promise<void>): void {
    const lane = this.#gate.lane()
    this.#consumers.push((beat) => {
      // A parked consumer keeps no backlog of beats: old life is no news.
      if (lane.open) isolate(() => consumer(beat), this.#onError)
    })
  }

  deliver(beat: Heartbeat): void {
    for (const consumer of [...this.#consumers]) consumer(beat)
  }

  close(): void {
    this.#consumers.length = 0
  }
}
