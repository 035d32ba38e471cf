/*
 * Tasks: a local step hands the work over; the wait for its answer registers once that is durable. An
 * answer that comes earlier is in the buffer by then.
 */
import type { CommandOf } from '../../replay/commands.ts'
import type { Turn } from '../turn.ts'
import { performLocal } from './local_step.ts'
import { performSignal } from './signal.ts'

export function performTask(command: CommandOf<'task'>, turn: Turn): void {
  const { seq, handOver, wait } = command
  const row = turn.history.at(seq)
  if (row?.status !== 'completed') performLocal(handOver, turn)
  else if (!turn.history.isInFlight(seq)) performSignal(wait, turn)
}
