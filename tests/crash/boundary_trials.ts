/*
 * Kills at every boundary. The calmest of some undisturbed runs names the boundaries of a workflow; then
 * for each of them a run is brought to exactly that one, its process is killed there, and a new process
 * has to finish it.
 * Each of them has to be hit: a run that came by another way is tried again, in the end at a boundary that
 * amounts to the same (`target.ts`), and one that is missed every time is a failure.
 * The boundaries of a recovery are found on the way, and the recovering process is killed there as well. Whether
 * a killed run needs one is a matter of moments: one that comes by no more is said, and is no failure.
 */
import { describe, judge, timelineOf } from './judge.ts'
import type { CrashData } from './data.ts'
import type { Life } from './life.ts'
import type { Scoreboard } from './scoreboard.ts'
import { Stage, type Subject } from './stage.ts'

export interface BoundaryTrialOptions {
  data: CrashData
  scoreboard: Scoreboard
  /** Runs that share a process, each of them stopped at a boundary of its own; 1 kills for each alone. */
  together: number
  /** Trials at once. */
  parallel: number
  /** How often a boundary is tried under its own name, before one that amounts to it will do. */
  exactTries: number
  /** Lives on and takes over in every trial; without it each trial starts a new process for that. */
  heir?: Life
}

const LEASE_MS = 400
const POLL_MS = 50
/** Hosts of one process poll less often, so that together they do not poll more. */
const HOSTS_A_POLL = 6
const HOLD_MS = 30_000
const END_MS = 60_000
const NEAR_TRIES = 5
/** Undisturbed runs of each kind; the one with the fewest boundaries names them. */
const LESSONS = 3

interface Plan {
  bad: boolean
  /** Where the first, the second … life of the run ends; the one after them is not killed. */
  kills: string[]
  /** Boundaries that amount to these will do; see `target.ts`. */
  slack?: number
}

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
  const { data, scoreboard } = options
  const orders = Array.from({ length: 2 * LESSONS }, (_, i) => ({ bad: i % 2 === 1, kills: [] }))
  const lessons = await trial(options, orders)
  for (const tried of lessons) report(options, tried)
  const plans = [false, true].flatMap((bad) => {
    // What a busy machine adds, such as a claim for news that came late, need not come again.
    const all = lessons.filter(({ plan }) => plan.bad === bad).map(({ labels }) => labels[0])
    const labels = all.toSorted((a, b) => a.length - b.length)[0]
    scoreboard.say(`${inWords(data, { bad, kills: [] })}: ${labels.length} boundaries`)
    return labels.map((label): Plan => ({ bad, kills: [label] }))
  })
  const ofRecovery = new Map<string, Plan>()
  const missed = await killAt(options, plans, ({ plan, labels }) => {
    for (const label of labels.at(-1) ?? []) {
      const key = `${plan.bad} ${label}`
      if (!label.includes('recovery') || ofRecovery.has(key)) continue
      ofRecovery.set(key, { bad: plan.bad, kills: [...plan.kills, label] })
    }
  })
  for (const plan of missed) {
    const tries = options.exactTries + NEAR_TRIES
    scoreboard.fail(inWords(data, plan), [`the run never came by there, in ${tries} tries`])
  }
  scoreboard.say(`${data.dialect}: ${ofRecovery.size} boundaries of recoveries`)
  const unseen = await killAt(options, [...ofRecovery.values()], () => {})
  for (const plan of unseen) scoreboard.say(`unseen  ${inWords(data, plan)}`)
}

/** Tries each plan until its kills landed where they should; answers those that never did. */
async function killAt(
  options: BoundaryTrialOptions,
  plans: Plan[],
  onTried: (tried: Tried) => void
): Promise<Plan[]> {
  const { data, scoreboard, together, parallel, exactTries } = options
  const tries = exactTries + NEAR_TRIES
  let left = plans
  for (let attempt = 1; left.length > 0 && attempt <= tries; attempt++) {
    const missed: Plan[] = []
    const slack = Math.max(0, attempt - exactTries)
    const groups = chunks(
      left.map((plan) => ({ ...plan, slack })),
      together
    )
    await Promise.all(
      Array.from({ length: parallel }, async () => {
        for (let group = groups.shift(); group; group = groups.shift()) {
          for (const tried of await trial(options, group)) {
            onTried(tried)
            const landed = tried.reached === tried.plan.kills.length
            if (landed || tried.problems.length > 0) report(options, tried)
            else missed.push(tried.plan)
          }
        }
      })
    )
    for (const plan of missed) scoreboard.say(`again   ${inWords(data, plan)}`)
    left = missed
  }
  return left
}

function report({ data, scoreboard }: BoundaryTrialOptions, tried: Tried): void {
  const what = inWords(data, tried.plan) + instead(tried)
  if (tried.problems.length > 0) scoreboard.fail(what, tried.problems, tried.detail)
  else scoreboard.pass(what)
}

/** Names the boundaries that were taken in place of the planned ones. */
function instead({ plan, reached, labels }: Tried): string {
  const taken = plan.kills.slice(0, reached).flatMap((label, nth) => {
    const last = labels[nth].at(-1)
    return last === undefined || last === label ? [] : [last]
  })
  return taken.length === 0 ? '' : ` (in its place ${taken.join(', ')})`
}

function inWords({ dialect }: CrashData, { bad, kills }: Plan): string {
  const killed = kills.length === 0 ? 'not killed' : `killed ${kills.join(', then ')}`
  return `${dialect}, ${bad ? 'bad' : 'good'} order, ${killed}`
}

/** Brings one run to each plan, all of them in one process per life. */
async function trial(options: BoundaryTrialOptions, plans: Plan[]): Promise<Tried[]> {
  const { data, heir } = options
  const pollMs = POLL_MS * Math.max(1, plans.length / HOSTS_A_POLL)
  const stage = new Stage({ data, name: `b${++stages}`, leaseMs: LEASE_MS, pollMs })
  const last = Math.max(...plans.map(({ kills }) => kills.length))
  try {
    const subjects: Subject[] = []
    for (const { bad } of plans) subjects.push(stage.subject(await stage.host(), bad))
    const reached = plans.map(() => 0)
    const lives = Array.from({ length: last + 1 }, (_, nth) =>
      heir && nth === last ? stage.borrow(heir) : stage.spawn(`.${nth + 1}`)
    )
    for (const [nth, life] of lives.entries()) {
      const open = subjects.filter(({ ended }) => !ended)
      for (const subject of open) {
        const { kills, slack } = plans[subjects.indexOf(subject)]
        await stage.open(life, subject, { target: kills[nth], slack, announce: true })
        if (nth === 0) void stage.tend(life, subject)
        else void stage.takeOver(life, subject)
      }
      await stage.rest(open, nth < last ? HOLD_MS : END_MS)
      if (nth === last) break
      for (const [i, subject] of subjects.entries()) if (subject.held) reached[i] += 1
      await stage.kill(life)
    }
    const tried: Tried[] = []
    for (const [i, subject] of subjects.entries()) {
      tried.push({
        plan: plans[i],
        reached: reached[i],
        ...(await judged(stage, data, subject, lives)),
      })
    }
    return tried
  } finally {
    await stage.close()
  }
}

async function judged(stage: Stage, data: CrashData, subject: Subject, lives: Life[]) {
  const evidence = await stage.evidence(subject, undisturbed(data, subject.bad))
  const lines = stage.linesOf(subject)
  if (!evidence.timeline) {
    timelines.set(keyOf(data, subject.bad), timelineOf(evidence.stored, subject.runId))
  }
  const boundaries = lines.filter(({ at }) => at === 'boundary')
  return {
    problems: judge(evidence),
    detail: describe({ ...evidence, lines }),
    labels: lives.map(({ name }) =>
      boundaries.flatMap(({ life, text }) => (life === name ? [text!] : []))
    ),
  }
}

/** Histories of undisturbed runs: the first of each kind that is played. */
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
