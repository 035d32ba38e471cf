/*
 * One commit of a turn, in one synchronous turn of the process: checked against the lease, the turn number
 * and a live status (invariants 1, 3), then applied in the order rows, waits, expiries, claims, runs,
 * stamps, attributes, settle. A settled row is never replaced; whoever loses to one is told what stands.
 */
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import { isTerminalStatus, type SearchAttributes, type WorkflowRun } from '../../types/run.ts'
import {
  type ChildState,
  eachOnce,
  refusedByIntent,
  type SignalWait,
  type TurnCommit,
  type TurnSettle,
  type TurnVerdict,
} from '../ports/turn_commits.ts'
import { decodeCheckpoint } from './checkpoint_table.ts'
import { assertStorable } from './columns.ts'
import { decodeRun } from './run_table.ts'
import type { Tables } from './tables.ts'

export function commitTurn(tables: Tables, commit: TurnCommit): TurnVerdict {
  if (!mayApply(tables, commit)) return verdictOf(tables, commit.runId, false, [])
  assertStorable(commit, 'commit')
  const stored: StepCheckpoint[] = []
  applyRows(tables, commit, stored)
  for (const wait of commit.waits ?? []) {
    if (!settleByBuffer(tables, wait, stored)) tables.signals.put(wait.waiter)
  }
  for (const { waiter, row } of commit.expiries ?? []) {
    const winner = tables.checkpoints.write(row)
    if (winner) stored.push(decodeCheckpoint(winner))
    tables.signals.remove(waiter)
  }
  claimEvents(tables, commit, stored)
  for (const run of commit.runs ?? []) {
    if (!tables.runs.has(run.id)) tables.runs.insert(run)
  }
  const children = commit.children && applyChildren(tables, commit.children)
  for (const { seq, order } of commit.stamps ?? []) {
    tables.checkpoints.stamp(commit.runId, seq, order)
  }
  if (commit.searchAttributes) mergeAttributes(tables, commit.runId, commit.searchAttributes)
  if (commit.settle) settle(tables, commit, commit.settle, stored)
  const verdict = verdictOf(tables, commit.runId, true, stored)
  return children ? { ...verdict, children } : verdict
}

/** Inserts children, or marks those that exist; answers the state of the latter. */
function applyChildren(tables: Tables, children: WorkflowRun[]): ChildState[] {
  const states: ChildState[] = []
  for (const child of eachOnce(children)) {
    const standing = tables.runs.get(child.id)
    if (standing) {
      tables.runs.patch(child.id, { awaited: true })
      const { id, status, output, error } = decodeRun(standing)
      states.push({ id, status, output, error })
    } else tables.runs.insert(child)
  }
  return states
}

function mayApply(tables: Tables, { runId, owner, turn, settle: end }: TurnCommit): boolean {
  const run = tables.runs.get(runId)
  if (!run || run.lockedBy !== owner || run.turns !== turn) return false
  if (isTerminalStatus(run.status)) return false
  return !refusedByIntent(end, run)
}

function applyRows(tables: Tables, commit: TurnCommit, stored: StepCheckpoint[]): void {
  for (const { row, retryOf } of commit.rows ?? []) {
    const winner = tables.checkpoints.write(row, retryOf)
    if (winner) stored.push(decodeCheckpoint(winner))
  }
}

function claimEvents(tables: Tables, { claims }: TurnCommit, stored: StepCheckpoint[]): void {
  for (const { event, waiter, row } of claims ?? []) {
    const standing = tables.checkpoints.get(row.runId, row.seq)
    if (standing && isSettledStatus(standing.status)) {
      stored.push(decodeCheckpoint(standing))
    } else if (tables.events.remove(event.id)) {
      tables.checkpoints.write(row)
      tables.signals.remove(waiter)
      stored.push(decodeCheckpoint(tables.checkpoints.get(row.runId, row.seq)!))
    }
  }
}

function mergeAttributes(tables: Tables, runId: string, attributes: SearchAttributes): void {
  const { searchAttributes } = decodeRun(tables.runs.get(runId)!)
  tables.runs.patch(runId, { searchAttributes: { ...searchAttributes, ...attributes } })
}

/** True when nothing is left to wait for: the position is settled, before or by a buffered payload. */
function settleByBuffer(
  tables: Tables,
  { waiter, row }: SignalWait,
  stored: StepCheckpoint[]
): boolean {
  const standing = tables.checkpoints.get(row.runId, row.seq)
  if (standing && isSettledStatus(standing.status)) {
    stored.push(decodeCheckpoint(standing))
    return true
  }
  const taken = tables.signals.takeBuffered(waiter.token)
  if (!taken) return false
  tables.checkpoints.write({ ...row, output: taken.payload })
  tables.signals.remove(waiter)
  stored.push(decodeCheckpoint(tables.checkpoints.get(row.runId, row.seq)!))
  return true
}

function settle(
  tables: Tables,
  commit: TurnCommit,
  { status, patch, looks, rekey }: TurnSettle,
  stored: StepCheckpoint[]
): void {
  if (rekey) {
    const waiter = tables.signals.take(rekey.from)
    if (waiter) tables.signals.put({ ...waiter, token: rekey.to })
  }
  let hit = false
  for (const look of looks ?? []) {
    // A replaced waiter means that the payload is somebody else's; a taken one, that it was delivered.
    if (!tables.signals.stands(look.waiter) || !tables.signals.hasBuffered(look.waiter.token)) {
      continue
    }
    const standing = tables.checkpoints.get(look.row.runId, look.row.seq)
    if (standing && isSettledStatus(standing.status)) continue
    hit = settleByBuffer(tables, look, stored) || hit
  }
  tables.runs.patch(commit.runId, {
    updatedAt: new Date(commit.nowMs),
    ...patch,
    status,
    ...(hit ? { wakeRequestedAt: commit.nowMs } : {}),
    lockedBy: undefined,
    lockedUntil: undefined,
  })
}

function verdictOf(
  tables: Tables,
  runId: string,
  applied: boolean,
  stored: StepCheckpoint[]
): TurnVerdict {
  const run = tables.runs.get(runId)
  return {
    applied,
    status: run?.status ?? null,
    wakeRequested: run?.wakeRequestedAt !== undefined,
    cancelRequested: run?.cancelRequestedAt !== undefined,
    awaited: run?.awaited ?? false,
    stored,
  }
}
