/*
 * Marks: known values recorded at a position. Durable with the next commit; nothing observed them before.
 */
import type { CommandOf } from '../../replay/commands.ts'
import type { Turn } from '../turn.ts'

export function performMark(command: CommandOf<'mark'>, turn: Turn): void {
  const { seq, name, output } = command
  if (turn.history.at(seq)) return
  turn.write(turn.newRow({ seq, name, kind: 'local', status: 'completed', output }), {
    urgent: false,
  })
}
