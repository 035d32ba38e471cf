/*
 * Folding: the rows of a wave of children that all succeeded become one, once nothing waits for them any
 * more. What is folded is decided by the turn that saw the wave end, and done after its commit.
 */
import type { CommandOf } from '../replay/commands.ts'
import { type FoldMember, foldsOf } from '../replay/folds.ts'
import type { Turn } from './turn.ts'

/** Notes the members before `upTo` (an index) for folding, unless they are folded already. */
export function foldWaves(command: CommandOf<'fan'>, upTo: number, turn: Turn): void {
  for (const { folded, toSeq } of foldsOf(membersUpTo(command, upTo, turn))) {
    turn.history.markFolded(folded.seq, toSeq)
    turn.folds.push({ folded, toSeq })
  }
  command.folded = Math.max(command.folded, upTo)
}

function* membersUpTo(
  command: CommandOf<'fan'>,
  upTo: number,
  { history }: Turn
): Iterable<FoldMember> {
  for (let index = command.folded; index < upTo; index++) {
    const member = command.member(index)
    if (member.kind !== 'child') return
    const row = history.isFolded(member.seq) ? undefined : history.at(member.seq)
    yield { index, childId: member.childId, row }
  }
}
