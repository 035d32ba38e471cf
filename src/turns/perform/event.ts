/*
 * Event waits: register first, then look through what was published before. The publisher looks for waits
 * after it buffered, so one of both finds the other. The claim of an event and its row are one commit.
 */
import { acceptsEvent } from '../../foundation/event_match.ts'
import type { CommandOf } from '../../replay/commands.ts'
import type { Entry } from '../journal.ts'
import type { Turn } from '../turn.ts'
import { expire, isOver, isSettled, signalWait } from './signal.ts'
import { writeDeadline } from './timer.ts'
import { timeoutName } from '../../foundation/ids.ts'

/** Buffered events of a name that one wait looks at, oldest first. */
export const EVENT_BUFFER_SCAN_LIMIT = 50

export function performEvent(command: CommandOf<'event'>, turn: Turn): void {
  const { seq, signalSeq, timeoutMs } = command
  if (turn.isWorking(signalSeq)) return
  // Once a turn is enough: its own deadline row asks for attention too.
  if (turn.registered.has(signalSeq) && !isOver(command, turn)) return
  turn.registered.add(signalSeq)
  const label = `event:${command.name}`
  if (timeoutMs !== undefined && !turn.history.at(seq)) {
    writeDeadline(turn, seq, timeoutName(label), turn.now() + timeoutMs)
  }
  turn.work(signalSeq, async () => {
    await register(command, turn)
    if (!isSettled(turn, signalSeq)) await claimBuffered(command, turn)
    if (!isSettled(turn, signalSeq) && isOver(command, turn)) {
      await new Promise<void>((done) => {
        expire({ ...command, label }, turn, done)
        turn.ring()
      })
    }
    return undefined
  })
}

function register(command: CommandOf<'event'>, turn: Turn): Promise<void> {
  const wait = signalWait(command, turn)
  if (command.hidden && !turn.history.at(command.signalSeq)) {
    const row = { ...wait.row, status: 'running' as const, input: { match: command.match } }
    turn.write(row, { urgent: true })
  }
  return landed(turn, (then) => ({ wait, then }))
}

/** Takes the oldest event that is accepted and not too old, unless others take them all first. */
async function claimBuffered(command: CommandOf<'event'>, turn: Turn): Promise<void> {
  const { name, match, signalSeq } = command
  const { store, settings } = turn.needs
  const events = await store.listBufferedEvents(name, EVENT_BUFFER_SCAN_LIMIT)
  const youngest = turn.now() - (settings.eventBufferTtl ?? Infinity)
  for (const event of events) {
    if (event.publishedAt < youngest || !acceptsEvent(match, event.payload)) continue
    const { waiter, row } = signalWait(command, turn)
    const claim = { event: { ...event, name }, waiter, row: { ...row, output: event.payload } }
    await landed(turn, (then) => ({ claim, then }))
    if (isSettled(turn, signalSeq)) return
  }
}

/** Resolves once the entry is durable; never when the turn is lost, like everything in flight. */
function landed(turn: Turn, entry: (then: () => void) => Entry): Promise<void> {
  return new Promise((resolve) => {
    turn.journal.append(entry(resolve), { urgent: true })
    turn.ring()
  })
}
