/*
 * Timers: a deadline recorded once. The row is complete from the start; its `wakeAt` is what counts.
 */
import type { CommandOf } from '../../replay/commands.ts'
import type { Turn } from '../turn.ts'

export function performTimer(command: CommandOf<'timer'>, turn: Turn): void {
  const { seq, name } = command
  if (turn.history.at(seq)) return
  writeDeadline(turn, seq, name, command.at ?? turn.now() + (command.afterMs ?? 0))
}

/** Records a deadline (epoch ms) at a position; stores keep whole milliseconds. */
export function writeDeadline(turn: Turn, seq: number, name: string, at: number): void {
  const wakeAt = Math.ceil(at)
  turn.write(turn.newRow({ seq, name, kind: 'sleep', status: 'completed', wakeAt }), {
    urgent: false,
  })
}
