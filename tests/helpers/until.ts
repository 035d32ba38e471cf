/*
 * The one way in which tests wait for something they cannot await: asked again and again, for a while.
 */
import { setImmediate as tick, setTimeout as pause } from 'node:timers/promises'

const BUDGET_MS = 6_000
const EAGER_ROUNDS = 50

/** Resolves with the first truthy answer; fails, saying what was waited for, when none comes. */
export async function until<T>(
  ask: () => T | Promise<T>,
  what: string | (() => unknown)
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + BUDGET_MS
  for (let round = 0; ; round++) {
    const answer = await ask()
    if (answer) return answer as NonNullable<T>
    if (performance.now() > giveUpAt) {
      throw new Error(`waited in vain for ${typeof what === 'string' ? what : await what()}`)
    }
    // In memory a few rounds are enough; a database gets time to answer.
    if (round < EAGER_ROUNDS) await tick()
    else await pause(1)
  }
}
