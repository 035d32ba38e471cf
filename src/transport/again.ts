/*
 * How long an answer waits that could not be handed on, before it is tried again.
 */
import { backoffDelay } from '../foundation/backoff.ts'
import { sleepOn, type Timers } from '../foundation/clock.ts'

const POLICY = { backoff: 'exp', backoffMs: 100, backoffMaxMs: 5_000, jitter: true } as const

/** After failure number `failures`, counted from 1: 100 ms doubling to 5 s, less up to half. */
export const beforeAgain = (failures: number, timers: Timers): Promise<void> =>
  sleepOn(timers, backoffDelay(failures, POLICY))
