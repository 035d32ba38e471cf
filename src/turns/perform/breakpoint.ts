/*
 * Breakpoints: an open row that names where the run stands, and a wait for the word to go on.
 */
import type { CommandOf } from '../../replay/commands.ts'
import type { Turn } from '../turn.ts'
import { isSettled, performSignal } from './signal.ts'

export function performBreakpoint(command: CommandOf<'breakpoint'>, turn: Turn): void {
  const { seq, name, token } = command
  if (isSettled(turn, seq)) return
  if (!turn.history.at(seq)) {
    turn.write(turn.newRow({ seq, name, kind: 'signal', status: 'pending' }), { urgent: true })
  }
  // Put again by every turn: whatever became of the last registration, `continue` finds this one.
  performSignal({ kind: 'signal', seq, signalSeq: seq, token }, turn)
}
