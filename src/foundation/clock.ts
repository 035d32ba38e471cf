/*
 * Time. The only place that reads the system clock or sets a timer; everything the engine decides by
 * time asks a `Clock`, everything it does later asks `Timers`, so that a test or a simulation owns both.
 */

/** Epoch milliseconds. */
export type Clock = () => number

/** Stops what a timer would have done; calling it twice is harmless. */
export type Cancel = () => void

export interface Timers {
  /** Runs `fn` once after `ms`. The timer never keeps the process alive. */
  after(ms: number, fn: () => void): Cancel
  /** Runs `fn` every `ms` until cancelled. The timer never keeps the process alive. */
  every(ms: number, fn: () => void): Cancel
}

/** setTimeout fires at once for a delay it cannot hold; longer waits are cut to this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

export const systemClock: Clock = () => Date.now()

export const systemTimers: Timers = {
  after(ms, fn) {
    const timer = setTimeout(fn, Math.min(Math.max(0, ms), LONGEST_TIMEOUT_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
  every(ms, fn) {
    const timer = setInterval(fn, Math.min(Math.max(1, ms), LONGEST_TIMEOUT_MS))
    timer.unref()
    return () => clearInterval(timer)
  },
}

/** A promise that resolves after `ms` on these timers. */
export function sleepOn(timers: Timers, ms: number): Promise<void> {
  return new Promise((resolve) => void timers.after(ms, resolve))
}

/**
 * What the work comes to, or a rejection with `expired()` once `ms` passed before it ended. The work goes
 * on: `late` is told what it came to after all, when it did not reject.
 */
export async function within<T>(
  timers: Timers,
  ms: number,
  work: () => T | Promise<T>,
  expired: () => Error,
  late?: (value: T) => void
): Promise<T> {
  let cancel: Cancel = () => {}
  let isOver = false
  const over = new Promise<never>((_, reject) => {
    cancel = timers.after(ms, () => {
      isOver = true
      reject(expired())
    })
  })
  // Started in a promise: what throws at once rejects like the rest.
  const working = (async () => work())()
  working.then(
    (value) => isOver && late?.(value),
    () => {}
  )
  try {
    return await Promise.race([working, over])
  } finally {
    cancel()
  }
}

/** Keeps the process alive until it is called off; for work that consists of waiting. */
export function keepProcessAlive(): Cancel {
  const timer = setInterval(() => {}, LONGEST_TIMEOUT_MS)
  return () => clearInterval(timer)
}

/** Resolves once the event loop came round: timers and IO had their turn. */
export function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
