/*
 * Local steps: a body that runs here, at least once. Everything before it is durable before it starts,
 * its completion is durable before the workflow sees it. Retries happen in process, under the lease.
 */
import { FatalError } from '../../errors.ts'
import { backoffDelay, maxAttempts } from '../../foundation/backoff.ts'
import { isWorkflowControlFlowSignal } from '../../foundation/control_flow.ts'
import { isFatal, messageOf, toStepError } from '../../foundation/failure.ts'
import { UnstorableValueError } from '../../foundation/json.ts'
import { sleepOn } from '../../foundation/clock.ts'
import type { CommandOf } from '../../replay/commands.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { Completion, Turn } from '../turn.ts'
import { type AttemptResult, runAttempt } from './attempt.ts'

export function performLocal(command: CommandOf<'local'>, turn: Turn): void {
  const { seq } = command
  if (turn.isWorking(seq)) return
  turn.reserve(seq)
  turn.journal.barrier(() => turn.work(seq, () => execute(command, turn)))
}

async function execute(command: CommandOf<'local'>, turn: Turn): Promise<Completion | undefined> {
  const { seq, name, options } = command
  const { emitter, settings, timers, random } = turn.needs
  const replaced = turn.history.at(seq)
  const startedAt = new Date(turn.now())
  const begun = turn.newRow({ seq, name, kind: 'local', status: 'running' })
  if (settings.trackStepStart && replaced?.status !== 'failed') turn.journal.hold(begun)
  const about = {
    runId: turn.run.id,
    workflow: turn.run.workflow,
    seq,
    name,
    kind: 'local' as const,
  }
  emitter.emit({ type: 'step.started', ...about })

  const allowed = maxAttempts(options)
  for (let attempt = 1; ; attempt++) {
    const result = await runAttempt(
      { name, seq, attempt, timeoutMs: options.timeoutMs, run: command.run },
      turn
    )
    if (turn.hold.lost) return undefined
    const row = settledRow(begun, result, { attempt, at: turn.now(), enqueuedAt: startedAt })
    const durationMs = turn.now() - startedAt.getTime()
    const retryOf = replaced?.status === 'failed' ? replaced.attempts : undefined
    if (result.ok) {
      emitter.emit({ type: 'step.completed', ...about, output: result.value, durationMs })
      return { row, retryOf }
    }
    emitter.emit({ type: 'step.failed', ...about, error: row.error, durationMs })
    if (attempt >= allowed || neverRetried(result.error)) {
      return { row, thrown: presentable(result.error, name), retryOf }
    }
    await sleepOn(timers, backoffDelay(attempt, options, random))
    // Nor does a turn that can write nothing any more begin another attempt.
    if (turn.journal.failure || turn.hold.lost) return undefined
  }
}

/** The row that records how local work ended. */
export function settledRow(
  begun: StepCheckpoint,
  result: AttemptResult,
  at: { attempt: number; at: number; enqueuedAt: Date }
): StepCheckpoint {
  const row: StepCheckpoint = {
    ...begun,
    status: result.ok ? 'completed' : 'failed',
    attempts: at.attempt,
    enqueuedAt: at.enqueuedAt,
    finishedAt: new Date(at.at),
  }
  if (result.events) row.events = result.events
  if (result.ok) row.output = result.value
  else row.error = toStepError(presentable(result.error, begun.name))
  return row
}

/** What the body is told of a result without a JSON form: a fatal error that names the step. */
export function presentable(error: unknown, name: string): unknown {
  if (error instanceof UnstorableValueError) {
    return new FatalError(`step "${name}": ${messageOf(error)}`, error.code)
  }
  return error
}

function neverRetried(error: unknown): boolean {
  return (
    isFatal(error) || error instanceof UnstorableValueError || isWorkflowControlFlowSignal(error)
  )
}
