/*
 * A step handler with a ceiling: one that still runs when it is reached fails, to be retried, and is
 * left to itself. It beats no more, and what it answers later is not heard.
 */
import type { StepHandler } from '../../types/step.ts'
import type { RemoteTask, StepResult } from '../../wire/messages.ts'
import { runStepHandler } from '../run_step_handler.ts'
import type { RunOptions } from '../run_turn.ts'

export async function runStep(
  task: RemoteTask,
  handler: StepHandler | undefined,
  { clock, timers, silenced, beat, timeoutMs }: RunOptions & { timeoutMs?: number }
): Promise<StepResult> {
  const startedAt = clock()
  let over = false
  const running = runStepHandler(task, handler, {
    clock,
    timers,
    emitBeat: (one) => (over || silenced() ? undefined : beat(one)),
  })
  if (timeoutMs === undefined) return running
  const { runId, seq, stepId, attempt } = task
  let cancel = () => {}
  const late = new Promise<StepResult>((resolve) => {
    cancel = timers.after(timeoutMs, () => {
      over = true
      const message = `the handler of ${task.name} still ran after ${timeoutMs}ms (stepTimeoutMs)`
      const error = { message, code: 'step_timeout', retryable: true }
      resolve({ runId, seq, stepId, status: 'failed', error, startedAt, attempt })
    })
  })
  return Promise.race([running, late]).finally(() => cancel())
}
