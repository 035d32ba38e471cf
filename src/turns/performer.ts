/*
 * Performers: one per command kind. A performer looks at the rows of its command's positions and does
 * what is missing: it may read ports, append to the journal and start local work. It may not write a run
 * status and may not wake anything. It may be called again for the same await at any time.
 */
import type { CommandKind, CommandOf } from '../replay/commands.ts'
import { performAttributes } from './perform/attributes.ts'
import { performBreakpoint } from './perform/breakpoint.ts'
import { performCall } from './perform/call_step.ts'
import { performCapture } from './perform/capture.ts'
import { performChild } from './perform/child.ts'
import { performEntity } from './perform/entity.ts'
import { performEvent } from './perform/event.ts'
import { performFan } from './perform/fan.ts'
import { performLocal } from './perform/local_step.ts'
import { performMark } from './perform/mark.ts'
import { performSignal } from './perform/signal.ts'
import { performSpawn } from './perform/spawn.ts'
import { performTask } from './perform/task.ts'
import { performTimer } from './perform/timer.ts'
import { performTransaction } from './perform/transaction.ts'
import type { OpenAwait } from '../replay/open_await.ts'
import type { Turn } from './turn.ts'

type Performer<K extends CommandKind> = (command: CommandOf<K>, turn: Turn) => void

const PERFORMERS: { [K in CommandKind]: Performer<K> } = {
  local: performLocal,
  capture: performCapture,
  transaction: performTransaction,
  mark: performMark,
  call: performCall,
  timer: performTimer,
  signal: performSignal,
  event: performEvent,
  task: performTask,
  breakpoint: performBreakpoint,
  attributes: performAttributes,
  entity: performEntity,
  child: performChild,
  spawn: performSpawn,
  fan: performFan,
}

export function perform(entry: OpenAwait, turn: Turn): void {
  const { command } = entry
  ;(PERFORMERS[command.kind] as Performer<CommandKind>)(command, turn)
}

const OUTSIDE = new Set<CommandKind>([
  'signal',
  'event',
  'task',
  'breakpoint',
  'entity',
  'call',
  'child',
  'fan',
])

/**
 * Waits for news rather than for a time: its wake-up can be lost, and its answer may lie outside its
 * rows. A turn that continues a live body asks again.
 */
export function waitsForNews(entry: OpenAwait): boolean {
  return OUTSIDE.has(entry.command.kind)
}
