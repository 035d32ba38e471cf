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
  const retries: unknown = policy.retries
  if (retries === undefined) return
  if (typeof retries === 'number' && retries <= MOST_ATTEMPTS) return
  throw new InvalidArgumentError(`${where}: retries`, `must be a number up to ${MOST_ATTEMPTS}`)
}

/** What only a call may say: the flow-control queue it passes, and as whom. */
export function checkQueueing(where: string, options: StepDispatchOpts): void {
  const { queue, fairnessKey, priority, timeoutMs } = options
  const keys = { queue, fairnessKey }
  for (const [option, key] of Object.entries(keys)) {
    const problem = key === undefined ? undefined : keyProblem(key)
    if (problem) throw new InvalidArgumentError(`${where}: ${option}`, problem)
  }
  if (priority !== undefined && !Number.isFinite(priority)) {
    throw new InvalidArgumentError(`${where}: priority`, 'must be a number')
  }
  if (queue === undefined || timeoutMs === undefined) return
  throw new InvalidArgumentError(
    `${where}: queue`,
    'and timeoutMs exclude each other: a step with a liveness window is awaited, it cannot wait in line'
  )
}
