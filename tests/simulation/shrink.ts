/*
 * Shrinking: a smaller program that fails in the same way, under the same or another schedule.
 */
import { cuts } from './cuts.ts'
import type { SeedOptions } from './options.ts'
import { type Program, randomProgram } from './programs.ts'
import { simulate } from './world.ts'

/** Schedules tried for each smaller program, and how many worlds are played altogether. */
const SCHEDULES = 25
const WORLDS = 4000

export async function shrink(seed: number, options: SeedOptions, wanted?: string): Promise<string> {
  const first = await simulate({ seed, ...options })
  const kind = wanted ?? [...first.failures.keys()][0]
  if (kind === undefined) return `seed ${seed} passes`
  let best: { program: Program; seed: number } = { program: randomProgram(seed), seed }
  let worlds = 0

  const failingSeed = async (program: Program): Promise<number | undefined> => {
    const others = Array.from({ length: SCHEDULES }, (_, i) => seed * 1000 + i)
    for (const candidate of [best.seed, ...others]) {
      if (worlds++ > WORLDS) return undefined
      const { failures } = await simulate({ seed: candidate, ...options, program, solo: true })
      if (failures.has(kind)) return candidate
    }
    return undefined
  }

  const size = (program: Program) => JSON.stringify(program).length
  for (let smaller = true; smaller;) {
    smaller = false
    for (const program of cuts(best.program).sort((a, b) => size(a) - size(b))) {
      const found = await failingSeed(program)
      if (found === undefined) continue
      best = { program, seed: found }
      smaller = true
      break
    }
  }
  const trace: string[] = []
  const { failures } = await simulate({ ...options, ...best, solo: true, trace })
  return [
    JSON.stringify(best.program),
    ...trace,
    `${kind}: ${failures.get(kind) ?? 'only together with another run'}`,
  ].join('\n')
}
