/*
 * Entity operations. A call puts its open row and its wait in one commit, then sends; the operation carries
 * an id, so sending again after a crash applies it once.
 */
import { stepIdOf } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import type { Turn } from '../turn.ts'
import { signalWait } from './signal.ts'

export function performEntity(command: CommandOf<'entity'>, turn: Turn): void {
  const { seq, replyTo } = command
  const row = turn.history.at(seq)
  if (turn.isWorking(seq) || (row && isSettledStatus(row.status))) return
  if (replyTo === undefined) return sendOnly(command, turn)
  if (!turn.looksFirst(seq)) return
  if (!row) return register(command, replyTo, turn)
  // Sent by an earlier turn, unless that one died in between: told again once that can be known.
  const askedAt = row.startedAt.getTime()
  if (turn.now() - askedAt >= turn.needs.settings.leaseMs) turn.send(() => send(command, turn))
  else turn.lookAgainAt(askedAt + turn.needs.settings.leaseMs)
}

function register(command: CommandOf<'entity'>, token: string, turn: Turn): void {
  const { seq, row: name } = command
  turn.reserve(seq)
  turn.write(turn.newRow({ seq, name, kind: 'signal', status: 'running' }), { urgent: true })
  const then = () => {
    turn.send(() => send(command, turn))
    turn.release(seq)
  }
  const wait = signalWait({ signalSeq: seq, token }, turn)
  turn.journal.append({ wait, then }, { urgent: true })
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
