/*
 * A dispatched undo: sent like a step, awaited under the lease. Its result settles the undo's own row on
 * whichever instance receives it; this turn hears of it in memory or finds it there.
 */
import { RemoteStepError, RemoteStepTimeout } from '../../errors.ts'
import type { Undo } from '../../replay/open_await.ts'
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import type { StepConfig } from '../../types/step.ts'
import type { StepResult } from '../../wire/messages.ts'
import { routingToken } from '../../wire/names.ts'
import type { Turn } from '../turn.ts'

/** How often the undo's row is looked at while nothing is heard. */
const LOOK_MS = 1000

export async function dispatchUndo(
  turn: Turn,
  row: StepCheckpoint,
  undo: Extract<Undo, { kind: 'dispatch' }>,
  output: unknown,
  attempt: number
): Promise<void> {
  const { sender, settings, carriers, emitter } = turn.needs
  const stepId = `${turn.run.id}:compensate:${undo.step}:${-row.seq}:${attempt}`
  const pending: StepCheckpoint = {
    ...row,
    stepId,
    kind: 'remote',
    status: 'pending',
    attempts: attempt,
    enqueuedAt: new Date(turn.now()),
    workerGroup: routingToken(undo.step, turn.run.namespace),
  }
  // A failed attempt settled the row: only the next attempt may open it again.
  const retryOf = attempt > 1 ? attempt - 1 : undefined
  turn.journal.append({ row: { row: pending, retryOf } }, { urgent: true })
  await turn.drain()
  // The earlier attempt was answered after all: that answer stands.
  if (turn.history.at(row.seq)?.status === 'completed') return
  const { timeoutMs } = undo.policy as StepConfig
  const patience = timeoutMs ?? settings.compensationTimeoutMs
  let stop = () => {}
  const heard = new Promise<StepResult>((resolve) => {
    stop = sender.onceSettled(stepId, resolve)
  })
  const about = { runId: turn.run.id, workflow: turn.run.workflow, seq: row.seq, name: row.name }
  emitter.emit({ type: 'step.started', ...about, kind: 'local' })
  try {
    await sender.send({
      runId: turn.run.id,
      seq: row.seq,
      name: undo.step,
      stepId,
      group: pending.workerGroup ?? undo.step,
      input: { input: undo.input, output },
      traceparent: carriers.traceparent(),
      context: carriers.context(),
      attempt,
    })
    const result = await awaitResult(turn, pending, heard, turn.now() + patience)
    if (!result) throw new RemoteStepTimeout(stepId, patience)
    if (result.status === 'failed') {
      throw new RemoteStepError(result.error?.message ?? 'failed', result.error)
    }
  } finally {
    stop()
  }
}

/** The undo's row; a look that fails is no failure of the undo. */
async function undoRow(turn: Turn, seq: number): Promise<StepCheckpoint | null> {
  try {
    return await turn.needs.store.getCheckpoint(turn.run.id, seq)
  } catch (error) {
    turn.needs.report(error, `a look at undo ${seq} of run ${turn.run.id}`)
    return null
  }
}

/** The result, from memory or from the row; undefined when `until` (epoch ms) passed. */
async function awaitResult(
  turn: Turn,
  pending: StepCheckpoint,
  heard: Promise<Pick<StepResult, 'status' | 'error'>>,
  until: number
): Promise<Pick<StepResult, 'status' | 'error'> | undefined> {
  for (;;) {
    let cancel = () => {}
    const look = new Promise<undefined>((resolve) => {
      cancel = turn.needs.timers.after(LOOK_MS, () => resolve(undefined))
    })
    const result = await Promise.race([heard, look])
    cancel()
    turn.check()
    if (result) return result
    const row = await undoRow(turn, pending.seq)
    turn.check()
    if (row && row.stepId === pending.stepId && isSettledStatus(row.status)) {
      return { status: row.status, error: row.error }
    }
    if (turn.now() >= until) return undefined
  }
}
