/*
 * Asks a subscriber now and then whether its connection still carries anything: one that died without a
 * word looks like one to which nobody says anything. An answer that does not come makes it connect again.
 */
import type { Cancel, Timers } from '../foundation/clock.ts'
import type { Pingable } from './client.ts'

/** Between two questions, in ms. */
export const PING_INTERVAL_MS = 30_000
const LONGEST_ANSWER_MS = 5_000

export interface WatchOptions {
  /** Between two questions, in ms; 0 or `false`: never. */
  everyMs: number | false
  timers: Timers
}

/** The answer stops it: a question on its way does not connect again then. */
export function watch(current: () => Pingable | undefined, options: WatchOptions): Cancel {
  const { everyMs, timers } = options
  if (everyMs === false || everyMs <= 0) return () => {}
  let isStopped = false
  let forget: Cancel | undefined
  const ask = (): void => {
    const connection = current()
    if (forget || connection?.status !== 'ready') return
    let isOver = false
    const settle = (isAlive: boolean): void => {
      if (isOver) return
      isOver = true
      forget?.()
      forget = undefined
      if (isAlive || isStopped) return
      // One that is connecting by itself, or was replaced, is left alone.
      if (connection === current() && connection.status === 'ready') connection.disconnect(true)
    }
    forget = timers.after(Math.min(LONGEST_ANSWER_MS, everyMs), () => settle(false))
    connection.ping().then(
      () => settle(true),
      () => settle(false)
    )
  }
  const cancel = timers.every(everyMs, ask)
  return () => {
    isStopped = true
    cancel()
    forget?.()
  }
}
