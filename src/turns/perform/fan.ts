/*
 * Fans: starts the members of the waves that may be in flight, each as its own command; the rest follows
 * from their rows. A fan that failed fast starts nothing more.
 */
import { childOfRow } from '../../foundation/ids.ts'
import type { OpenAwait } from '../../replay/open_await.ts'
import { isFinalFailure, maxAttempts } from '../../foundation/backoff.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import type { Turn } from '../turn.ts'
import { foldFan, foldWaves } from '../fold_waves.ts'
import { performCall } from './call_step.ts'
import { performChild } from './child.ts'

type FanCommand = CommandOf<'fan'>

export function performFan(command: FanCommand, turn: Turn): void {
  const { from, to } = wavesInFlight(command, turn)
  foldWaves(command, from, turn)
  for (let index = from; index < to; index++) {
    const member = command.member(index)
    const row = turn.history.at(member.seq)
    if (row?.status === 'completed') continue
    if (member.kind === 'child') performChild(member, turn)
    else performCall(member, turn)
  }
}

/**
 * The body sees a fan's answer. One that failed fast abandons its children, what succeeded is folded; a
 * replay says it again, which is harmless.
 */
export function endFan({ command, reading }: OpenAwait, turn: Turn): void {
  if (command.kind !== 'fan') return
  foldFan(command, turn)
  if (reading.state !== 'answered' || !reading.decided) return
  const runIds = unfinishedChildren(command, turn)
  if (runIds.length > 0) turn.needs.effect({ kind: 'cancelRuns', runIds })
}

function unfinishedChildren(command: FanCommand, turn: Turn): string[] {
  const ids: string[] = []
  for (let index = command.oldest; index < command.size; index++) {
    const member = command.member(index)
    const row = turn.history.at(member.seq)
    if (!row) break
    if (member.kind === 'child' && !isSettledStatus(row.status)) {
      ids.push(childOfRow(row.name) ?? member.childId)
    }
  }
  return ids
}

/** The range of positions whose oldest wave is awaited: what is settled outside it wakes nobody. */
export function awaitedWave(command: FanCommand, turn: Turn): { from: number; to: number } {
  const { from } = wavesInFlight(command, turn)
  const last = Math.min(from + command.waveSize, command.size) - 1
  return { from: command.seq + from, to: command.seq + last }
}

/** Indexes of the members that may be in flight: the oldest wave that is not over, and its follower. */
function wavesInFlight(command: FanCommand, turn: Turn): { from: number; to: number } {
  const { size, waveSize, wavesAtOnce } = command
  while (
    command.oldest + waveSize < size &&
    isOver(command, turn, command.oldest, command.oldest + waveSize)
  ) {
    command.oldest += waveSize
  }
  const from = command.oldest
  return { from, to: Math.min(size, from + waveSize * wavesAtOnce) }
}

function isOver(command: FanCommand, turn: Turn, from: number, to: number): boolean {
  for (let index = from; index < to; index++) {
    const row = turn.history.at(command.seq + index)
    if (!row || !isMemberOver(command, index, row)) return false
  }
  return true
}

function isMemberOver(command: FanCommand, index: number, row: StepCheckpoint): boolean {
  if (!isSettledStatus(row.status)) return false
  if (row.status === 'completed') return true
  const member = command.member(index)
  return member.kind === 'call' && isFinalFailure(row, maxAttempts(member.options))
}
