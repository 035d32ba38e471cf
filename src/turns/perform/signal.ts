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
  // Once a turn is enough: its own deadline row asks for attention too.
  if (turn.registered.has(signalSeq) && !isOver(command, turn)) return
  turn.registered.add(signalSeq)
  if (timeoutMs !== undefined && !turn.history.at(seq)) {
    writeDeadline(turn, seq, timeoutName(token), turn.now() + timeoutMs)
  } else if (isOver(command, turn)) {
    return endOverdue(command, turn)
  }
  turn.reserve(signalSeq)
  register(command, turn, () => turn.release(signalSeq))
}

/** A wait of any kind on a token. */
export type Wait = Pick<CommandOf<'signal'>, 'seq' | 'signalSeq' | 'token' | 'timeoutMs'> & {
  /** What a timeout calls it; default the token. */
  label?: string
}

/** The take-or-register of a wait, and its second look at the end of the turn. */
export function signalWait(command: Pick<Wait, 'signalSeq' | 'token'>, turn: Turn): SignalWait {
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

/** Takes a payload or registers; a wait that is over by then ends. `done` is called afterwards. */
function register(command: CommandOf<'signal'>, turn: Turn, done: () => void): void {
  const then = () => {
    if (isSettled(turn, command.signalSeq) || !isOver(command, turn)) done()
    else expire(command, turn, done)
  }
  turn.journal.append({ wait: signalWait(command, turn), then }, { urgent: true })
}

/**
 * An earlier turn registered, and the deadline passed. A payload in the buffer still wins. But the token
 * is not taken from another run that waits on it by now, and neither is what is buffered for that one.
 */
function endOverdue(command: CommandOf<'signal'>, turn: Turn): void {
  turn.work(command.signalSeq, async () => {
    const end = (await heldByAnother(command, turn)) ? expire : register
    await new Promise<void>((done) => {
      end(command, turn, done)
      turn.ring()
    })
    return undefined
  })
}

async function heldByAnother(command: CommandOf<'signal'>, turn: Turn): Promise<boolean> {
  const { store } = turn.needs
  const { waiter } = signalWait(command, turn)
  const own = await store.listSignalWaitersByRunIds([turn.run.id])
  if (own.some(({ token, seq }) => token === waiter.token && seq === waiter.seq)) return false
  return store.hasSignalWaiter(waiter.token)
}

/** Ends the wait unless its position is settled by then; `landed` is called once that is durable. */
export function expire(command: Wait, turn: Turn, landed: () => void): void {
  const { signalSeq, token, timeoutMs = 0, label = token } = command
  const { waiter, row } = signalWait(command, turn)
  const error = new SignalTimeoutError(label, timeoutMs)
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
export function isOver({ seq, timeoutMs }: Wait, turn: Turn): boolean {
  const deadline = timeoutMs === undefined ? undefined : turn.history.at(seq)?.wakeAt
  return deadline !== undefined && deadline <= turn.now()
}

export function isSettled(turn: Turn, seq: number): boolean {
  const row = turn.history.at(seq)
  return row !== undefined && isSettledStatus(row.status)
}
