/*
 * Randomness from a seed: the only dice of the simulation.
 */
export type Random = () => number

/** A generator of numbers in [0, 1). */
export function seeded(seed: number): Random {
  let state = Math.imul(seed, 2654435761) >>> 0 || 1
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** A whole number in [0, n). */
export const below = (random: Random, n: number): number => Math.floor(random() * n)

export const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)]

/** A number in [0, 1) that depends on a text only: outcomes that every execution must agree on. */
export function fraction(text: string): number {
  let hash = 2166136261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619)
  return seeded(hash >>> 0)()
}
