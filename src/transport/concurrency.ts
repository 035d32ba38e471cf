/*
 * How many tasks a worker runs at once: a fixed number, or one that moves with what its steps and its
 * host tell. Shared by the transports whose workers take tasks from a broker. Owns the limit, the count
 * of work in flight and the status that liveness keys carry; starting and refusing work stays with them.
 */
import { type Cancel, type Clock, type Timers, systemClock } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { WorkerStatus } from '../wire/messages.ts'
import {
  type AdaptiveSettings,
  type Concurrency,
  type ConcurrencySettings,
  readConcurrency,
} from './concurrency_options.ts'
import { CpuMeter, type Host, memoryUse, thisHost } from './host_load.ts'
import { StepWindow } from './step_window.ts'

export type Adjustment = NonNullable<WorkerStatus['lastAdjust']>
export type AdjustReason = Adjustment['reason']

/** What one tick knows. */
export interface LoadSample {
  inFlight: number
  /** Failed share of the last steps, 0 to 1. */
  errorRate: number
  /** Work is in flight and nothing completed for two ticks. */
  stalled: boolean
  /** Unhindered step time over the present one, at most 1; 1 when unknown. */
  gradient: number
  rssPct?: number
  cpuPct?: number
}

/** The rules that a decision needs. */
export type LimitState = Pick<
  AdaptiveSettings,
  'min' | 'max' | 'ramCeilingPct' | 'cpuCeilingPct'
> & {
  limit: number
}

const EWMA_ALPHA = 0.2
const STALLED_TICKS = 2
const CPU_SAMPLE_MS = 2000
/** Times below this are the grain of the clock. */
const SHORTEST_MS = 1

/** The next limit, and why it differs. The first rule that matches decides, also when it changes nothing. */
export function decide(
  state: LimitState,
  sample: LoadSample
): { limit: number; reason?: AdjustReason } {
  const { limit, min, max } = state
  const to = (wanted: number, reason: AdjustReason) => {
    const next = Math.min(max, Math.max(min, wanted))
    return next === limit ? { limit } : { limit: next, reason }
  }
  if (reached(sample.rssPct, state.ramCeilingPct)) return to(Math.floor(limit * 0.8), 'ram_ceiling')
  if (reached(sample.cpuPct, state.cpuCeilingPct)) return to(limit - 1, 'cpu_ceiling')
  if (sample.errorRate > 0.2 || sample.stalled) return to(limit - 1, 'backpressure')
  if (sample.gradient < 0.7) return to(Math.floor(limit * sample.gradient), 'shrink')
  if (sample.gradient >= 0.9 && sample.inFlight >= 0.8 * limit) return to(limit + 1, 'grow')
  return { limit }
}

const reached = (value: number | undefined, ceiling: number | undefined): boolean =>
  value !== undefined && ceiling !== undefined && value >= ceiling

export interface ConcurrencyControllerOptions {
  concurrency?: Concurrency
  /** The name of the option in an error; default `concurrency`. */
  what?: string
  clock?: Clock
  host?: Host
}

/** A task that ended. A turn is work in flight and progress, but its duration says nothing of steps. */
export interface FinishedWork {
  ok: boolean
  durationMs: number
  isStep: boolean
}

export class ConcurrencyController {
  readonly #settings: ConcurrencySettings
  readonly #clock: Clock
  readonly #host: Host
  readonly #cpu: CpuMeter
  readonly #window = new StepWindow()
  readonly #listeners = new Set<(limit: number, adjustment: Adjustment) => void>()
  #limit: number
  #inFlight = 0
  /** Since when work is in flight without anything having completed. */
  #quietSince = 0
  #unhinderedMs?: number
  #lastAdjust?: Adjustment
  #stopTicking?: Cancel

  /** Throws `InvalidArgumentError` for a `concurrency` that is none. */
  constructor(options: ConcurrencyControllerOptions = {}) {
    this.#settings = readConcurrency(options.concurrency, options.what)
    this.#clock = options.clock ?? systemClock
    this.#host = options.host ?? thisHost
    this.#cpu = new CpuMeter(this.#clock, this.#host)
    this.#limit = this.#settings.mode === 'fixed' ? this.#settings.limit : this.#settings.start
  }

  get mode(): 'fixed' | 'adaptive' {
    return this.#settings.mode
  }

  /** Tasks that may run at once in one queue, now. */
  get limit(): number {
    return this.#limit
  }

  /** Tasks that run, over all queues. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Counts a task as running until `finished`. */
  started(): void {
    if (this.#inFlight === 0) this.#quietSince = this.#clock()
    this.#inFlight++
  }

  /** Call once for every `started`. */
  finished(work: FinishedWork): void {
    const now = this.#clock()
    this.#inFlight = Math.max(0, this.#inFlight - 1)
    this.#quietSince = now
    if (!work.isStep) return
    const durationMs = Math.max(SHORTEST_MS, work.durationMs)
    this.#window.add({ durationMs, ok: work.ok }, now)
  }

  /** Gives back a task that neither ran nor failed, such as one handed back at close. */
  abandoned(): void {
    this.#inFlight = Math.max(0, this.#inFlight - 1)
  }

  /** Told of every new limit; the answer detaches the listener. */
  onChange(listener: (limit: number, adjustment: Adjustment) => void): Cancel {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Begins to reconsider an adaptive limit; a fixed one needs no timer. Calling it twice is harmless. */
  start(timers: Timers): void {
    const settings = this.#settings
    if (settings.mode === 'fixed' || this.#stopTicking) return
    this.#stopTicking = timers.every(settings.tickMs, () => this.#tick(settings))
  }

  stop(): void {
    this.#stopTicking?.()
    this.#stopTicking = undefined
  }

  /** What a liveness key tells. Samples the CPU at most every 2 s. */
  status(): WorkerStatus {
    const settings = this.#settings
    const cpuPct = this.#cpu.read(CPU_SAMPLE_MS)
    const p95Ms = this.#window.p95Ms
    return {
      runtime: 'node',
      concurrency:
        settings.mode === 'fixed'
          ? { mode: 'fixed', limit: this.#limit }
          : { mode: 'adaptive', limit: this.#limit, min: settings.min, max: settings.max },
      inFlight: this.#inFlight,
      ...memoryUse(this.#host),
      ...(cpuPct !== undefined && { cpuPct }),
      throughputPerMin: this.#window.perMinute(this.#clock()),
      ...(p95Ms !== undefined && { p95Ms }),
      ...(this.#lastAdjust && { lastAdjust: this.#lastAdjust }),
    }
  }

  #tick(settings: AdaptiveSettings): void {
    const from = this.#limit
    const { limit, reason } = decide({ ...settings, limit: from }, this.#sample(settings))
    if (reason === undefined) return
    this.#limit = limit
    const adjustment: Adjustment = { at: this.#clock(), from, to: limit, reason }
    this.#lastAdjust = adjustment
    for (const listener of [...this.#listeners]) isolate(() => listener(limit, adjustment))
  }

  #sample(settings: AdaptiveSettings): LoadSample {
    const quietMs = this.#inFlight > 0 ? this.#clock() - this.#quietSince : 0
    const sample: LoadSample = {
      inFlight: this.#inFlight,
      errorRate: this.#window.errorRate,
      stalled: quietMs >= STALLED_TICKS * settings.tickMs,
      gradient: this.#gradient(),
      rssPct: memoryUse(this.#host).rssPct,
    }
    const cpuPct = this.#cpu.read()
    if (cpuPct !== undefined) sample.cpuPct = cpuPct
    return sample
  }

  #gradient(): number {
    const { shortestMs, p50Ms } = this.#window
    if (shortestMs === undefined || p50Ms === undefined) return 1
    const before = this.#unhinderedMs ?? shortestMs
    this.#unhinderedMs = before + EWMA_ALPHA * (shortestMs - before)
    return Math.min(1, this.#unhinderedMs / p50Ms)
  }
}
