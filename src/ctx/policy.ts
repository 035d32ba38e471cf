/*
 * The policy of a step, declared and per call together: numbers that mean something, or a refusal that
 * names the option before a position is taken.
 */
import { InvalidArgumentError } from '../errors.ts'
import { isDurationMs } from '../foundation/duration.ts'
import { keyProblem } from '../foundation/keys.ts'
import type { StepConfig, StepDispatchOpts } from '../types/step.ts'

const DURATIONS = ['timeoutMs', 'pickupTimeoutMs', 'backoffMs', 'backoffMaxMs'] as const

/** Attempts are kept in 32-bit integers. */
const MOST_ATTEMPTS = 2 ** 31 - 1

/** `where` is what the error begins with, such as `ctx.step("charge")`. */
export function checkPolicy(where: string, policy: StepConfig): void {
  for (const option of DURATIONS) {
    const ms: unknown = policy[option]
    if (ms === undefined || isDurationMs(ms)) continue
    throw new InvalidArgumentError(`${where}: ${option}`, 'must be 0 or more milliseconds')
  }
  const { backoff, jitter, retries } = policy as Record<string, unknown>
  if (backoff !== undefined && backoff !== 'fixed' && backoff !== 'exp') {
    throw new InvalidArgumentError(`${where}: backoff`, "must be 'fixed' or 'exp'")
  }
  if (jitter !== undefined && typeof jitter !== 'boolean') {
    throw new InvalidArgumentError(`${where}: jitter`, 'must be true or false')
  }
  if (retries === undefined) return
  if (typeof retries === 'number' && retries <= MOST_ATTEMPTS) return
  throw new InvalidArgumentError(`${where}: retries`, `must be a number up to ${MOST_ATTEMPTS}`)
}

/** Throws for an in-process undo that is none. */
export function checkUndo(where: string, compensate: unknown): void {
  if (compensate === undefined || typeof compensate === 'function') return
  throw new InvalidArgumentError(`${where}: compensate`, 'must be a function')
}

/** What is a priority everywhere. */
export function checkPriority(where: string, priority: unknown): void {
  if (priority === undefined || Number.isFinite(priority)) return
  throw new InvalidArgumentError(`${where}: priority`, 'must be a number')
}

/** As whom, how urgently and through which transport a step is dispatched. */
export function checkDispatch(where: string, options: StepDispatchOpts): void {
  const { queue, fairnessKey, priority, transport } = options
  for (const [option, key] of Object.entries({ queue, fairnessKey, transport })) {
    const problem = key === undefined ? undefined : keyProblem(key)
    if (problem) throw new InvalidArgumentError(`${where}: ${option}`, problem)
  }
  checkPriority(where, priority)
}

/** What only a call may say: the flow-control queue it passes, and as whom. */
export function checkQueueing(where: string, options: StepDispatchOpts): void {
  checkDispatch(where, options)
  const { queue, timeoutMs } = options
  if (queue === undefined || timeoutMs === undefined) return
  throw new InvalidArgumentError(
    `${where}: queue`,
    'and timeoutMs exclude each other: a step with a liveness window is awaited, it cannot wait in line'
  )
}
