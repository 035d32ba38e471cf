/*
 * Explores crashes: runs a workflow once to learn what it writes, then once for every write of
 * checkpoints and either side of it, with a process that dies there and another one that takes over.
 */
import { WorkflowNotRegisteredError } from '../../errors.ts'
import { DurableError } from '../../foundation/failure.ts'
import { toStored } from '../../foundation/json.ts'
import type { WorkflowFn } from '../../types/ctx.ts'
import type { WorkflowClass, WorkflowInputOf } from '../../types/workflow.ts'
import { type CrashReport, Findings, reportText } from './finding.ts'
import { judgeCourse, judgeReplays, judgeSightings, lastLink } from './judge.ts'
import { endOf, sameEnd } from './judge_runs.ts'
import { currentPlace, type Ledger } from './ledger.ts'
import type { Boundary } from './mortal_store.ts'
import { exploredWorkflow, type ExploreOptions, type NamedWorkflow, signalList } from './options.ts'
import { runAsBody, unsettle } from './unrecorded.ts'
import { watchEffects } from './watched_effects.ts'
import type { BodyWatch, Sighting } from './watched_body.ts'
import { type Course, type SignalMode, World } from './world.ts'

const RUN_ID = 'explored'
const MOST_CRASHES = 2000
const PATIENCE_MS = 1000

/** The first run of an exploration gets nowhere: a step has no body, or nobody sends what it waits for. */
export class ExplorationError extends DurableError {
  static override readonly code: string = 'exploration'
}

/** What `assertSurvivesCrashes` rejects with: the report in words, and as data. */
export class CrashFindingsError extends DurableError {
  static override readonly code: string = 'crash_findings'

  constructor(readonly report: CrashReport) {
    super(report.toString())
  }
}

/** The input that a workflow takes. */
type InputOf<W> = W extends (ctx: never, input: infer I) => unknown
  ? I
  : W extends NamedWorkflow<infer I>
    ? I
    : W extends WorkflowClass
      ? WorkflowInputOf<W>
      : unknown

/** What can be explored: a workflow class (built without arguments), a named workflow, a function. */
export type Explorable = WorkflowClass | NamedWorkflow | WorkflowFn<never>

/**
 * Runs a workflow once over memory and a virtual clock, and notes every write of checkpoints. Then runs
 * it again for each of them, twice: the process dies just before that write, or just after, and another
 * one takes over and replays. Signals are also sent before anybody waits for them, and twice. Every run
 * is compared with the first one, and its record is replayed from the beginning.
 *
 * What steps, `ctx.now` and `ctx.sideEffect` answered in the first run they answer in all of them, so
 * that runs differ only in what the body decides; what the body itself reads of `Math.random`,
 * `Date.now` and `new Date()` differs with every execution. Sleeps and deadlines take no time.
 *
 * Answers a report; nothing found means `ok`. Rejects with `ExplorationError` when the first run does
 * not come to an end, with `InvalidArgumentError` for what is no workflow or cannot be registered, and
 * with what `setup` and `engine.start` reject with. Nothing is written anywhere.
 *
 * @example
 * const report = await exploreCrashes(OrderWorkflow, { cents: 1200 }, {
 *   steps: { 'payments:charge': () => ({ receiptId: 'r1' }) },
 *   signals: { 'approval:7': { approved: true } },
 * })
 */
export async function exploreCrashes<W extends Explorable>(
  workflow: W,
  input: NoInfer<InputOf<W>>,
  options: ExploreOptions = {}
): Promise<CrashReport> {
  return new Exploration(workflow, input, options).report()
}

/** As `exploreCrashes`; rejects with `CrashFindingsError` when anything is found. */
export async function assertSurvivesCrashes<W extends Explorable>(
  workflow: W,
  input: NoInfer<InputOf<W>>,
  options: ExploreOptions = {}
): Promise<CrashReport> {
  const report = await exploreCrashes(workflow, input, options)
  if (!report.ok) throw new CrashFindingsError(report)
  return report
}

interface Variation {
  /** As it is named in a finding; that of a crash is known only when it happened. */
  name: string
  mode?: SignalMode
  dieAt?: Boundary
}

class Exploration {
  readonly #options: ExploreOptions
  readonly #root: ReturnType<typeof exploredWorkflow>
  readonly #workflows: ReturnType<typeof exploredWorkflow>[]
  readonly #input: unknown
  readonly #findings = new Findings()
  readonly #runId: string
  #executions = 0
  #ledger?: Ledger
  #sightings: Sighting[] = []
  /** Effects that the body of the current run called itself. */
  #bodyEffects = new Set<string>()

  constructor(workflow: Explorable, input: unknown, options: ExploreOptions) {
    this.#options = options
    this.#root = exploredWorkflow(workflow)
    this.#workflows = [this.#root, ...(options.workflows ?? []).map(exploredWorkflow)]
    this.#input = toStored(input, 'the input')
    this.#runId = options.runId ?? RUN_ID
  }

  async report(): Promise<CrashReport> {
    const settle = unsettle()
    const release = watchEffects(this.#options.effects ?? {}, {
      life: () => this.#ledger?.life ?? 0,
      inStep: (effect) => this.#ledger?.called(currentPlace()!, effect),
      inBody: (effect) => void this.#bodyEffects.add(effect),
    })
    try {
      return await this.#explore()
    } finally {
      release()
      settle()
    }
  }

  async #explore(): Promise<CrashReport> {
    const usual = 'no crash'
    const first = await this.#play({ name: usual })
    this.#assertArrived(first)
    const broken = judgeSightings(this.#sightings, this.#about(first, usual))
    this.#judgeBodyEffects(usual)
    let crashes = 0
    if (!broken) {
      await this.#judgeReplays(first, usual)
      for (const mode of ['early', 'twice'] as const) {
        if (signalList(this.#options.signals).length > 0)
          await this.#vary(first, NAMES[mode], { mode })
      }
      for (const dieAt of this.#boundaries(first.writes)) {
        const course = await this.#vary(first, '', { dieAt })
        if (course.died !== undefined) crashes += 1
      }
    }
    const { ignore = [] } = this.#options
    const findings = this.#findings.list.filter(({ kind }) => !ignore.includes(kind))
    const report = {
      ok: findings.length === 0,
      findings,
      end: endOf(lastLink(first, this.#runId)),
      boundaries: first.writes,
      crashes,
    }
    return { ...report, toString: () => reportText(report) }
  }

  /** One more run, with one thing otherwise. */
  async #vary(first: Course, name: string, how: Omit<Variation, 'name'>): Promise<Course> {
    const course = await this.#play({ name, ...how }, first.ledger)
    const at =
      course.died === undefined ? name || 'a crash that never came' : `a crash ${course.died}`
    const about = this.#about(course, at)
    this.#judgeBodyEffects(at)
    if (judgeSightings(this.#sightings, about)) return course
    const { compare = sameEnd } = this.#options
    judgeCourse(course, { findings: this.#findings, first, compare }, at)
    await this.#judgeReplays(course, at)
    return course
  }

  async #play({ mode = 'awaited', dieAt }: Variation, first?: Ledger): Promise<Course> {
    const { setup, steps = {}, signals, patienceMs = PATIENCE_MS } = this.#options
    await setup?.()
    this.#sightings = []
    this.#bodyEffects = new Set()
    const world: World = new World({
      workflows: this.#workflows,
      steps,
      signals: signalList(signals),
      mode,
      watch: this.#watch(() => world.ledger.life),
      first,
      dieAt,
      patienceMs,
    })
    this.#ledger = world.ledger
    return world.play(this.#root.name, this.#input, this.#runId)
  }

  #watch(life: () => number): BodyWatch {
    return {
      begin: () => ({ index: this.#executions++, life: life(), rolls: 0, read: new Set() }),
      saw: (sighting) => void this.#sightings.push(sighting),
      moved: () => void (this.#ledger && this.#ledger.activity++),
    }
  }

  /** Replays what is recorded, with bodies to which chance and time differ once more. */
  async #judgeReplays(course: Course, at: string): Promise<void> {
    const read = new Set<string>()
    const workflows = this.#workflows.map(({ name, version, fn, options }) => {
      const body: WorkflowFn = (ctx, input) =>
        runAsBody({ index: this.#executions++, life: 0, rolls: 0, read }, () => fn(ctx, input))
      return [`${name}@${version}`, { fn: body, options }] as const
    })
    await judgeReplays(new Map(workflows), read, this.#about(course, at))
  }

  #about(course: Course, at: string) {
    return { findings: this.#findings, course, at }
  }

  #judgeBodyEffects(at: string): void {
    for (const effect of this.#bodyEffects) {
      const message =
        `${effect} is called by the body itself: every replay calls it again. ` +
        'Call it in a step.'
      this.#findings.add({ kind: 'effect', runId: this.#runId, message }, at)
    }
  }

  #assertArrived({ stuck, rows }: Course): void {
    const unserved = [...rows.values()].flat().find(({ error }) => error?.code === 'no_handler')
    if (unserved) {
      throw new ExplorationError(
        `step "${unserved.name}" has no body here: give it one, steps: { '${unserved.name}': … }`
      )
    }
    const absent = [...rows.values()].flat().find(({ output }) => {
      const { code } = (output ?? {}) as { code?: unknown }
      return code === WorkflowNotRegisteredError.code
    })
    if (absent) {
      const { error } = absent.output as { error: string }
      throw new ExplorationError(`${error}. Give it in workflows.`)
    }
    if (stuck === undefined) return
    throw new ExplorationError(
      `the first run does not come to an end: ${stuck}. Give what it waits for as signals, ` +
        'child workflows as workflows.'
    )
  }

  /** Both sides of every write, or as many as are allowed, spread evenly. */
  #boundaries(writes: number): Boundary[] {
    const { limit = MOST_CRASHES } = this.#options
    const all = Array.from({ length: writes }, (_, write) => [
      { write, side: 'before' as const },
      { write, side: 'after' as const },
    ]).flat()
    if (all.length <= limit) return all
    return Array.from({ length: limit }, (_, i) => all[Math.floor((i * all.length) / limit)])
  }
}

const NAMES = { early: 'every signal sent before the start', twice: 'every signal sent twice' }
