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

function looked(command: CommandOf<'signal'>, turn: Turn): void {
  const { seq, signalSeq, token, timeoutMs } = command
  const deadline = turn.history.at(seq)?.wakeAt
  const open = !isSettled(turn, signalSeq)
  if (!open || timeoutMs === undefined || deadline === undefined || deadline > turn.now()) {
    turn.release(signalSeq)
    return
  }
  const { waiter, row } = signalWait(command, turn)
  const error = new SignalTimeoutError(token, timeoutMs)
  const expired = {
    ...row,
    status: 'failed' as const,
    error: { message: error.message, code: error.code },
  }
  turn.journal.append(
    {
      expiry: { waiter, row: expired },
      then: () => {
        turn.release(signalSeq)
        // A delivery that was faster came back with the commit and stands already.
        if (isSettled(turn, signalSeq)) return
        turn.history.put(expired)
        turn.replay.changed([signalSeq])
      },
    },
    { urgent: true }
  )
}

function isSettled(turn: Turn, seq: number): boolean {
  const row = turn.history.at(seq)
  return row !== undefined && isSettledStatus(row.status)
}
