/*
 * One attempt of a body in this process: inside the step-body scope (which refuses workflow primitives),
 * the restored request context, the logger's scope and the interceptors.
 */
import { runInStepBody } from '../../authoring/ambient.ts'
import { StepTimeoutError } from '../../errors.ts'
import { presentable } from '../../foundation/failure.ts'
import { toStored } from '../../foundation/json.ts'
import { RecordingStepLogger, runWithStepLogger } from '../../transport/step_logger.ts'
import type { StepEvent, StepLogger } from '../../types/step.ts'
import type { Turn } from '../turn.ts'

export type AttemptResult =
  | { ok: true; value: unknown; events?: StepEvent[] }
  | { ok: false; error: unknown; events?: StepEvent[] }

export interface Attempt {
  name: string
  seq: number
  /** 1-based. */
  attempt: number
  timeoutMs?: number
  run: (log: StepLogger) => unknown
}

/** Runs the body once; a value comes back in its stored form. Never rejects. */
export async function runAttempt(attempt: Attempt, turn: Turn): Promise<AttemptResult> {
  const { needs, run } = turn
  const log = new RecordingStepLogger({ clock: needs.clock, timers: needs.timers })
  const invocation = {
    runId: run.id,
    workflow: run.workflow,
    stepName: attempt.name,
    seq: attempt.seq,
    attempt: attempt.attempt,
  }
  const scoped = () =>
    runInStepBody({ runId: run.id, step: attempt.name }, () =>
      needs.carriers.rehydrate(needs.carriers.context(), () =>
        runWithStepLogger(log, async () => attempt.run(log))
      )
    )
  try {
    const body = needs.interceptors.around(invocation, scoped)
    const value = await withTimeout(body, attempt, turn)
    const what = `the result of step "${attempt.name}"`
    return {
      ok: true,
      value: toStored(value, what, needs.settings.maxPayloadBytes),
      events: log.finish(),
    }
  } catch (error) {
    return { ok: false, error: presentable(error), events: log.finish() }
  }
}

async function withTimeout<T>(body: Promise<T>, attempt: Attempt, turn: Turn): Promise<T> {
  const { timeoutMs } = attempt
  if (timeoutMs === undefined) return body
  let cancel = () => {}
  const expired = new Promise<never>((_, reject) => {
    cancel = turn.needs.timers.after(timeoutMs, () =>
      reject(new StepTimeoutError(`step "${attempt.name}" took longer than ${timeoutMs}ms`))
    )
  })
  try {
    return await Promise.race([body, expired])
  } finally {
    cancel()
    body.catch(() => {})
  }
}
