/*
 * What the demo says while it runs, and how it waits: bounded polls, never a fixed sleep.
 */
import { setTimeout } from 'node:timers/promises'

const PAUSE_MS = 50

const beganAt = performance.now()

export const seconds = (): string => ((performance.now() - beganAt) / 1000).toFixed(1)

export function say(text: string): void {
  console.log(`[${seconds().padStart(5)}s] ${text}`)
}

/** Resolves when `holds` does. Rejects after `timeoutMs`, saying what it waited for. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  timeoutMs: number
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs / 1000} seconds in vain until ${what}`)
    }
    await setTimeout(PAUSE_MS)
  }
}
