/*
 * Runs that a commit inserts. Beside a completing write they are held back: a successor that ran before
 * its predecessor completed would be a second executor of the chain, one that is never let go a chain cut
 * short. So it is parked for a day, let go once the completion stands, and found again by whoever repeats
 * the commit.
 */
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import type { TurnCommit } from '../ports/turn_commits.ts'
import type { CompleteRoles } from './complete_roles.ts'

/** Longer than any outage a chain should survive in order; at worst its continuation is this late. */
const HELD_BACK_MS = 24 * 60 * 60 * 1000

/** Inserts the runs of a commit unless their ids exist. */
export async function insertRuns(store: CompleteRoles, { runs }: TurnCommit): Promise<void> {
  for (const run of runs ?? []) await insertRun(store, run)
}

/** Inserts them parked; answers those that this call inserted. */
export async function holdBack(
  store: CompleteRoles,
  { runs, nowMs }: TurnCommit
): Promise<WorkflowRun[]> {
  const inserted: WorkflowRun[] = []
  for (const run of runs ?? []) {
    const parked: WorkflowRun = { ...run, status: 'suspended', wakeAt: nowMs + HELD_BACK_MS }
    if (await insertRun(store, parked)) inserted.push(run)
  }
  return inserted
}

/** After the completing write: the runs as the commit wants them. */
export async function letGo(store: CompleteRoles, { runs }: TurnCommit): Promise<void> {
  for (const { id, status, wakeAt } of runs ?? []) {
    const stored = await store.getRun(id)
    const begun = stored?.turns !== undefined
    if (!begun) await store.updateRunIf(id, ['suspended'], { status, wakeAt })
  }
}

/**
 * After a completing write that lost. Another turn of a live run will repeat the commit and let them go; a
 * run that ended, or is asked to, has no successor.
 */
export async function withdraw(
  store: CompleteRoles,
  { runId, nowMs }: TurnCommit,
  inserted: WorkflowRun[]
): Promise<void> {
  if (inserted.length === 0) return
  const run = await store.getRun(runId)
  const goesOn = run && !isTerminalStatus(run.status) && run.cancelRequestedAt === undefined
  if (goesOn) return
  for (const { id } of inserted) {
    await store.updateRunIf(id, ['suspended'], {
      status: 'cancelled',
      error: { message: 'cancelled' },
      wakeAt: undefined,
      updatedAt: new Date(nowMs),
    })
  }
}

/** Inserts a run unless its id exists; answers whether it did. */
export async function insertRun(store: CompleteRoles, run: WorkflowRun): Promise<boolean> {
  if (await store.getRun(run.id)) return false
  try {
    await store.createRun(run)
    return true
  } catch (error) {
    if (await store.getRun(run.id)) return false
    throw error
  }
}
