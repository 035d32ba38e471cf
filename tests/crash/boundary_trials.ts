/*
 * Kills at every boundary. An undisturbed run names the boundaries of a workflow; then for each of them a
 * run is brought to exactly that one, its process is killed there, and a new process has to finish it.
 * The boundaries of a recovery are found on the way, and the recovering process is killed there as well.
 */
import { describe, judge, timelineOf } from './judge.ts'
import type { CrashData } from './data.ts'
import type { Life } from './life.ts'
import type { Scoreboard } from './scoreboard.ts'
import { Stage, type Subject } from './stage.ts'

export interface BoundaryTrialOptions {
  data: CrashData
  scoreboard: Scoreboard
  bad: boolean
  /** Runs that share a process, each of them stopped at a boundary of its own; 1 kills for each alone. */
  together: number
  /** Trials at once. */
  parallel: number
  /** Lives on and takes over in every trial; without it each trial starts a new process for that. */
  heir?: Life
}

const LEASE_MS = 400
const POLL_MS = 50
/** Hosts of one process poll less often, so that together they do not poll more. */
const HOSTS_A_POLL = 6
const HOLD_MS = 30_000
const END_MS = 60_000
/** Whether a result or a timer comes first is up to the machine, so now and then a run takes another way. */
const TRIES = 3
const MISSED_AT_MOST = 0.2

/** Where the first, the second … life of a run ends; the last one is never killed. */
type Plan = string[]

interface Tried {
  plan: Plan
  /** How many of the planned kills happened there. */
  reached: number
  problems: string[]
  detail: string
  /** Boundaries that the run came by, life by life. */
  labels: string[][]
}

let stages = 0

export async function boundaryTrials(options: BoundaryTrialOptions): Promise<void> {
  const { data, scoreboard, bad } = options
  const kind = `${data.dialect}, ${bad ? 'bad' : 'good'} order`
  const [untouched] = await trial(options, [[]])
  const first = untouched.labels[0]
  report(scoreboard, `${kind}, nothing killed`, untouched)
  scoreboard.say(`${kind}: ${first.length} boundaries`)

  const later = new Map<string, Plan>()
  const collect = ({ plan, labels }: Tried) => {
    const ofRecovery = (labels.at(-1) ?? []).filter((label) => label.includes('recovery'))
    for (const label of ofRecovery) if (!later.has(label)) later.set(label, [...plan, label])
  }
  const plans = first.map((label) => [label])
  const missed = await killAt(options, kind, plans, collect)
  scoreboard.say(`${kind}: ${later.size} boundaries of recoveries`)
  missed.push(...(await killAt(options, kind, [...later.values()], () => {})))
  if (missed.length > (plans.length + later.size) * MISSED_AT_MOST) {
    scoreboard.fail(`${kind}: runs come by the boundaries they are expected at`, [
      `${missed.length} were missed ${TRIES} times: ${missed.join('; ')}`,
    ])
  }
}

/** Tries each plan until its kills landed where they should; answers those that never did. */
async function killAt(
  options: BoundaryTrialOptions,
  kind: string,
  plans: Plan[],
  onTried: (tried: Tried) => void
): Promise<Plan[]> {
  const { scoreboard, together, parallel } = options
  let left = plans
  for (let attempt = 1; left.length > 0 && attempt <= TRIES; attempt++) {
    const missed: Plan[] = []
    const groups = chunks(left, together)
    await Promise.all(
      Array.from({ length: parallel }, async () => {
        for (let group = groups.shift(); group; group = groups.shift()) {
          for (const tried of await trial(options, group)) {
            const what = `${kind}, killed ${tried.plan.join(', then ')}`
            onTried(tried)
            const landed = tried.reached === tried.plan.length
            if (landed || tried.problems.length > 0) report(scoreboard, what, tried)
            else missed.push(tried.plan)
          }
        }
      })
    )
    left = missed
  }
  for (const plan of left) scoreboard.say(`missed  ${kind}, killed ${plan.join(', then ')}`)
  return left
}

function report(scoreboard: Scoreboard, what: string, { problems, detail }: Tried): void {
  if (problems.length > 0) scoreboard.fail(what, problems, detail)
  else scoreboard.pass(what)
}

/** Brings one run to each plan, all in one process per life. */
async function trial(options: BoundaryTrialOptions, plans: Plan[]): Promise<Tried[]> {
  const { data, bad, heir } = options
  const pollMs = POLL_MS * Math.max(1, plans.length / HOSTS_A_POLL)
  const stage = new Stage({ data, name: `b${++stages}`, leaseMs: LEASE_MS, pollMs })
  const lives = Math.max(...plans.map((plan) => plan.length)) + 1
  try {
    const subjects: Subject[] = []
    while (subjects.length < plans.length) subjects.push(stage.subject(await stage.host(), bad))
    const reached = plans.map(() => 0)
    const processes = Array.from({ length: lives }, (_, nth) =>
      heir && nth === lives - 1 ? stage.borrow(heir) : stage.spawn(`.${nth + 1}`)
    )
    for (const [nth, life] of processes.entries()) {
      await life.ready
      const open = subjects.filter(({ ended }) => !ended)
      for (const subject of open) {
        const target = plans[subjects.indexOf(subject)][nth]
        await stage.open(life, subject, { target, announce: true })
        if (nth === 0) void stage.tend(life, subject)
        else void stage.takeOver(life, subject)
      }
      await stage.rest(open, nth < lives - 1 ? HOLD_MS : END_MS)
      if (nth === lives - 1) break
      for (const [i, subject] of subjects.entries()) if (subject.held) reached[i] += 1
      await stage.kill(life)
    }
    return await Promise.all(
      subjects.map(async (subject, i) => {
        const evidence = await stage.evidence(subject, undisturbed(data, bad))
        if (plans[i].length === 0) {
          timelines.set(keyOf(data, bad), timelineOf(evidence.stored, subject.runId))
        }
        const lines = stage.linesOf(subject)
        return {
          plan: plans[i],
          reached: reached[i],
          problems: judge(evidence),
          detail: describe({ ...evidence, lines }),
          labels: processes.map(({ name }) =>
            lines.flatMap((line) =>
              line.life === name && line.at === 'boundary' ? [line.text!] : []
            )
          ),
        }
      })
    )
  } finally {
    await stage.close()
  }
}

/** Histories of undisturbed runs. */
const timelines = new Map<string, string[]>()
const keyOf = ({ dialect }: CrashData, bad: boolean): string => `${dialect} ${bad}`

/** The history of an order that nobody killed, once one has been played. */
export function undisturbed(data: CrashData, bad: boolean): string[] | undefined {
  return timelines.get(keyOf(data, bad))
}

function chunks<T>(items: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size)
  )
}
