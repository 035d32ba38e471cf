/*
 * What `durable:runs` and `durable:retry` are built from: runs with the age of what they wait for.
 */
import { systemClock } from '../foundation/clock.ts'
import { mapBounded } from '../foundation/pool.ts'
import { stalledStep } from '../insight/stalled.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { StalledStep } from '../types/housekeeping.ts'
import type { CheckpointQuery, RunQuery } from '../types/query.ts'
import type { RunResult, RunStatus, WorkflowRun } from '../types/run.ts'

/** Whatever lists runs: an engine, a gateway. */
export interface RunLister {
  listRuns(query: RunQuery): Promise<WorkflowRun[]>
}

/** Whatever reads the timeline of a run. */
export interface TimelineReader {
  listCheckpoints(runId: string): Promise<StepCheckpoint[]>
  /** Preferred: reads the open rows only. */
  queryCheckpoints?(runId: string, query: CheckpointQuery): Promise<StepCheckpoint[]>
}

export interface ListRunsOptions {
  /** Wins over `statuses`. */
  status?: RunStatus
  statuses?: RunStatus[]
  workflow?: string
  namespace?: string
  tag?: string
  /** Default 50. */
  limit?: number
}

/** A run and how long it has been what it is. */
export interface RunLiveness {
  run: WorkflowRun
  /** Since its last change. */
  ageMs: number
  recoveryAttempts: number
  /** The dispatched step that is out longest; of `running` and `suspended` runs only. */
  stalePending?: StalledStep
}

/** Silence after which a step counts as stale: 15 minutes. */
export const DEFAULT_STALE_MS = 15 * 60_000

const DEFAULT_LIMIT = 50
const AT_ONCE = 8

/** One page of runs, newest first. */
export function listRuns(source: RunLister, options: ListRunsOptions = {}): Promise<WorkflowRun[]> {
  const { status, statuses, workflow, namespace, tag, limit = DEFAULT_LIMIT } = options
  const query: RunQuery = { workflow, namespace, tag, page: 1, size: limit }
  return source.listRuns(
    status === undefined ? { ...query, ...(statuses ? { statuses } : {}) } : { ...query, status }
  )
}

/** Reads the timelines of `running` and `suspended` runs, eight at a time. `now` in epoch ms. */
export async function attachLiveness(
  source: TimelineReader,
  runs: readonly WorkflowRun[],
  now = systemClock()
): Promise<RunLiveness[]> {
  const outcomes = await mapBounded(runs, AT_ONCE, async (run) => {
    const liveness: RunLiveness = {
      run,
      ageMs: Math.max(0, now - run.updatedAt.getTime()),
      recoveryAttempts: run.recoveryAttempts ?? 0,
    }
    if (run.status !== 'running' && run.status !== 'suspended') return liveness
    const oldest = oldestPending(await openRows(source, run.id))
    return oldest ? { ...liveness, stalePending: stalledStep(oldest, now) } : liveness
  })
  return outcomes.map((outcome) => {
    if (outcome.ok) return outcome.value
    throw outcome.error
  })
}

function openRows(source: TimelineReader, runId: string): Promise<StepCheckpoint[]> {
  return source.queryCheckpoints
    ? source.queryCheckpoints(runId, { statuses: ['pending'] })
    : source.listCheckpoints(runId)
}

function oldestPending(rows: StepCheckpoint[]): StepCheckpoint | undefined {
  const out = rows.filter(({ kind, status }) => kind === 'remote' && status === 'pending')
  return out.sort((a, b) => a.enqueuedAt.getTime() - b.enqueuedAt.getTime()).at(0)
}

/** Those whose oldest step is out, and without a heartbeat, for `thresholdMs`. */
export function filterStale(
  runs: readonly RunLiveness[],
  thresholdMs = DEFAULT_STALE_MS
): RunLiveness[] {
  return runs.filter(({ stalePending }) => {
    if (!stalePending || stalePending.ageMs < thresholdMs) return false
    return stalePending.heartbeatAgeMs === null || stalePending.heartbeatAgeMs >= thresholdMs
  })
}

/** `engine.requeue`; null for an unknown run. */
export function retryRun(
  engine: { requeue(runId: string): Promise<RunResult | null> },
  runId: string
): Promise<RunResult | null> {
  return engine.requeue(runId)
}

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `90s`, `15m`, `2h`, `1d`, `500ms` in ms; undefined for anything else. */
export function parseDurationMs(input: string): number | undefined {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(input)
  return match ? Number(match[1]) * UNITS[match[2]] : undefined
}
