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
import { SILENT_LEASES } from '../needs.ts'
import { lastSign } from './call_step.ts'

/** How often the undo's row is looked at while nothing is heard. */
const LOOK_MS = 1000

type Answer = Pick<StepResult, 'status' | 'error'>

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
  // An earlier turn sent it, and where tasks die with their process its handler may be alive.
  if (sender.isVolatile() && row.status === 'pending' && row.stepId === stepId) {
    const answer = await awaitSilence(turn, row)
    if (answer) return judge(answer)
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
    const until = turn.now() + patience
    const answer = await awaitAnswer(turn, pending, heard, () => turn.now() >= until)
    if (!answer) throw new RemoteStepTimeout(stepId, patience)
    judge(answer)
  } finally {
    stop()
  }
}

function judge({ status, error }: Answer): void {
  if (status === 'failed') throw new RemoteStepError(error?.message ?? 'failed', error)
}

/** The answer to an undo that is out; undefined once nobody shows any life of it. */
function awaitSilence(turn: Turn, pending: StepCheckpoint): Promise<Answer | undefined> {
  const { sender, settings } = turn.needs
  const patience = SILENT_LEASES * settings.leaseMs
  const isSilent = (row: StepCheckpoint | null) =>
    turn.now() >= lastSign(row ?? pending) + patience && !sender.isRunning(pending.stepId)
  return awaitAnswer(turn, pending, new Promise<never>(() => {}), isSilent)
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

/** The answer, from memory or from the row; undefined when a look at the row says that it is over. */
async function awaitAnswer(
  turn: Turn,
  pending: StepCheckpoint,
  heard: Promise<Answer>,
  isOver: (row: StepCheckpoint | null) => boolean
): Promise<Answer | undefined> {
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
    if (isOver(row)) return undefined
  }
}
