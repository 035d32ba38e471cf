/*
 * Dispatched steps: a `pending` row first, then the task, then the park (invariant 2). What is missing
 * follows from the row: a first dispatch, a retry that is due, a task that was lost.
 */
import { backoffDelay, isFinalFailure, maxAttempts } from '../../foundation/backoff.ts'
import { toStepError } from '../../foundation/failure.ts'
import { stepIdOf } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import { routingToken } from '../../wire/names.ts'
import { stepTask } from '../../wire/step_task.ts'
import { SILENT_LEASES } from '../needs.ts'
import type { Turn } from '../turn.ts'
import { LiveCall, windowOf } from './live_call.ts'

type CallCommand = CommandOf<'call'>

export function performCall(command: CallCommand, turn: Turn): void {
  const row = turn.history.at(command.seq)
  // What is in flight may lose against an answer that allows no retry: it is looked at when it landed.
  if (turn.isWorking(command.seq) || turn.history.isInFlight(command.seq)) return
  if (!row) dispatch(command, turn, { attempt: 1 })
  else if (row.status === 'pending') reviewPending(command, row, turn)
  else if (row.status === 'failed') retry(command, row, turn)
}

function retry(command: CallCommand, row: StepCheckpoint, turn: Turn): void {
  const retryOf = row.attempts
  // Attempts an operator took back start over.
  if (row.attempts === 0) return dispatch(command, turn, { attempt: 1, retryOf })
  if (isFinalFailure(row, maxAttempts(command.options))) return
  const { random } = turn.needs
  const delay = backoffDelay(row.attempts, command.options, random)
  if (row.wakeAt === undefined && delay > 0) {
    // Stamped once, so that a replay waits for the same moment.
    const stamped = { ...row, wakeAt: Math.ceil(turn.now() + delay) }
    turn.write(stamped, { urgent: false, retryOf, once: true })
  } else if (row.wakeAt === undefined || row.wakeAt <= turn.now()) {
    dispatch(command, turn, { attempt: row.attempts + 1, retryOf })
  }
}

/** A task that is out: wait for it, unless it was lost. */
function reviewPending(command: CallCommand, row: StepCheckpoint, turn: Turn): void {
  const { settings, sender } = turn.needs
  const { transport } = command.options
  if (sender.isVolatile(transport)) {
    const patience = SILENT_LEASES * settings.leaseMs
    const silentAt = lastSign(row) + patience
    // A handler that runs here beats whether or not it gets anywhere: its window decides.
    const isWatched = command.options.timeoutMs !== undefined && sender.isRunning(row.stepId)
    if (isWatched) return watch(command, row, turn)
    if (turn.now() < silentAt) return turn.lookAgainAt(silentAt)
    if (sender.isRunning(row.stepId)) return turn.lookAgainAt(turn.now() + patience)
    return dispatch(command, turn, { attempt: row.attempts })
  }
  if (command.options.timeoutMs !== undefined) {
    // The turn that awaited it is gone: what it was silent for counts, and it is sent once more.
    const silentAt = lastSign(row) + windowOf(command.options, row.lastHeartbeatAt !== undefined)
    if (turn.now() < silentAt) return turn.lookAgainAt(silentAt)
    return dispatch(command, turn, { attempt: row.attempts })
  }
  if (settings.remoteRedispatchMs !== undefined) reviewLost(command, row, turn)
}

/** Goes on awaiting a task that is out. */
function watch(command: CallCommand, row: StepCheckpoint, turn: Turn): void {
  turn.reserve(command.seq)
  new LiveCall(command, row, turn).begin()
}

/** The opt-in for brokers that may lose a job: past its deadline the same step id is sent again. */
function reviewLost(command: CallCommand, row: StepCheckpoint, turn: Turn): void {
  const { remoteRedispatchMs = 0, remoteRedispatchMax } = turn.needs.settings
  const alive = row.lastHeartbeatAt ? row.lastHeartbeatAt.getTime() + remoteRedispatchMs : 0
  const deadline = Math.max(row.wakeAt ?? turn.now() + remoteRedispatchMs, alive)
  if (deadline > turn.now()) {
    if (row.wakeAt !== deadline) turn.write({ ...row, wakeAt: deadline }, { urgent: false })
    return
  }
  if (row.attempts < remoteRedispatchMax) {
    return dispatch(command, turn, { attempt: row.attempts + 1 })
  }
  const message = `step "${command.name}" was dispatched ${row.attempts} times without an answer`
  turn.write(
    {
      ...row,
      status: 'failed',
      wakeAt: undefined,
      error: { message, code: 'remote_step_lost', retryable: false },
      finishedAt: new Date(turn.now()),
    },
    { urgent: true, inFlight: true, then: () => turn.needs.queues.leave(row.stepId, row.attempts) }
  )
}

interface Attempt {
  attempt: number
  /** The failed attempt whose row this one takes over. */
  retryOf?: number
}

/** Dispatches, through the flow-control queue that the step names; who is denied has no row meanwhile. */
function dispatch(command: CallCommand, turn: Turn, next: Attempt): void {
  const { queue } = command.options
  if (queue !== undefined && turn.needs.queues.gates(queue)) enter(command, queue, turn, next)
  else begin(command, turn, next)
}

function enter(command: CallCommand, queue: string, turn: Turn, next: Attempt): void {
  const { seq, options } = command
  const { queues } = turn.needs
  const { id: runId, priority } = turn.run
  const stepId = stepIdOf(runId, seq)
  turn.reserve(seq)
  turn.send(async () => {
    const admission = await queues.enter({
      queue,
      runId,
      seq,
      stepId,
      attempt: next.attempt,
      key: options.fairnessKey ?? runId,
      priority: options.priority ?? priority,
    })
    if (admission.admitted && turn.goesOn) return begin(command, turn, next)
    const isOut = turn.history.at(seq)?.status === 'pending'
    if (!admission.admitted) turn.askAgainAt(seq, admission.retryAt)
    else if (!isOut) queues.leave(stepId)
    turn.release(seq)
  })
}

function begin(command: CallCommand, turn: Turn, { attempt, retryOf }: Attempt): void {
  const { seq, name, input, options } = command
  const { settings } = turn.needs
  const group = routingToken(name, turn.run.namespace)
  const row = turn.newRow({
    seq,
    name,
    kind: 'remote',
    status: 'pending',
    input,
    attempts: attempt,
    maxAttempts: maxAttempts(options),
    workerGroup: group,
  })
  if (command.group !== undefined) row.parallelGroup = command.group
  if (options.timeoutMs !== undefined) row.timeoutMs = options.timeoutMs
  if (settings.remoteRedispatchMs !== undefined && options.timeoutMs === undefined) {
    row.wakeAt = turn.now() + settings.remoteRedispatchMs
  }
  if (turn.needs.sender.isVolatile(options.transport)) {
    turn.lookAgainAt(turn.now() + SILENT_LEASES * settings.leaseMs)
  }
  turn.reserve(seq)
  const send = () => {
    // Answered while the row was on its way: what stands is the answer, nobody waits for a second one.
    if (isSettledStatus(turn.history.at(seq)?.status ?? 'pending')) turn.release(seq)
    else sendTask(command, row, turn)
  }
  turn.write(row, { urgent: true, retryOf, then: send })
}

function sendTask(command: CallCommand, row: StepCheckpoint, turn: Turn): void {
  const { carriers, emitter, sender } = turn.needs
  const { seq, name, options } = command
  const task = stepTask(row, { carriers, priority: options.priority ?? turn.run.priority })
  const live = options.timeoutMs === undefined ? undefined : new LiveCall(command, row, turn)
  turn.send(async () => {
    const about = { runId: turn.run.id, workflow: turn.run.workflow, seq, name }
    emitter.emit({ type: 'step.started', ...about, kind: 'remote' })
    try {
      await sender.send(task, options.transport)
      if (live) live.begin()
      else turn.release(seq)
    } catch (error) {
      // Nobody has the task: the row must not look as if somebody had.
      turn.needs.report(error, `dispatch of step ${row.stepId}`)
      const failed = { ...toStepError(error), retryable: true }
      turn.write(
        {
          ...row,
          status: 'failed',
          error: failed,
          finishedAt: new Date(turn.now()),
          wakeAt: undefined,
        },
        // A broker that did not answer may have the task, and its result may be first. A copy that came
        // late would end the next attempt.
        {
          urgent: true,
          inFlight: true,
          once: true,
          then: () => turn.needs.queues.leave(row.stepId, row.attempts),
        }
      )
      live?.stop()
      turn.release(seq)
    }
  })
}

/** When a dispatched step last showed life (epoch ms). */
export const lastSign = (row: StepCheckpoint): number =>
  Math.max(row.enqueuedAt.getTime(), row.lastHeartbeatAt?.getTime() ?? 0)
