/*
 * Folding: the rows of a wave of children that all succeeded become one, once nothing waits for them any
 * more. What is folded is decided by the turn that saw the wave end, and done after its commit.
 */
import type { CommandOf } from '../replay/commands.ts'
import { type FoldMember, foldsOf } from '../replay/folds.ts'
import type { Turn } from './turn.ts'

type FanCommand = CommandOf<'fan'>

/**
 * Notes the waves before `upTo` (an index) for folding, unless they are folded already. The first wave
 * waits for the fan's end: its first row takes the place of the whole fan in the order (invariant 7).
 */
export function foldWaves(command: FanCommand, upTo: number, turn: Turn): void {
  fold(command, Math.max(command.folded, command.waveSize), upTo, turn)
  command.folded = Math.max(command.folded, upTo)
}

/** Notes all that is left of a fan that is over. */
export function foldFan(command: FanCommand, turn: Turn): void {
  fold(command, 0, Math.min(command.waveSize, command.size), turn)
  foldWaves(command, command.size, turn)
}

function fold(command: FanCommand, from: number, upTo: number, turn: Turn): void {
  for (const { folded, toSeq } of foldsOf(members(command, from, upTo, turn))) {
    turn.history.markFolded(folded.seq, toSeq)
    turn.folds.push({ folded, toSeq })
  }
}

function* members(
  command: FanCommand,
  from: number,
  upTo: number,
  { history }: Turn
): Iterable<FoldMember> {
  for (let index = from; index < upTo; index++) {
    const member = command.member(index)
    if (member.kind !== 'child') return
    const row = history.isFolded(member.seq) ? undefined : history.at(member.seq)
    yield { index, childId: member.childId, row }
  }
}
