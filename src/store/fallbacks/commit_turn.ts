/*
 * Fallback of a turn's commit: the lease is checked by a read, then single-row writes follow in the order
 * rows, waits, expiries, claims, runs, stamps, attributes, and the end of the turn last. A crash in between leaves a prefix,
 * which the next turn of the run repeats; without the real commit a lapsed lease is noticed late.
 */
import { bestEffort } from '../../foundation/failure.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import { mayReplace, withoutBeat } from '../ports/checkpoint_rules.ts'
import {
  type ChildState,
  eachOnce,
  type EventClaim,
  refusedByIntent,
  type RowWrite,
  type SignalWait,
  type TurnCommit,
  type TurnSettle,
  type TurnVerdict,
} from '../ports/turn_commits.ts'
import type { CompleteRoles } from './complete_roles.ts'
import { holdBack, insertRun, insertRuns, letGo, withdraw } from './insert_runs.ts'

export async function commitTurn(store: CompleteRoles, commit: TurnCommit): Promise<TurnVerdict> {
  if (!(await heldRun(store, commit))) return verdictOf(store, commit, false, [])
  const stored: StepCheckpoint[] = []
  await writeRows(store, commit.rows ?? [], stored)
  for (const wait of commit.waits ?? []) await takeOrRegister(store, wait, stored)
  for (const { waiter, row } of commit.expiries ?? []) {
    // The waiter goes first: from then on nobody begins to deliver into the position.
    await store.removeSignalWaiter(waiter)
    await writeRow(store, { row }, await store.getCheckpoint(row.runId, row.seq), stored)
  }
  for (const claim of commit.claims ?? []) await claimEvent(store, claim, stored)
  const completes = commit.settle?.status === 'completed'
  const held = completes ? await holdBack(store, commit) : []
  if (!completes) await insertRuns(store, commit)
  const children = commit.children && (await beget(store, commit.children))
  await stamp(store, commit)
  if (commit.searchAttributes) await mergeAttributes(store, commit)
  if (commit.settle && !(await settle(store, commit, commit.settle, stored))) {
    await withdraw(store, commit, held)
    return verdictOf(store, commit, false, [])
  }
  if (completes) await letGo(store, commit)
  const verdict = await verdictOf(store, commit, true, stored)
  return children ? { ...verdict, children } : verdict
}

/** Inserts children, or marks those that exist; answers the state of the latter. */
async function beget(store: CompleteRoles, children: WorkflowRun[]): Promise<ChildState[]> {
  const states: ChildState[] = []
  for (const child of eachOnce(children)) {
    if (await insertRun(store, child)) continue
    await store.updateRun(child.id, { awaited: true })
    const run = await store.getRun(child.id)
    if (run) states.push({ id: run.id, status: run.status, output: run.output, error: run.error })
  }
  return states
}

/** The run while this turn may write; a store that does not keep turn numbers is believed. */
async function heldRun(store: CompleteRoles, commit: TurnCommit): Promise<WorkflowRun | null> {
  const run = await store.getRun(commit.runId)
  if (!run || run.lockedBy !== commit.owner || isTerminalStatus(run.status)) return null
  if (run.turns !== undefined && run.turns !== commit.turn) return null
  return refusedByIntent(commit.settle, run) ? null : run
}

async function writeRows(
  store: CompleteRoles,
  writes: RowWrite[],
  stored: StepCheckpoint[]
): Promise<void> {
  if (writes.length === 0) return
  const standing = await store.getCheckpoints(
    writes.map(({ row }) => ({ runId: row.runId, seq: row.seq }))
  )
  const bySeq = new Map(standing.map((row) => [row.seq, row]))
  for (const write of writes) {
    const lost = await writeRow(store, write, bySeq.get(write.row.seq), stored)
    if (!lost) bySeq.set(write.row.seq, write.row)
  }
}

/** Answers whether the write lost to a settled row, which is then named. */
async function writeRow(
  store: CompleteRoles,
  { row, retryOf }: RowWrite,
  standing: StepCheckpoint | null | undefined,
  stored: StepCheckpoint[]
): Promise<boolean> {
  if (!mayReplace(standing, retryOf)) {
    stored.push(standing!)
    return true
  }
  const next = standing ? withoutBeat(row) : row
  // A result may land on a pending row since it was read.
  if (standing?.status === 'pending' && !(await store.saveCheckpointIfPending(next))) {
    return writeRow(store, { row, retryOf }, await store.getCheckpoint(row.runId, row.seq), stored)
  }
  if (standing?.status !== 'pending') await store.saveCheckpoint(next)
  return false
}

async function takeOrRegister(
  store: CompleteRoles,
  wait: SignalWait,
  stored: StepCheckpoint[]
): Promise<void> {
  if ((await takeInto(store, wait, stored)) !== 'nothing') return
  await store.putSignalWaiter(wait.waiter)
  // A payload may have been buffered before there was a waiter to find.
  await takeInto(store, wait, stored)
}

/** Completes the position with a buffered payload, unless it is settled or there is none. */
async function takeInto(
  store: CompleteRoles,
  { waiter, row }: SignalWait,
  stored: StepCheckpoint[]
): Promise<'taken' | 'settled' | 'nothing'> {
  const before = await store.getCheckpoint(row.runId, row.seq)
  if (before && isSettledStatus(before.status)) {
    stored.push(before)
    return 'settled'
  }
  const taken = await store.takeBufferedSignal(waiter.token)
  if (!taken) return 'nothing'
  try {
    await store.removeSignalWaiter(waiter)
    const standing = await store.getCheckpoint(row.runId, row.seq)
    const write = { row: { ...row, output: taken.payload } }
    if (await writeRow(store, write, standing, stored)) {
      await store.bufferSignal(waiter.token, taken.payload)
      return 'settled'
    }
  } catch (error) {
    await bestEffort(
      'the store is failing; the payload may be lost with it',
      store.bufferSignal(waiter.token, taken.payload)
    )
    throw error
  }
  stored.push((await store.getCheckpoint(row.runId, row.seq)) ?? row)
  return 'taken'
}

async function claimEvent(
  store: CompleteRoles,
  { event, waiter, row }: EventClaim,
  stored: StepCheckpoint[]
): Promise<void> {
  const before = await store.getCheckpoint(row.runId, row.seq)
  if (before && isSettledStatus(before.status)) return void stored.push(before)
  if (!(await store.removeBufferedEvent(event.id))) return
  try {
    const lost = await writeRow(
      store,
      { row },
      await store.getCheckpoint(row.runId, row.seq),
      stored
    )
    if (lost) await store.bufferEvent(event)
    else stored.push(row)
  } catch (error) {
    await bestEffort(
      'the store is failing; the event may be lost with it',
      store.bufferEvent(event)
    )
    throw error
  }
  await store.removeSignalWaiter(waiter)
}

async function mergeAttributes(store: CompleteRoles, commit: TurnCommit): Promise<void> {
  const run = await store.getRun(commit.runId)
  const searchAttributes = { ...run?.searchAttributes, ...commit.searchAttributes }
  await store.updateRun(commit.runId, { searchAttributes })
}

async function stamp(store: CompleteRoles, { runId, stamps }: TurnCommit): Promise<void> {
  for (const { seq, order } of stamps ?? []) {
    // The whole row, input included: what a replay read must never be written back.
    const row = await store.getCheckpoint(runId, seq)
    if (row && row.order === undefined) await store.saveCheckpoint({ ...withoutBeat(row), order })
  }
}

async function settle(
  store: CompleteRoles,
  commit: TurnCommit,
  { status, patch, looks, rekey }: TurnSettle,
  stored: StepCheckpoint[]
): Promise<boolean> {
  let hit = false
  for (const look of looks ?? []) {
    hit = (await lookAgain(store, look, stored)) || hit
  }
  const run = await heldRun(store, commit)
  if (!run) return false
  const applied = await store.updateRunIf(run.id, [run.status], {
    updatedAt: new Date(commit.nowMs),
    ...patch,
    status,
    ...(hit ? { wakeRequestedAt: commit.nowMs } : {}),
  })
  if (!applied) return false
  const waiter = rekey && (await store.takeSignalWaiter(rekey.from))
  if (waiter) await store.putSignalWaiter({ ...waiter, token: rekey.to })
  await store.releaseRunLock(run.id, commit.owner)
  return true
}

/** A replaced waiter means that the payload is somebody else's; a taken one, that it was delivered. */
async function lookAgain(
  store: CompleteRoles,
  look: SignalWait,
  stored: StepCheckpoint[]
): Promise<boolean> {
  const { token, runId, seq } = look.waiter
  const waiters = await store.listSignalWaiters(token)
  const stands = waiters.some(
    (waiter) => waiter.token === token && waiter.runId === runId && waiter.seq === seq
  )
  return stands && (await takeInto(store, look, stored)) === 'taken'
}

async function verdictOf(
  store: CompleteRoles,
  { runId }: TurnCommit,
  applied: boolean,
  stored: StepCheckpoint[]
): Promise<TurnVerdict> {
  const run = await store.getRun(runId)
  return {
    applied,
    status: run?.status ?? null,
    wakeRequested: run?.wakeRequestedAt !== undefined,
    cancelRequested: run?.cancelRequestedAt !== undefined,
    awaited: run?.awaited ?? false,
    stored,
  }
}
