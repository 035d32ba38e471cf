/*
 * Role: one commit of a turn, delivery of signals, targets of results. Ours, optional; a store without
 * them is complete, the fallback performs the single-row members in the same order.
 *
 * Lock order everywhere: run, waiters, checkpoints, buffers. Deadlocks are retried inside the store.
 */
import type { SeqRange } from '../../foundation/control_flow.ts'
import { isFailFastGroup, signalName, stepIdOf } from '../../foundation/ids.ts'
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type { CheckpointKey } from '../../types/query.ts'
import type { RunStatus, SearchAttributes, WorkflowRun } from '../../types/run.ts'

/**
 * A row of a commit. It replaces whatever stands at its position, `order` included (heartbeat columns
 * are kept), unless that is settled. A settled row is replaced only when `retryOf` is given and the
 * stored row is `failed` with exactly that many attempts.
 */
export interface RowWrite {
  row: StepCheckpoint
  retryOf?: number
}

/** Sets `order` of an existing row that has none. */
export interface OrderStamp {
  seq: number
  order: number
}

/**
 * Take or register. Position settled: nothing happens. Oldest buffered payload of the token present:
 * it is taken, `row` is written with it as output, the exact waiter is removed. Otherwise the waiter is
 * put. `row` is the completed row without its output.
 */
export interface SignalWait {
  waiter: SignalWaiter
  row: StepCheckpoint
}

/** Ends a bounded wait: `row` (failed) is written unless the position is settled; the exact waiter goes. */
export interface WaitExpiry {
  waiter: SignalWaiter
  row: StepCheckpoint
}

/**
 * Takes a buffered event. Position settled, or the event taken by somebody else: nothing happens. Otherwise
 * the event goes, `row` (completed, with its payload) is written and the exact waiter removed.
 */
export interface EventClaim {
  event: BufferedEvent & { name: string }
  waiter: SignalWaiter
  row: StepCheckpoint
}

/**
 * The end of a turn: the run takes `status` and `patch`, its lease is released. Refused (nothing of the
 * whole commit applies) while the run carries a cancel intent, unless the status is `cancelled` or
 * `evenIfCancelRequested` is set.
 */
export interface TurnSettle {
  status: RunStatus
  /**
   * Never `tags` or `searchAttributes` read earlier (invariant 11). Never `wakeRequestedAt`. Without
   * `updatedAt` that is `nowMs`.
   */
  patch: Partial<WorkflowRun>
  /** Apply although the run carries a cancel intent: the status says nothing about the body's end. */
  evenIfCancelRequested?: boolean
  /** A waiter on the first token now waits on the second: a chain went on, its parent waits for its end. */
  rekey?: { from: string; to: string }
  /**
   * Second look of open waits: take if a payload is buffered and the exact waiter stands; never register.
   * A hit requests a wake.
   */
  looks?: SignalWait[]
}

/**
 * Everything one turn writes at once. Applies only while the run's `lockedBy` is `owner`, its `turns` is
 * `turn` and its status is pending, running, suspended or blocked; checked under a lock of the run row
 * held to the end of the commit, so that neither a takeover nor a cancel slips in between.
 */
export interface TurnCommit {
  runId: string
  owner: string
  turn: number
  nowMs: number
  rows?: RowWrite[]
  stamps?: OrderStamp[]
  waits?: SignalWait[]
  expiries?: WaitExpiry[]
  claims?: EventClaim[]
  /** Merged into the run's own, key by key, under the lock of the run row. */
  searchAttributes?: SearchAttributes
  /** Inserted unless their id exists. */
  runs?: WorkflowRun[]
  /**
   * Children this run waits for: inserted, or, where the id exists, marked `awaited`. Either way under the
   * child's own row lock, so that its settling write and this one see each other.
   */
  children?: WorkflowRun[]
  settle?: TurnSettle
}

export interface TurnVerdict {
  applied: boolean
  /** The run's status as stored after the call; null when it is gone. */
  status: RunStatus | null
  /** `wakeRequestedAt` is set (after the commit). */
  wakeRequested: boolean
  /** `cancelRequestedAt` is set. */
  cancelRequested: boolean
  awaited: boolean
  /**
   * What stands now at positions where the caller's write is not what was stored: rows that lost to a
   * settled one, and rows completed with a buffered payload or event. Empty when not applied.
   */
  stored: StepCheckpoint[]
  /** The state of those `children` that existed before, each once. */
  children?: ChildState[]
}

/** What a parent needs to know of a child run. */
export type ChildState = Pick<WorkflowRun, 'id' | 'status' | 'output' | 'error'>

export interface SignalDelivery {
  token: string
  payload: unknown
  nowMs: number
  /** Keep the payload for a later wait when nobody waits now. */
  buffer: boolean
  /** A failure: wakes a run whose fail-fast fan waits here although others of the wave are outstanding. */
  urgent?: boolean
}

export type SignalOutcome =
  /** `wave`: the run awaits this range and was not woken; whoever finds the range quiet wakes it. */
  | { delivered: true; runId: string; seq: number; wave?: SeqRange }
  | { delivered: false; buffered: boolean }

/** The awaited range that holds a delivered position back from waking its run. */
export function heldByWave(
  waitSeqs: SeqRange | undefined,
  position: { seq: number; parallelGroup?: string },
  urgent: boolean | undefined
): SeqRange | undefined {
  const { seq, parallelGroup } = position
  if (!waitSeqs || seq < waitSeqs.from || seq > waitSeqs.to) return undefined
  return urgent && isFailFastGroup(parallelGroup) ? undefined : waitSeqs
}

/** The row a result settles, with what is needed of its run. */
export interface SettleTarget {
  /** Without its input. */
  checkpoint: StepCheckpoint
  runStatus: RunStatus
  workflow: string
  workflowVersion: string
  namespace: string
  waitSeqs?: SeqRange
}

export interface TurnCommits {
  commitTurn(commit: TurnCommit): Promise<TurnVerdict>
  /**
   * One transaction. A waiter whose run is gone or terminal is removed and the next look begins. Found
   * one of a live run: it is removed, its position completed with `deliveredRow` unless settled, and the
   * run's `wakeRequestedAt` set, unless the run awaits a range (`waitSeqs`) that holds the position and
   * no fail-fast fan hears of a failure. Position settled already: the waiter goes, the payload is buffered.
   * Nobody waits: the payload is buffered if asked.
   */
  deliverSignal(delivery: SignalDelivery): Promise<SignalOutcome>
  /**
   * The deliverer's second look: when a live waiter and a buffered payload of one token exist, pairs the
   * oldest payload with it exactly as `deliverSignal` would.
   */
  pairSignal(token: string, nowMs: number): Promise<SignalOutcome>
  /** Targets that exist; others are absent, order unspecified. */
  settleTargets(keys: CheckpointKey[]): Promise<SettleTarget[]>
}

/** The row that a delivered payload leaves at its waiter's position. */
export function deliveredRow(
  waiter: SignalWaiter,
  payload: unknown,
  nowMs: number
): StepCheckpoint {
  return {
    runId: waiter.runId,
    seq: waiter.seq,
    name: signalName(waiter.token),
    kind: 'signal',
    stepId: stepIdOf(waiter.runId, waiter.seq),
    status: 'completed',
    output: payload,
    attempts: 1,
    ...(waiter.parallelGroup === undefined ? {} : { parallelGroup: waiter.parallelGroup }),
    enqueuedAt: waiter.createdAt ?? new Date(nowMs),
    startedAt: new Date(nowMs),
    finishedAt: new Date(nowMs),
  }
}

/** Of several runs with one id the first. */
export function eachOnce(runs: WorkflowRun[]): WorkflowRun[] {
  const ids = new Set<string>()
  return runs.filter(({ id }) => ids.size < ids.add(id).size)
}

/** A cancel intent refuses this end of a turn: it must undo instead. */
export function refusedByIntent(
  settle: TurnSettle | undefined,
  run: Pick<WorkflowRun, 'cancelRequestedAt'>
): boolean {
  if (!settle || run.cancelRequestedAt === undefined) return false
  return settle.status !== 'cancelled' && settle.evenIfCancelRequested !== true
}
