/*
 * Whether a run that has not ended is stalled: it should have moved by now, and no ordinary wait explains
 * why it did not. Pure; the pager and whoever explains a run judge alike.
 */
import type { SignalWaiter, StepCheckpoint } from '../types/checkpoint.ts'
import type { StalledRunInfo, StalledStep } from '../types/housekeeping.ts'
import { isTerminalStatus, type WorkflowRun } from '../types/run.ts'

export interface StallFacts {
  run: WorkflowRun
  /** Rows of the run that are `pending` or `running`. */
  open: readonly StepCheckpoint[]
  /** What the run waits for. */
  waiters: readonly SignalWaiter[]
  nowMs: number
  /** How long a run may be silent. */
  stalledAfterMs: number
  /** Longest pause between two looks at a run that waits for news; 0 for none. */
  reconcileMs: number
}

/** What is to be said of the run; undefined for one that is as it should be. */
export function stallOf(facts: StallFacts): StalledRunInfo | undefined {
  const { run, nowMs, stalledAfterMs } = facts
  const silentSince = silentSinceOf(facts)
  if (silentSince === undefined || nowMs - silentSince < stalledAfterMs) return undefined
  const info: StalledRunInfo = { run, idleMs: nowMs - silentSince }
  const [oldest] = stepsOf(facts).sort((a, b) => a.enqueuedAt.getTime() - b.enqueuedAt.getTime())
  if (oldest) info.pendingStep = stalledStep(oldest, nowMs)
  return info
}

/** A dispatched step that is out, as it is told of. */
export function stalledStep(row: StepCheckpoint, nowMs: number): StalledStep {
  const { seq, name, attempts, enqueuedAt, lastHeartbeatAt } = row
  return {
    seq,
    name,
    attempts,
    ageMs: Math.max(0, nowMs - enqueuedAt.getTime()),
    heartbeatAgeMs: lastHeartbeatAt ? Math.max(0, nowMs - lastHeartbeatAt.getTime()) : null,
  }
}

/** Undefined for a run whose silence means nothing. */
function silentSinceOf(facts: StallFacts): number | undefined {
  const { run, nowMs, reconcileMs } = facts
  if (isTerminalStatus(run.status)) return undefined
  const changedAt = run.updatedAt.getTime()
  const signs = stepsOf(facts).map(lastSign)
  if (run.status !== 'suspended') return Math.max(changedAt, ...signs)
  // An ordinary sleep: whoever only waits for news is looked at sooner.
  if (run.wakeAt !== undefined && run.wakeAt > nowMs + reconcileMs) return undefined
  // Looking at the run again writes to its row, so only the steps tell since when.
  if (signs.length > 0) return Math.max(...signs)
  if (facts.waiters.length > 0) return undefined
  const due = [run.wakeAt, run.wakeRequestedAt].filter((at) => at !== undefined)
  // Without any of them no poll finds it.
  return due.length > 0 ? Math.min(...due) : changedAt
}

const stepsOf = ({ open }: StallFacts): StepCheckpoint[] =>
  open.filter(({ kind, status }) => kind === 'remote' && status === 'pending')

const lastSign = (row: StepCheckpoint): number =>
  Math.max(row.enqueuedAt.getTime(), row.lastHeartbeatAt?.getTime() ?? 0)
