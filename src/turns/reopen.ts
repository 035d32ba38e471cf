/*
 * Re-opened runs: what an operator's retry runs again. The record is replayed to its end with the old
 * failures in place: those the body survived stay recorded, or a caught failure would turn into a
 * success beneath the rows that followed from it; the one it died of, and those it never saw, are tried
 * anew. The verdict is one commit, never sent twice: a late copy would erase what came after it.
 */
import { createCtx } from '../ctx/create_ctx.ts'
import { runInWorkflowScope } from '../authoring/ambient.ts'
import { History } from '../replay/history.ts'
import type { OpenAwait } from '../replay/open_await.ts'
import { Replay } from '../replay/replay.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { RunnableWorkflow } from './needs.ts'
import type { Turn } from './turn.ts'

/** A failure that a requeue took back and no turn has judged yet. */
export const awaitsVerdict = (row: StepCheckpoint): boolean =>
  row.status === 'failed' && row.attempts === 0 && row.error?.reset !== undefined

export async function judgeReopened(
  turn: Turn,
  workflow: RunnableWorkflow,
  input: unknown
): Promise<void> {
  const rows = [...turn.history.rows()]
  const delivered: OpenAwait[] = []
  const replay = new Replay({
    runId: turn.run.id,
    history: new History(rows.map(asRecorded)),
    onDelivered: (entry) => delivered.push(entry),
  })
  const { maxPayloadBytes, webhookUrl } = turn.needs.settings
  const { transaction } = turn.needs.store.capabilities
  const ctx = createCtx({ replay, maxPayloadBytes, transactions: transaction, webhookUrl })
  replay.start(() => runInWorkflowScope(ctx, () => workflow.fn(ctx, input)))
  replay.onActivity = () => turn.ring()
  for (;;) {
    await replay.settle(() => Infinity)
    turn.check()
    if (replay.end || replay.broken || replay.openCount > 0) break
    // The body waits for something else than its ctx.
    await turn.bell()
  }
  const died = replay.end?.kind === 'threw' ? delivered.at(-1) : undefined
  const survived = new Set(
    delivered.filter((entry) => entry !== died).flatMap((entry) => positions(entry))
  )
  await replay.unwind()

  for (const row of rows.filter(awaitsVerdict)) {
    const judged = survived.has(row.seq) ? asRecorded(row) : asRetried(row)
    turn.history.put(judged)
    turn.journal.append({ row: { row: judged, retryOf: 0 }, once: true }, { urgent: true })
  }
  await turn.drain()
}

/** The failure as it was before the operator asked for a retry. */
function asRecorded(row: StepCheckpoint): StepCheckpoint {
  if (!awaitsVerdict(row)) return row
  const { reset, ...error } = row.error!
  // A child's failure is its recorded completion.
  if (row.kind === 'signal') {
    return { ...row, status: 'completed', attempts: reset!.attempts, error: undefined }
  }
  return {
    ...row,
    attempts: reset!.attempts,
    wakeAt: undefined,
    error: { ...error, retryable: reset!.retryable },
  }
}

/**
 * The failure that is tried again, without its place in the order. A child is waited for anew: no attempt
 * says that it is to be joined again (perform/child.ts).
 */
function asRetried(row: StepCheckpoint): StepCheckpoint {
  if (row.kind === 'signal') {
    return { ...row, status: 'running', output: undefined, order: undefined, error: undefined }
  }
  const error = { ...row.error!, reset: undefined }
  return { ...row, order: undefined, error }
}

const positions = (entry: OpenAwait): number[] => [...entry.seqs()]
