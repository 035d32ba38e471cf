/*
 * Kills at random moments: several runs in flight, one life after the other, each killed some time after
 * it took over; the last one finishes everything.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { undisturbed } from './boundary_trials.ts'
import type { CrashData } from './data.ts'
import { describe, judge } from './judge.ts'
import type { Life } from './life.ts'
import type { Scoreboard } from './scoreboard.ts'
import { Stage, type Subject } from './stage.ts'

export interface RandomTrialOptions {
  data: CrashData
  scoreboard: Scoreboard
  /** How many lives are killed. */
  kills: number
  random: () => number
}

const LEASE_MS = 400
const POLL_MS = 50
/** Runs that are kept in flight. */
const IN_FLIGHT = 6
const SHORTEST_LIFE_MS = 50
const LONGEST_LIFE_MS = 1_200
const END_MS = 60_000

export async function randomTrials(options: RandomTrialOptions): Promise<void> {
  const { data, scoreboard, kills, random } = options
  const stage = new Stage({ data, name: 'r', leaseMs: LEASE_MS, pollMs: POLL_MS })
  try {
    const host = await stage.host()
    const open = () => [...stage.subjects.values()].filter(({ ended }) => !ended)
    let next = stage.spawn('.1')
    for (let nth = 1; nth <= kills + 1; nth++) {
      const life: Life = next
      if (nth <= kills) next = stage.spawn(`.${nth + 1}`)
      await stage.open(life, host, { continuations: random() < 0.5 })
      const inherited = open()
      for (const subject of inherited) void stage.takeOver(life, subject)
      if (nth > kills) break
      const fresh = Array.from({ length: IN_FLIGHT - inherited.length }, () =>
        stage.subject(host, random() < 0.5)
      )
      for (const subject of fresh) void stage.tend(life, subject)
      const lifetime = SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
      await pause(lifetime)
      await stage.kill(life)
      scoreboard.say(`${data.dialect}: kill ${nth} after ${Math.round(lifetime)} ms`)
    }
    await stage.rest(open(), END_MS)
    await report(stage, options, `${data.dialect}, ${kills} kills at random moments`)
  } finally {
    await stage.close()
  }
}

/** One verdict a run. */
export async function report(
  stage: Stage,
  { data, scoreboard }: Pick<RandomTrialOptions, 'data' | 'scoreboard'>,
  kind: string
): Promise<void> {
  for (const subject of stage.subjects.values()) {
    const evidence = await stage.evidence(subject, undisturbed(data, subject.bad))
    const problems = judge(evidence)
    const what = `${kind}: ${nameOf(subject)}`
    const lines = stage
      .linesOf(subject)
      .filter(({ runId }) => runId === undefined || runId === subject.runId)
    if (problems.length > 0) scoreboard.fail(what, problems, describe({ ...evidence, lines }))
    else scoreboard.pass(what)
  }
}

const nameOf = ({ runId, bad }: Subject): string => `${bad ? 'bad' : 'good'} order ${runId}`
