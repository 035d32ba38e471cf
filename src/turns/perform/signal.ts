/*
 * Signal waits: take a buffered payload or register, in one commit; a wait whose deadline passed ends
 * the same way. The first outcome recorded stands (invariant 3 for waits: never re-decided).
 */
import { SignalTimeoutError } from '../../errors.ts'
import { timeoutName } from '../../foundation/ids.ts'
import { signalName } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import type { SignalWait } from '../../store/ports/turn_commits.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import type { Turn } from '../turn.ts'
import { writeDeadline } from './timer.ts'

export function performSignal(command: CommandOf<'signal'>, turn: Turn): void {
  const { seq, signalSeq, token, timeoutMs } = command
  if (turn.isWorking(signalSeq)) return
  if (timeoutMs !== undefined && !turn.history.at(seq)) {
    writeDeadline(turn, seq, timeoutName(token), turn.now() + timeoutMs)
  } else if (isOver(command, turn)) {
    return expireRegistered(command, turn)
  }
  turn.reserve(signalSeq)
  turn.journal.append(
    { wait: signalWait(command, turn), then: () => looked(command, turn) },
    { urgent: true }
  )
}

/** The take-or-register of a wait, and its second look at the end of the turn. */
export function signalWait(command: CommandOf<'signal'>, turn: Turn): SignalWait {
  const { signalSeq, token } = command
  return {
    waiter: { token, runId: turn.run.id, seq: signalSeq, createdAt: new Date(turn.now()) },
    row: turn.newRow({
      seq: signalSeq,
      name: signalName(token),
      kind: 'signal',
      status: 'completed',
    }),
  }
}

/** Registered just now: the first look was part of that. */
function looked(command: CommandOf<'signal'>, turn: Turn): void {
  const { signalSeq } = command
  const release = () => turn.release(signalSeq)
  if (isSettled(turn, signalSeq) || !isOver(command, turn)) release()
  else expire(command, turn, release)
}

/**
 * Registered by an earlier turn: it is not registered again, or it would take the token from whoever
 * waits on it by now. A payload that a crash left beside a waiter is paired first, whosever it is.
 */
function expireRegistered(command: CommandOf<'signal'>, turn: Turn): void {
  turn.work(command.signalSeq, async () => {
    await turn.needs.store.pairSignal(command.token, turn.now())
    await new Promise<void>((landed) => {
      expire(command, turn, landed)
      turn.ring()
    })
    return undefined
  })
}

/** Ends the wait unless its position is settled by then; `landed` is called once that is durable. */
function expire(command: CommandOf<'signal'>, turn: Turn, landed: () => void): void {
  const { signalSeq, token, timeoutMs = 0 } = command
  const { waiter, row } = signalWait(command, turn)
  const error = new SignalTimeoutError(token, timeoutMs)
  const expired = {
    ...row,
    status: 'failed' as const,
    error: { message: error.message, code: error.code },
  }
  const then = () => {
    landed()
    // A delivery that was faster came back with the commit and stands already.
    if (isSettled(turn, signalSeq)) return
    turn.history.put(expired)
    turn.replay.changed([signalSeq])
  }
  turn.journal.append({ expiry: { waiter, row: expired }, then }, { urgent: true })
}

/** The deadline of a bounded wait passed. */
function isOver({ seq, timeoutMs }: CommandOf<'signal'>, turn: Turn): boolean {
  const deadline = timeoutMs === undefined ? undefined : turn.history.at(seq)?.wakeAt
  return deadline !== undefined && deadline <= turn.now()
}

function isSettled(turn: Turn, seq: number): boolean {
  const row = turn.history.at(seq)
  return row !== undefined && isSettledStatus(row.status)
}
