/*
 * Sagas: undoing, highest position first, every compensable step whose row is completed when the unwind
 * begins, whether or not the body still saw its result. The whole list is durable before the first undo
 * runs and is followed, not rebuilt, by later turns: a result that lands meanwhile would shift it.
 * An undo that fails for good is reported and skipped; it never masks the error that caused it.
 */
import { runInStepBody } from '../authoring/ambient.ts'
import { backoffDelay, maxAttempts } from '../foundation/backoff.ts'
import { sleepOn } from '../foundation/clock.ts'
import { toStepError, type StepError } from '../foundation/failure.ts'
import { undoName } from '../foundation/ids.ts'
import type { Undo } from '../replay/open_await.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import { dispatchUndo } from './perform/dispatched_undo.ts'
import type { Turn } from './turn.ts'

/** What an undo row says about the step it undoes. */
interface UndoInput {
  undoes: number
}

export async function unwindSaga(turn: Turn): Promise<void> {
  const rows = await turn.needs.store.listCheckpoints(turn.run.id)
  turn.check()
  closeAbandoned(turn, rows)
  const list = await recordedList(turn, rows)
  for (const row of list) {
    const { undoes } = row.input as UndoInput
    const undo = turn.replay.undoAt(undoes)
    const undone = rows.find((candidate) => candidate.seq === undoes)
    await undoOne(turn, row, undo, undone?.output)
  }
}

/** Local steps that a process died with and that nobody will execute again: no row of a run that is over says `running`. */
function closeAbandoned(turn: Turn, rows: StepCheckpoint[]): void {
  for (const row of rows) {
    const isOpen = row.kind === 'local' && row.status === 'running' && row.seq >= 0
    if (!isOpen || turn.isWorking(row.seq)) continue
    const error = { message: 'the run was cancelled before it ended', retryable: false }
    const finishedAt = new Date(turn.now())
    const closed: StepCheckpoint = { ...row, status: 'failed', error, finishedAt }
    turn.journal.append({ row: { row: closed } }, { urgent: false })
  }
}

/** The list of an earlier turn of this unwind, or a new one, made durable. */
async function recordedList(turn: Turn, rows: StepCheckpoint[]): Promise<StepCheckpoint[]> {
  const recorded = rows.filter((row) => row.seq < 0)
  // A requeue took the attempts of an earlier unwind back: that one is over.
  const followed = recorded.filter((row) => row.attempts > 0).sort((a, b) => b.seq - a.seq)
  if (followed.length > 0) return followed
  const completed = new Map(
    rows.filter((row) => row.status === 'completed').map((row) => [row.seq, row])
  )
  const targets = [...turn.replay.compensable()]
    .filter((seq) => completed.has(seq))
    .sort((a, b) => b - a)
  const list = targets.map((seq, index) => {
    const undo = turn.replay.undoAt(seq)
    return turn.newRow({
      seq: -(index + 1),
      name: undoName(completed.get(seq)!.name),
      kind: 'local',
      status: undo?.kind === 'dispatch' ? 'pending' : 'running',
      input: { undoes: seq } satisfies UndoInput,
    })
  })
  const replaced = new Map(recorded.map((row) => [row.seq, row]))
  for (const row of list) {
    const retryOf = replaced.get(row.seq)?.attempts
    turn.journal.append({ row: { row, retryOf } }, { urgent: true })
  }
  await turn.drain()
  return list
}

async function undoOne(
  turn: Turn,
  row: StepCheckpoint,
  undo: Undo | undefined,
  output: unknown
): Promise<void> {
  const { settings, emitter, random, timers } = turn.needs
  const startedAt = turn.now()
  const about = { runId: turn.run.id, workflow: turn.run.workflow, seq: row.seq, name: row.name }
  const policy = { ...(undo?.kind === 'dispatch' ? undo.policy : {}) }
  const allowed = Math.max(settings.compensationRetries, maxAttempts(policy), 1)
  if (row.status === 'completed') return
  let { error } = row
  // An attempt that is out is not over: it goes on, under its own number.
  let attempt = row.status === 'failed' ? row.attempts : row.attempts - 1
  while (attempt < allowed && error?.retryable !== false) {
    if (attempt > 0) await sleepOn(timers, backoffDelay(attempt, policy, random))
    turn.check()
    attempt += 1
    error = await attemptUndo(turn, row, undo, output, attempt)
    turn.check()
    if (!error) break
  }
  if (row.status === 'failed' && row.attempts === attempt) return
  const settled: StepCheckpoint = {
    ...row,
    status: error ? 'failed' : 'completed',
    attempts: attempt,
    error,
    startedAt: new Date(startedAt),
    finishedAt: new Date(turn.now()),
  }
  // A dispatched undo's own result settled the row already.
  turn.journal.append({ row: { row: settled, retryOf: attempt } }, { urgent: true })
  await turn.drain()
  const durationMs = turn.now() - startedAt
  if (error) emitter.emit({ type: 'step.failed', ...about, kind: 'local', error, durationMs })
  else emitter.emit({ type: 'step.completed', ...about, kind: 'local', durationMs })
}

async function attemptUndo(
  turn: Turn,
  row: StepCheckpoint,
  undo: Undo | undefined,
  output: unknown,
  attempt: number
): Promise<StepError | undefined> {
  if (!undo) return { message: 'the body no longer registers this undo', retryable: false }
  try {
    if (undo.kind === 'local') {
      await runInStepBody({ runId: turn.run.id, step: row.name }, async () => undo.run())
    } else {
      await dispatchUndo(turn, row, undo, output, attempt)
    }
    return undefined
  } catch (error) {
    return toStepError(error)
  }
}
