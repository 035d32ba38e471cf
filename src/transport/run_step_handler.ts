/*
 * The one way in which a transport runs a step body: context, logger, beats, and an outcome as data.
 * Pure apart from the handler, and never throws: whatever happens becomes a `StepResult`.
 * The input must be the task's own copy (decoded or cloned when it was dispatched): a body may change it.
 */
import { type Clock, type Timers, systemClock, systemTimers } from '../foundation/clock.ts'
import { UnstorableValueError, toStored } from '../foundation/json.ts'
import { type StepError, isolate, presentable, toStepError } from '../foundation/failure.ts'
import type { StepHandler } from '../types/step.ts'
import type { Heartbeat, RemoteTask, StepResult } from '../wire/messages.ts'
import { RecordingStepLogger, runWithStepLogger } from './step_logger.ts'

/** Filled by the context package: opens a scope seeded with a propagated snapshot around `fn`. */
const CONTEXT_SCOPE: unique symbol = Symbol.for('@agora/context:scope') as never

const REPEATED = new WeakSet<Heartbeat>()

/**
 * The beat was sent because its handler still runs, not because it, or the pickup, said so. Known only in
 * the process of the handler.
 */
export const isRepeatedBeat = (beat: Heartbeat): boolean => REPEATED.has(beat)

export interface RunStepOptions {
  /** Sends a heartbeat; one that fails is dropped. */
  emitBeat?: (beat: Heartbeat) => unknown
  clock?: Clock
  timers?: Timers
  /** Repeats the beat every so many ms for as long as the handler runs. Off when absent. */
  repeatBeatMs?: number
  /** Largest output in bytes of JSON; default 8 MiB. */
  maxPayloadBytes?: number
}

/**
 * Runs `handler` on a task. A pickup beat goes out before the handler starts. A throw becomes a failed
 * result with `code` and `details`, `retryable: false` for a fatal one; so do an output without JSON
 * form (`unstorable_value`) and a missing handler (`no_handler`).
 */
export async function runStepHandler(
  task: RemoteTask,
  handler: StepHandler | undefined,
  options: RunStepOptions = {}
): Promise<StepResult> {
  const { clock = systemClock, timers = systemTimers } = options
  const startedAt = clock()
  if (!handler) {
    return failed(task, startedAt, {
      message: `no handler for ${task.name}`,
      code: 'no_handler',
      retryable: false,
    })
  }

  const beat = beatSender(task, clock, options.emitBeat)
  const logger = new RecordingStepLogger({ clock, timers, beat })
  beat?.(undefined)
  const stopBeats =
    beat && options.repeatBeatMs
      ? timers.every(options.repeatBeatMs, () => logger.repeatBeat())
      : undefined

  let result: StepResult
  try {
    const output = await inContext(task, () =>
      runWithStepLogger(logger, () => handler(task.input, logger))
    )
    result = completed(task, startedAt, storedOutput(task, output, options.maxPayloadBytes))
  } catch (error) {
    result = failed(task, startedAt, describe(error))
  }
  stopBeats?.()
  const events = logger.finish()
  if (events) result.events = events
  return result
}

function completed(task: RemoteTask, startedAt: number, output: unknown): StepResult {
  const { runId, seq, stepId, attempt } = task
  return { runId, seq, stepId, status: 'completed', output, startedAt, attempt }
}

function failed(task: RemoteTask, startedAt: number, error: StepError): StepResult {
  const { runId, seq, stepId, attempt } = task
  return { runId, seq, stepId, status: 'failed', error, startedAt, attempt }
}

function beatSender(task: RemoteTask, clock: Clock, emitBeat: RunStepOptions['emitBeat']) {
  if (!emitBeat) return undefined
  const { runId, seq, stepId, group } = task
  return (progress: unknown, repeated = false): void => {
    const beat: Heartbeat = { runId, seq, stepId, group, at: clock() }
    if (progress !== undefined) beat.progress = progress
    if (repeated) REPEATED.add(beat)
    // A lost beat costs nothing but a later one (invariant 9).
    isolate(() => emitBeat(beat))
  }
}

function inContext<T>(task: RemoteTask, fn: () => T): T {
  const scope = (globalThis as { [CONTEXT_SCOPE]?: unknown })[CONTEXT_SCOPE]
  if (task.context === undefined || typeof scope !== 'function') return fn()
  return (scope as (snapshot: Record<string, unknown>, fn: () => T) => T)(task.context, fn)
}

function storedOutput(task: RemoteTask, output: unknown, maxBytes?: number): unknown {
  return toStored(output, `the output of step "${task.name}"`, maxBytes)
}

function describe(thrown: unknown): StepError {
  const error = toStepError(thrown)
  // The same code would give the same value again.
  return presentable(thrown) instanceof UnstorableValueError
    ? { ...error, retryable: false }
    : error
}
