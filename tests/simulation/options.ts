/*
 * What the command line says about every world: a rule switched off, another store.
 */
import { memoryBackend } from './backend.ts'
import { type RuleName, withoutRule } from './rules.ts'
import type { WorldOptions } from './world.ts'

export interface Chosen {
  off?: RuleName[]
  store?: StoreName
}

export const STORES = ['memory', 'sqlite', 'postgres'] as const
export type StoreName = (typeof STORES)[number]

export type SeedOptions = Omit<WorldOptions, 'seed'> & { compare?: boolean }

/** Answers the options of every seed, and how to let go of what they share. */
export async function worldOptions(
  chosen: Chosen
): Promise<{ options: SeedOptions; dispose(): Promise<void> }> {
  const { off = [], store = 'memory' } = chosen
  if (store !== 'memory') {
    if (off.length > 0) throw new Error('rules are switched off in the in-memory store only')
    const { lucidBackends } = await import('./lucid_backend.ts')
    const { create, dispose } = await lucidBackends(store)
    return { options: { backend: create, compare: false }, dispose }
  }
  const backend: WorldOptions['backend'] = (dice) =>
    memoryBackend(dice, (memory, context) =>
      off.reduce((all, rule) => withoutRule(all, rule, context), memory)
    )
  const compare = off.length > 0 ? false : undefined
  return { options: { backend, off: new Set(off), compare }, dispose: async () => {} }
}
