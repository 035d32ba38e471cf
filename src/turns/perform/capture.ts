/*
 * Captures: values computed here once (`now`, `sideEffect`). The body sees them at once; they are
 * durable with the next commit, before anything could have observed them.
 */
import type { CommandOf } from '../../replay/commands.ts'
import type { Turn } from '../turn.ts'
import { runAttempt } from './attempt.ts'
import { presentable, settledRow } from './local_step.ts'

export function performCapture(command: CommandOf<'capture'>, turn: Turn): void {
  const { seq, name } = command
  if (turn.isWorking(seq)) return
  const about = {
    runId: turn.run.id,
    workflow: turn.run.workflow,
    seq,
    name,
    kind: 'local' as const,
  }
  turn.work(seq, async () => {
    const replaced = turn.history.at(seq)
    const begun = turn.newRow({ seq, name, kind: 'local', status: 'running' })
    turn.needs.emitter.emit({ type: 'step.started', ...about })
    const result = await runAttempt(
      { name, seq, attempt: 1, run: () => command.compute(turn.now()) },
      turn
    )
    if (turn.hold.lost) return undefined
    const at = turn.now()
    const row = settledRow(begun, result, { attempt: 1, at, enqueuedAt: begun.enqueuedAt })
    const durationMs = at - begun.startedAt.getTime()
    turn.needs.emitter.emit(
      result.ok
        ? { type: 'step.completed', ...about, output: result.value, durationMs }
        : { type: 'step.failed', ...about, error: row.error, durationMs }
    )
    return {
      row,
      lazy: true,
      retryOf: replaced?.status === 'failed' ? replaced.attempts : undefined,
      thrown: result.ok ? undefined : presentable(result.error, name),
    }
  })
}
