/*
 * Where payloads are in what a store takes and answers, as data. A new field of a row or of a commit does
 * not compile until it is listed here. What a store filters, orders or decides by is `clear`.
 */
import type { BufferedEvent, SignalWaiter, StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'
import type { CheckpointSettlement } from '../ports/pending_settles.ts'
import type { ClaimedRun } from '../ports/run_claims.ts'
import type {
  ChildState,
  EventClaim,
  RowWrite,
  SettleTarget,
  SignalDelivery,
  SignalWait,
  TurnCommit,
  TurnSettle,
  TurnVerdict,
  WaitExpiry,
} from '../ports/turn_commits.ts'
import type { PayloadKind, Place } from './payload_codec.ts'

export type Shape = 'clear' | PayloadKind | ObjectShape | ListShape

export interface ObjectShape {
  kind: 'object'
  /** The fields that are not clear. */
  fields: [name: string, shape: Exclude<Shape, 'clear'>][]
  place?: (value: never) => Place
}

export interface ListShape {
  kind: 'list'
  of: ObjectShape
}

type Fields<T> = { readonly [K in keyof T]-?: Shape }

function object<T>(fields: Fields<T>, place?: (value: T) => Place): ObjectShape {
  const covered = Object.entries<Shape>(fields).flatMap(([name, shape]) =>
    shape === 'clear' ? [] : [[name, shape] as ObjectShape['fields'][number]]
  )
  return { kind: 'object', fields: covered, place }
}

export const list = (of: ObjectShape): ListShape => ({ kind: 'list', of })

const ofRow = ({ runId, seq }: { runId: string; seq: number }): Place => ({ runId, seq })

export const RUN = object<WorkflowRun>(
  {
    input: 'payload',
    output: 'payload',
    error: 'extended',
    id: 'clear',
    workflow: 'clear',
    workflowVersion: 'clear',
    status: 'clear',
    namespace: 'clear',
    origin: 'clear',
    wakeAt: 'clear',
    wakeRequestedAt: 'clear',
    awaitingDecisionTaskId: 'clear',
    waitSeqs: 'clear',
    lockedBy: 'clear',
    lockedUntil: 'clear',
    cancelRequestedAt: 'clear',
    cancelRequestedBy: 'clear',
    cancelCompensates: 'clear',
    deadlineAt: 'clear',
    turns: 'clear',
    claimedAt: 'clear',
    awaited: 'clear',
    recoveryAttempts: 'clear',
    tags: 'clear',
    searchAttributes: 'clear',
    priority: 'clear',
    createdAt: 'clear',
    updatedAt: 'clear',
  },
  ({ id }) => ({ runId: id })
)

export const CHECKPOINT = object<StepCheckpoint>(
  {
    input: 'payload',
    output: 'payload',
    error: 'extended',
    events: 'extended',
    heartbeatProgress: 'extended',
    runId: 'clear',
    seq: 'clear',
    name: 'clear',
    kind: 'clear',
    stepId: 'clear',
    status: 'clear',
    attempts: 'clear',
    maxAttempts: 'clear',
    timeoutMs: 'clear',
    workerGroup: 'clear',
    wakeAt: 'clear',
    parallelGroup: 'clear',
    order: 'clear',
    enqueuedAt: 'clear',
    startedAt: 'clear',
    finishedAt: 'clear',
    lastHeartbeatAt: 'clear',
  },
  ofRow
)

export const SETTLEMENT = object<CheckpointSettlement>(
  {
    output: 'payload',
    error: 'extended',
    events: 'extended',
    runId: 'clear',
    seq: 'clear',
    status: 'clear',
    finishedAt: 'clear',
    startedAt: 'clear',
    wakeAt: 'clear',
    upToAttempt: 'clear',
  },
  ofRow
)

export const SCHEDULE = object<ScheduleRecord>(
  {
    spec: 'payload',
    id: 'clear',
    workflow: 'clear',
    paused: 'clear',
    namespace: 'clear',
    lastFiredAt: 'clear',
    createdAt: 'clear',
    updatedAt: 'clear',
  },
  ({ id }) => ({ of: `schedule "${id}"` })
)

export const EVENT = object<BufferedEvent & { name?: string }>(
  { payload: 'payload', id: 'clear', publishedAt: 'clear', name: 'clear' },
  ({ id }) => ({ of: `event "${id}"` })
)

export const BUFFERED_SIGNAL = object<{ payload: unknown }>({ payload: 'payload' })

export const DELIVERY = object<SignalDelivery>(
  {
    payload: 'payload',
    token: 'clear',
    nowMs: 'clear',
    buffer: 'clear',
    urgent: 'clear',
  },
  ({ token }) => ({ of: `signal "${token}"` })
)

export const CHILD_WAIT = object<{ waiter: SignalWaiter; checkpoint: StepCheckpoint }>({
  checkpoint: CHECKPOINT,
  waiter: 'clear',
})

const SIGNAL_WAIT = object<SignalWait>({ row: CHECKPOINT, waiter: 'clear' })

const SETTLE = object<TurnSettle>({
  patch: RUN,
  looks: list(SIGNAL_WAIT),
  status: 'clear',
  evenIfCancelRequested: 'clear',
  rekey: 'clear',
})

export const COMMIT = object<TurnCommit>(
  {
    rows: list(object<RowWrite>({ row: CHECKPOINT, retryOf: 'clear' })),
    waits: list(SIGNAL_WAIT),
    expiries: list(object<WaitExpiry>({ row: CHECKPOINT, waiter: 'clear' })),
    claims: list(object<EventClaim>({ row: CHECKPOINT, event: EVENT, waiter: 'clear' })),
    runs: list(RUN),
    children: list(RUN),
    settle: SETTLE,
    runId: 'clear',
    owner: 'clear',
    turn: 'clear',
    nowMs: 'clear',
    stamps: 'clear',
    searchAttributes: 'clear',
  },
  ({ runId }) => ({ runId })
)

export const VERDICT = object<TurnVerdict>({
  stored: list(CHECKPOINT),
  children: list(
    object<ChildState>(
      { output: 'payload', error: 'extended', id: 'clear', status: 'clear' },
      ({ id }) => ({ runId: id })
    )
  ),
  applied: 'clear',
  status: 'clear',
  wakeRequested: 'clear',
  cancelRequested: 'clear',
  awaited: 'clear',
})

export const TARGET = object<SettleTarget>({
  checkpoint: CHECKPOINT,
  runStatus: 'clear',
  workflow: 'clear',
  workflowVersion: 'clear',
  namespace: 'clear',
  waitSeqs: 'clear',
})

export const CLAIMED = object<ClaimedRun>({
  run: RUN,
  previousStatus: 'clear',
  previousTurns: 'clear',
  unreadable: 'clear',
})
