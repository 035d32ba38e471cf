/*
 * What the command line says about every world: a rule switched off, another store.
 */
import { memoryBackend } from './backend.ts'
import { type RuleName, withoutRule } from './rules.ts'
import type { WorldOptions } from './world.ts'

export interface Chosen {
  off?: RuleName[]
  store?: 'memory' | 'sqlite'
}

export type SeedOptions = Omit<WorldOptions, 'seed'> & { compare?: boolean }

export async function worldOptions(chosen: Chosen): Promise<(seed: number) => SeedOptions> {
  const { off = [], store = 'memory' } = chosen
  if (store === 'sqlite') throw new Error('not yet')
  const backend: WorldOptions['backend'] = (dice) =>
    memoryBackend(dice, (memory, context) =>
      off.reduce((all, rule) => withoutRule(all, rule, context), memory)
    )
  return () => ({ backend, off: new Set(off), compare: off.length > 0 ? false : undefined })
}
