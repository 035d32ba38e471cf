/*
 * Entity operations. A call puts its open row and its wait in one commit, then sends; the operation carries
 * an id, so sending again after a crash applies it once.
 */
import { stepIdOf } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import type { Turn } from '../turn.ts'
import { isSettled, signalWait } from './signal.ts'

export function performEntity(command: CommandOf<'entity'>, turn: Turn): void {
  const { seq, replyTo } = command
  const row = turn.history.at(seq)
  if (turn.isWorking(seq) || (row && isSettledStatus(row.status))) return
  if (replyTo === undefined) return sendOnly(command, turn)
  if (turn.looksFirst(seq)) register(command, replyTo, turn)
}

/**
 * Put again by every turn: whatever became of the last registration, an answer finds this one, or lies in
 * the buffer. What an earlier turn sent is sent again once that turn may have died in between, and then
 * ever more seldom: an entity that is slow must not get more to read for it.
 */
function register(command: CommandOf<'entity'>, token: string, turn: Turn): void {
  const { seq, row: name } = command
  const row = turn.history.at(seq)
  const { leaseMs } = turn.needs.settings
  const dueAt = row && (row.wakeAt ?? row.startedAt.getTime() + leaseMs)
  const sends = dueAt === undefined || turn.now() >= dueAt
  turn.reserve(seq)
  if (!row) {
    turn.write(turn.newRow({ seq, name, kind: 'signal', status: 'running' }), { urgent: true })
  } else if (sends) {
    const wakeAt = turn.now() + leaseMs * 2 ** row.attempts
    turn.write({ ...row, attempts: row.attempts + 1, wakeAt }, { urgent: true })
  }
  const then = () => {
    if (!isSettled(turn, seq)) {
      if (sends) turn.send(() => send(command, turn))
      else turn.lookAgainAt(dueAt)
    }
    turn.release(seq)
  }
  turn.journal.append({ wait: signalWait({ signalSeq: seq, token }, turn), then }, { urgent: true })
}

/** Everything before it is durable first, as before any effect. */
function sendOnly(command: CommandOf<'entity'>, turn: Turn): void {
  const { seq, row: name } = command
  turn.reserve(seq)
  turn.journal.barrier(() =>
    turn.work(seq, async () => {
      await send(command, turn)
      return { row: turn.newRow({ seq, name, kind: 'local', status: 'completed' }) }
    })
  )
}

function send(command: CommandOf<'entity'>, turn: Turn): Promise<void> {
  const { name, key, op, arg, replyTo, seq } = command
  const { namespace } = turn.run
  const opId = stepIdOf(turn.run.id, seq)
  return turn.needs.entities.send({ name, key, op, arg, replyTo, opId, namespace })
}
