/*
 * Transactions: the user's writes and the record that they happened commit together. The record is
 * written last, under a lock of the run row, and only while the turn still holds the run: a turn that
 * lost its lease in user code rolls everything back.
 */
import { hasCode, toStepError } from '../../foundation/failure.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { StoreUnavailableError, TransactionSpoiledError } from '../../errors.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { type Completion, type Turn, TurnLostError } from '../turn.ts'
import { runAttempt } from './attempt.ts'
import { presentable, settledRow } from './local_step.ts'

export function performTransaction(command: CommandOf<'transaction'>, turn: Turn): void {
  const { seq } = command
  if (turn.isWorking(seq)) return
  turn.reserve(seq)
  turn.journal.barrier(() => turn.work(seq, () => execute(command, turn)))
}

async function execute(
  command: CommandOf<'transaction'>,
  turn: Turn
): Promise<Completion | undefined> {
  const { seq, name } = command
  const { store, emitter } = turn.needs
  const about = {
    runId: turn.run.id,
    workflow: turn.run.workflow,
    seq,
    name,
    kind: 'local' as const,
  }
  const begun = turn.newRow({ seq, name, kind: 'local', status: 'running' })
  const replaced = turn.history.at(seq)
  const fence = { owner: turn.hold.owner, turn: turn.run.turns ?? 0 }
  emitter.emit({ type: 'step.started', ...about })
  let failure: { error: unknown } | undefined
  let thrown: unknown
  try {
    const row = await store.transaction(async (tx): Promise<StepCheckpoint> => {
      const result = await runAttempt(
        { name, seq, attempt: 1, run: () => command.run(tx.raw) },
        turn
      )
      if (!result.ok) {
        failure = { error: presentable(result.error, name) }
        thrown = result.error
        throw thrown
      }
      const at = turn.now()
      const done = settledRow(begun, result, { attempt: 1, at, enqueuedAt: begun.enqueuedAt })
      if (turn.replay.concurrent) done.order = turn.history.takeOrder()
      // From here on nothing may be delivered before it.
      turn.history.put(done, { inFlight: true })
      turn.replay.changed([seq])
      await tx.saveCheckpoint(done, fence)
      return done
    })
    const durationMs = row.finishedAt.getTime() - begun.startedAt.getTime()
    emitter.emit({ type: 'step.completed', ...about, output: row.output, durationMs })
    return { row, durable: true }
  } catch (error) {
    if (isSpoiled(error)) failure = { error }
    // The connection went away under the body: that its statements failed then says nothing about it.
    else if (error !== thrown && hasCode(error, StoreUnavailableError.code)) failure = undefined
    // Not the body: the fence refused it, or the store failed and the outcome is unknown. Recovery
    // finds out.
    if (!failure) {
      throw new TurnLostError(
        `the transaction "${name}" of run ${turn.run.id} may have committed`,
        {
          cause: error,
        }
      )
    }
  }
  const at = turn.now()
  const row = settledRow(
    begun,
    { ok: false, error: failure.error },
    { attempt: 1, at, enqueuedAt: begun.enqueuedAt }
  )
  const durationMs = at - begun.startedAt.getTime()
  emitter.emit({ type: 'step.failed', ...about, error: toStepError(failure.error), durationMs })
  return {
    row,
    thrown: failure.error,
    retryOf: replaced?.status === 'failed' ? replaced.attempts : undefined,
  }
}

const isSpoiled = (error: unknown): boolean => hasCode(error, TransactionSpoiledError.code)
