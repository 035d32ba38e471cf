/*
 * The worker loop: starts a tick every interval until it is told to stop, then drains. A tick is never
 * waited for: a turn may run for hours, and timers of other runs are due meanwhile. Who executes what is
 * decided by claims in the store, so passes may overlap.
 */
import type { UpkeepApi } from '../engine/api.ts'
import { type Cancel, keepProcessAlive, systemTimers } from '../foundation/clock.ts'
import { messageOf } from '../foundation/failure.ts'
import { resolveSchedules } from '../schedules/scheduler.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'
import { DueAlarm } from './due_alarm.ts'
import { PHASES, type Phase, type TickCount, type TickEngine, type TickOptions } from './tick.ts'

/** What the loop needs of an engine. */
export type WorkerLoopEngine = TickEngine &
  Pick<UpkeepApi, 'startConsumers' | 'beginDrain' | 'drain'> &
  // Without the first timers are as late as the pause between two ticks is long; without the other runs are.
  Partial<Pick<UpkeepApi, 'onDue' | 'consumeRuns'>>

/** Any logger of AdonisJS fits. */
export interface WorkerLogger {
  info(message: string): void
  error(message: string): void
}

export interface WorkerLoopOptions {
  /** Pause between the starts of two ticks, in ms. */
  intervalMs: number
  /** Ends the loop when it settles, either way. */
  stopSignal: Promise<unknown>
  logger: WorkerLogger
  /** What the loop fires; lazy imports are resolved first. Default: the schedules that the engine knows. */
  schedules?: readonly ScheduledWorkflow[]
  /** Longest wait for turns in flight, in ms; default 10 000. */
  drainTimeoutMs?: number
  /** Waits between ticks; default a timer, which the stop signal cuts short. */
  sleep?: (ms: number) => Promise<unknown>
  /** The loop keeps the process alive while it runs (ours); default true. */
  keepAlive?: boolean
}

const DRAIN_MS = 10_000
/**
 * Passes of one phase under way. A pass lasts as long as the turns it began, or waits for a free slot;
 * there are more than twice as many as slots, so at this bound slots are what is missing.
 */
const MOST_PASSES = 256

const DUE_TIMERS = PHASES.find(({ name }) => name === 'resumeDueTimers')!

/**
 * Starts deferred consumers and the run queue's, ticks every `intervalMs` until `stopSignal` settles, then stops picking up
 * work and waits for what is in flight, at most `drainTimeoutMs`. Timers of runs that this process parked
 * are on time, however long the interval. Answers the number of ticks. A phase
 * that fails is logged and tried again by the next tick.
 */
export async function runWorkerLoop(
  engine: WorkerLoopEngine,
  options: WorkerLoopOptions
): Promise<number> {
  const { intervalMs, logger, drainTimeoutMs = DRAIN_MS, keepAlive = true } = options
  const letGo = keepAlive ? keepProcessAlive() : () => {}
  const pause = new Pause(options.stopSignal, options.sleep)
  let ticks = 0
  let silence = () => {}
  try {
    const schedules = options.schedules && (await resolveSchedules(options.schedules))
    const passes = new Passes(engine, logger, { schedules })
    const alarm = new DueAlarm({ ring: () => passes.start(DUE_TIMERS) })
    const stopListening = engine.onDue?.((inMs) => alarm.set(inMs))
    silence = () => {
      stopListening?.()
      alarm.stop()
    }
    engine.consumeRuns?.()
    engine.startConsumers()
    while (!pause.stopped) {
      ticks++
      for (const phase of PHASES) passes.start(phase)
      await pause.wait(intervalMs)
    }
    silence()
    engine.beginDrain()
    await Promise.all([engine.drain(drainTimeoutMs), passes.settledWithin(drainTimeoutMs)])
    return ticks
  } finally {
    silence()
    letGo()
  }
}

/** The passes under way. */
class Passes {
  readonly #engine: TickEngine
  readonly #logger: WorkerLogger
  readonly #options: TickOptions
  readonly #underWay = new Map<Phase, Set<Promise<void>>>()

  constructor(engine: TickEngine, logger: WorkerLogger, options: TickOptions) {
    this.#engine = engine
    this.#options = options
    this.#logger = logger
  }

  start(phase: Phase): void {
    const passes = this.#underWay.get(phase) ?? new Set()
    this.#underWay.set(phase, passes)
    if (passes.size >= MOST_PASSES) return
    const pass = this.#run(phase).finally(() => passes.delete(pass))
    passes.add(pass)
  }

  /** Resolves when every pass ended, after `ms` at the latest. */
  async settledWithin(ms: number): Promise<void> {
    let cancel: Cancel = () => {}
    const over = new Promise<void>((resolve) => {
      cancel = systemTimers.after(ms, resolve)
    })
    const passes = [...this.#underWay.values()].flatMap((some) => [...some])
    await Promise.race([Promise.allSettled(passes), over])
    cancel()
  }

  async #run({ name, counts, run }: Phase): Promise<void> {
    const onError = (error: unknown) =>
      this.#logger.error(`durable: ${name} failed: ${messageOf(error)}`)
    try {
      const moved = await run(this.#engine, this.#options, onError)
      if (counts && moved > 0) this.#logger.info(lineFor(counts, moved))
    } catch (error) {
      onError(error)
    }
  }
}

const DID: Record<TickCount, string> = {
  pending: 'executed pending',
  recovered: 'recovered',
  timers: 'resumed due',
  scheduled: 'started scheduled',
  evicted: 'deleted old',
}

const lineFor = (counts: TickCount, moved: number): string =>
  `durable: ${DID[counts]} ${moved === 1 ? 'run' : 'runs'} (${moved})`

/** Waits that a stop cuts short. One reaction to the signal, however many waits there are. */
class Pause {
  readonly #sleep?: (ms: number) => Promise<unknown>
  #stopped = false
  #end?: () => void

  constructor(stopSignal: Promise<unknown>, sleep?: (ms: number) => Promise<unknown>) {
    this.#sleep = sleep
    const stop = () => {
      this.#stopped = true
      this.#end?.()
    }
    stopSignal.then(stop, stop)
  }

  get stopped(): boolean {
    return this.#stopped
  }

  wait(ms: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise((resolve) => {
      if (this.#sleep) {
        this.#end = resolve
        const awake = () => resolve()
        this.#sleep(ms).then(awake, awake)
        return
      }
      const cancel = systemTimers.after(ms, resolve)
      this.#end = () => {
        cancel()
        resolve()
      }
    })
  }
}
