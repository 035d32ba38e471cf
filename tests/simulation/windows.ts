/*
 * Liveness windows: in some worlds steps that pass no queue are awaited by their turn, and given up when nothing is
 * heard of it for so long. Its worker may well be at work: then a later attempt meets an earlier one.
 */
import { below, pick, seeded } from './random.ts'

export interface Windows {
  timeoutMs: number
  pickupTimeoutMs?: number
}

/** The windows of a world, drawn apart from its story; most have none. */
export function windowsOf(seed: number): Windows | undefined {
  const random = seeded(seed ^ 0x61c88647)
  if (random() < 0.5) return undefined
  const timeoutMs = 60 + below(random, 700)
  return pick(random, [{ timeoutMs }, { timeoutMs, pickupTimeoutMs: 2 * timeoutMs }])
}

/** Whether the step of this leaf has a window; never one that passes a queue. */
export const isWatched = (leafId: number): boolean => leafId % 3 !== 0
