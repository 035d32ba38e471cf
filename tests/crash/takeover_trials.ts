/*
 * Two processes on one Postgres execute the same runs; one of them is killed while the other lives on and
 * takes over. Their lease is longer than in the other trials: a living process that is merely slow must
 * not lose its runs here.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { CrashData } from './data.ts'
import { report } from './random_trials.ts'
import type { Scoreboard } from './scoreboard.ts'
import { Stage } from './stage.ts'

export interface TakeoverTrialOptions {
  data: CrashData
  scoreboard: Scoreboard
  rounds: number
  random: () => number
}

const LEASE_MS = 1_500
const POLL_MS = 50
const RUNS = 8
const SHORTEST_LIFE_MS = 50
const LONGEST_LIFE_MS = 900
const END_MS = 60_000

export async function takeoverTrials(options: TakeoverTrialOptions): Promise<void> {
  const { data, rounds, random } = options
  for (let round = 1; round <= rounds; round++) {
    const stage = new Stage({ data, name: `t${round}`, leaseMs: LEASE_MS, pollMs: POLL_MS })
    try {
      const host = await stage.host()
      const doomed = stage.spawn('.doomed')
      const heir = stage.spawn('.heir')
      await stage.open(doomed, host, { continuations: true })
      await stage.open(heir, host, { continuations: true })
      const subjects = Array.from({ length: RUNS }, () => stage.subject(host, random() < 0.5))
      for (const [i, subject] of subjects.entries()) {
        // The doomed one starts most of them.
        void stage.tend(i % 4 === 3 ? heir : doomed, subject)
      }
      const lifetime = SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
      await pause(lifetime)
      await stage.kill(doomed)
      for (const subject of subjects) void stage.takeOver(heir, subject)
      await stage.rest(subjects, END_MS)
      const kind = `${data.dialect}, one of two processes killed after ${Math.round(lifetime)} ms`
      await report(stage, options, kind)
    } finally {
      await stage.close()
    }
  }
}
