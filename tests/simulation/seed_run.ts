/*
 * One seed: its world with faults, and for a share of the seeds the comparison of the engine's modes.
 */
import { compareModes } from './equivalence.ts'
import { calm, randomProgram } from './programs.ts'
import { simulate, type WorldOptions } from './world.ts'

export interface SeedReport {
  seed: number
  /** `kind: text` of everything that broke. */
  failures: string[]
  events: number
  crashes: number
  tasks: number
  rows: number
  statuses: string[]
}

/** Every how many seeds the modes are compared. */
const COMPARED = 4

export async function runSeed(
  seed: number,
  options: Omit<WorldOptions, 'seed'> & { compare?: boolean } = {}
): Promise<SeedReport> {
  const { compare = seed % COMPARED === 0, ...world } = options
  const { failures, stats } = await simulate({ seed, ...world })
  const texts = [...failures].map(([kind, text]) => `${kind}: ${text}`)
  if (compare) {
    const program = calm(options.program ?? randomProgram(seed))
    for (const difference of await compareModes(program)) {
      texts.push(`modes: ${difference}`)
    }
  }
  return { seed, failures: texts, ...stats }
}
