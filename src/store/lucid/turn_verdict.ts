/*
 * What both forms of a commit share: the verdict, the patch of a settle and the rows it answers.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { RunStatus, WorkflowRun } from '../../types/run.ts'
import type { ChildState, SignalWait, TurnCommit, TurnVerdict } from '../ports/turn_commits.ts'
import { getCheckpoints } from './checkpoints.ts'
import { numberOf, readRun } from './rows.ts'
import type { Row, Sql } from '../../sql/session.ts'

/** Statuses and marks of the run as a commit found them, or left them. */
export function verdict(
  run: Row | undefined,
  applied: boolean,
  stored: StepCheckpoint[]
): TurnVerdict {
  return {
    applied,
    status: (run?.status as RunStatus | undefined) ?? null,
    wakeRequested: numberOf(run?.wake_requested_at) !== undefined,
    cancelRequested: numberOf(run?.cancel_requested_at) !== undefined,
    awaited: numberOf(run?.awaited) === 1,
    stored,
  }
}

/** `[id, status, output, error]` of each child that existed, as JSON text. */
export function childStates(text: unknown): ChildState[] {
  const rows = JSON.parse(String(text ?? '[]')) as [string, string, string | null, string | null][]
  return rows.map(([id, status, output, error]) => {
    const { output: value, error: failure } = readRun({ id, status, output, error } as Row)
    return { id, status: status as RunStatus, output: value, error: failure }
  })
}

/** The patch of a settle; the lease, the status and the wake request are not its business. */
export function settlePatch({ settle, nowMs }: TurnCommit): Partial<WorkflowRun> {
  const { lockedBy, lockedUntil, wakeRequestedAt, status, id, ...patch } = settle!.patch
  return { updatedAt: new Date(nowMs), ...patch, status: settle!.status }
}

/** The row a buffered payload completes. */
export function completedBy({ row }: SignalWait, payload: unknown): StepCheckpoint {
  const { output, ...rest } = row
  return payload === undefined ? rest : { ...rest, output: payload }
}

export function rowsAt(sql: Sql, runId: string, seqs: Iterable<number>): Promise<StepCheckpoint[]> {
  return getCheckpoints(
    sql,
    [...seqs].map((seq) => ({ runId, seq }))
  )
}
