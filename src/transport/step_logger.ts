/*
 * The logger of one step attempt: collects what the body records, throttles its heartbeats, and is the
 * ambient `currentStep()` of everything the body calls. Owns the event list until `finish` hands it
 * over; from then on it records and beats nothing, so a promise that the body dropped cannot write into
 * a result that is gone.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Cancel,
  type Clock,
  type Timers,
  systemClock,
  systemTimers,
} from '../foundation/clock.ts'
import { messageOf, toStepError } from '../foundation/failure.ts'
import { randomId } from '../foundation/ids.ts'
import { toStored } from '../foundation/json.ts'
import type {
  StepEvent,
  StepEventLevel,
  StepLogger,
  SubProcessHandle,
  SubStepStatus,
} from '../types/step.ts'

/** Least time between two heartbeats of a body, and the rhythm of automatic ones. In ms. */
export const HEARTBEAT_INTERVAL_MS = 5000

const CURRENT_STEP: unique symbol = Symbol.for('@agora/durable:current-step') as never

const scopes = globalThis as { [CURRENT_STEP]?: AsyncLocalStorage<StepLogger> }
const currentStepScope = () => (scopes[CURRENT_STEP] ??= new AsyncLocalStorage())

/**
 * The logger of the step body that runs on this async path: the very instance the body received.
 * `undefined` outside of a step.
 */
export function currentStep(): StepLogger | undefined {
  return currentStepScope().getStore()
}

/** Runs a step body so that everything it calls finds `logger`. Returns what `fn` returns. */
export function runWithStepLogger<T>(logger: StepLogger, fn: () => T): T {
  return currentStepScope().run(logger, fn)
}

export interface StepLoggerOptions {
  clock?: Clock
  timers?: Timers
  /** Sends one heartbeat; without it heartbeats do nothing, as in a local step. */
  beat?: (progress: unknown, repeated?: boolean) => void
  /** Least time between two heartbeats in ms; default 5000. */
  heartbeatIntervalMs?: number
}

interface SubProcess {
  name: string
  group?: string
  startedAt: number
  done: boolean
}

/** `StepLogger` over a list of events. Every method is bound: a body may destructure it. */
export class RecordingStepLogger implements StepLogger {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #beat?: (progress: unknown, repeated?: boolean) => void
  readonly #heartbeatIntervalMs: number
  readonly #events: StepEvent[] = []
  readonly #subProcesses = new Map<string, SubProcess>()
  /** The sub-process of each async path, so that parallel ones do not claim each other's lines. */
  #subProcessScope?: AsyncLocalStorage<string>
  #progress: unknown
  #lastBeatAt?: number
  #nextBeat?: Cancel
  #finished = false

  constructor(options: StepLoggerOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#timers = options.timers ?? systemTimers
    this.#beat = options.beat
    this.#heartbeatIntervalMs = options.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS
  }

  readonly debug = (message: string, data?: unknown): void => this.#line('debug', message, data)
  readonly info = (message: string, data?: unknown): void => this.#line('info', message, data)
  readonly warn = (message: string, data?: unknown): void => this.#line('warn', message, data)
  readonly error = (message: string, data?: unknown): void => this.#line('error', message, data)

  readonly heartbeat = (progress?: unknown): void => {
    if (!this.#beat || this.#finished) return
    if (progress !== undefined) this.#progress = snapshot(progress)
    const due = this.#lastBeatAt === undefined ? 0 : this.#lastBeatAt + this.#heartbeatIntervalMs
    const wait = due - this.#clock()
    // A clock that was set back must not silence the step.
    if (wait <= 0 || wait > this.#heartbeatIntervalMs) this.#send(false)
    else this.#nextBeat ??= this.#timers.after(wait, () => this.#send(false))
  }

  readonly sub = (name: string, status: SubStepStatus, message?: string, data?: unknown): void =>
    this.#record(
      { level: levelOf(status), message: message ?? `${name}: ${status}`, name, status },
      data
    )

  readonly subEvent: StepLogger['subEvent'] = (event) => {
    const { id, phase, status } = event
    const open = this.#subProcesses.get(id)
    if (status !== undefined && open) {
      if (open.done) return
      open.done = true
    }
    this.#record(
      {
        level: levelOf(status),
        message: event.message ?? `${event.name}: ${status ?? phase ?? 'started'}`,
        subId: id,
        name: event.name,
        group: event.group ?? open?.group,
        status,
        phase,
      },
      status !== undefined && open ? this.#withDuration(event.data, open) : event.data
    )
  }

  readonly subProcess = async <T>(
    name: string,
    body: (sp: SubProcessHandle) => Promise<T> | T,
    options: { group?: string; id?: string } = {}
  ): Promise<T> => {
    const id = options.id ?? randomId()
    const { group } = options
    this.#subProcesses.set(id, { name, group, startedAt: this.#clock(), done: false })
    const end = (status: SubStepStatus, message?: string) =>
      this.subEvent({ id, name, group, status, message })
    const handle: SubProcessHandle = {
      phase: (label) => this.subEvent({ id, name, group, phase: label }),
      skip: (reason) => end('skipped', reason),
      fail: (reason) => end('failed', reason),
    }
    this.#subProcessScope ??= new AsyncLocalStorage()
    try {
      const value = await this.#subProcessScope.run(id, () => body(handle))
      end('ok')
      return value
    } catch (error) {
      end('failed', messageOf(error))
      throw error
    }
  }

  /** Sends a heartbeat now, with the freshest progress known. */
  repeatBeat(): void {
    // A beat of the body that waits for its turn goes with it.
    this.#send(this.#nextBeat === undefined)
  }

  #send(repeated: boolean): void {
    if (!this.#beat || this.#finished) return
    this.#nextBeat?.()
    this.#nextBeat = undefined
    this.#lastBeatAt = this.#clock()
    this.#beat(this.#progress, repeated)
  }

  /** Ends the attempt: answers what was recorded, `undefined` when nothing was, and falls silent. */
  finish(): StepEvent[] | undefined {
    this.#finished = true
    this.#nextBeat?.()
    this.#nextBeat = undefined
    return this.#events.length > 0 ? this.#events : undefined
  }

  #line(level: StepEventLevel, message: string, data: unknown): void {
    const subId = this.#subProcessScope?.getStore()
    const owner = subId === undefined ? undefined : this.#subProcesses.get(subId)
    this.#record({ level, message, subId, name: owner?.name, group: owner?.group }, data)
  }

  #record(event: Omit<StepEvent, 'at' | 'data'>, data: unknown): void {
    if (this.#finished) return
    const recorded: StepEvent = { at: this.#clock(), level: event.level, message: event.message }
    if (event.subId !== undefined) recorded.subId = event.subId
    if (event.name !== undefined) recorded.name = event.name
    if (event.group !== undefined) recorded.group = event.group
    if (event.status !== undefined) recorded.status = event.status
    if (event.phase !== undefined) recorded.phase = event.phase
    const stored = snapshot(data)
    if (stored !== undefined) recorded.data = stored
    this.#events.push(recorded)
  }

  /** The data of a terminal event with its duration, unless the caller measured one itself. */
  #withDuration(data: unknown, subProcess: SubProcess): unknown {
    const durationMs = this.#clock() - subProcess.startedAt
    if (data === undefined || data === null) return { durationMs }
    if (typeof data !== 'object' || Array.isArray(data)) return data
    return { ...data, durationMs: (data as { durationMs?: unknown }).durationMs ?? durationMs }
  }
}

function levelOf(status: SubStepStatus | undefined): StepEventLevel {
  if (status === 'failed') return 'error'
  return status === 'skipped' ? 'warn' : 'info'
}

/** What a logged value looks like now; a value without JSON form must not fail the step that logs it. */
function snapshot(value: unknown): unknown {
  if (value === undefined) return undefined
  try {
    // The members of an Error are invisible to JSON, and errors are what people log.
    return toStored(value instanceof Error ? toStepError(value) : value, 'logged data')
  } catch (error) {
    return `[not JSON: ${messageOf(error)}]`
  }
}
