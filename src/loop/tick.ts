/*
 * One tick of upkeep: every poll an engine has, in order and each in isolation. The polls are the last
 * resort of every wake; whoever has no worker loop calls this.
 */
import type { SchedulesApi, UpkeepApi } from '../engine/api.ts'
import { withScheduleOrigin } from '../foundation/origins.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'

/** What a tick needs of an engine. */
export type TickEngine = Pick<
  UpkeepApi,
  | 'runPending'
  | 'recoverIncomplete'
  | 'resumeDueTimers'
  | 'sweepTimeouts'
  | 'sweepRetention'
  | 'sweepStalled'
> &
  Pick<SchedulesApi, 'fireSchedules'>

export interface TickOptions {
  /** Epoch ms; default the engine's clock. */
  now?: number
  /** What the schedules phase fires, resolved; default the schedules that the engine knows. */
  schedules?: readonly ScheduledWorkflow[]
}

/** A phase that failed; the others ran. */
export interface TickError {
  /** The engine method, or `runSchedules`: once for each schedule that failed. */
  phase: string
  error: unknown
}

/** How many runs each phase moved; `evicted` were deleted by retention. */
export interface TickResult {
  pending: number
  recovered: number
  timers: number
  scheduled: number
  evicted: number
  errors: TickError[]
}

/** The counts of a result. */
export type TickCount = Exclude<keyof TickResult, 'errors'>

export interface Phase {
  name: string
  /** Absent for a phase that counts nothing. */
  counts?: TickCount
  /** Resolves when everything the phase moved came to rest; answers how many runs that were. */
  run(engine: TickEngine, options: TickOptions, onError: (error: unknown) => void): Promise<number>
}

const countOf = async (moved: Promise<unknown[]>): Promise<number> => {
  const runs = await moved
  return runs.length
}

/** In the order of a tick. */
export const PHASES: readonly Phase[] = [
  {
    name: 'runPending',
    counts: 'pending',
    run: async (engine, { now }) => countOf(engine.runPending(now)),
  },
  {
    name: 'recoverIncomplete',
    counts: 'recovered',
    run: async (engine, { now }) => countOf(engine.recoverIncomplete(now)),
  },
  {
    name: 'resumeDueTimers',
    counts: 'timers',
    run: async (engine, { now }) => countOf(engine.resumeDueTimers(now)),
  },
  {
    name: 'sweepTimeouts',
    run: async (engine, { now }) => {
      await engine.sweepTimeouts(now)
      return 0
    },
  },
  {
    name: 'runSchedules',
    counts: 'scheduled',
    async run(engine, { now, schedules }, onError) {
      const firing = withScheduleOrigin(() => engine.fireSchedules({ now, schedules }))
      const { started, failures } = await firing
      for (const { error } of failures) onError(error)
      return started.length
    },
  },
  {
    name: 'sweepRetention',
    counts: 'evicted',
    run: (engine, { now }) => engine.sweepRetention(now),
  },
  {
    name: 'sweepStalled',
    run: async (engine, { now }) => {
      await engine.sweepStalled(now)
      return 0
    },
  },
]

/**
 * Runs every phase once and waits for the turns it caused. Never rejects: what a phase throws is in
 * `errors`, and the rest still run.
 */
export async function runTick(engine: TickEngine, options: TickOptions = {}): Promise<TickResult> {
  const result = emptyTick()
  for (const { name, counts, run } of PHASES) {
    const onError = (error: unknown) => void result.errors.push({ phase: name, error })
    try {
      const moved = await run(engine, options, onError)
      if (counts) result[counts] += moved
    } catch (error) {
      onError(error)
    }
  }
  return result
}

const emptyTick = (): TickResult => ({
  pending: 0,
  recovered: 0,
  timers: 0,
  scheduled: 0,
  evicted: 0,
  errors: [],
})
