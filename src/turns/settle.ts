/*
 * Settling: how a turn's end becomes the run's status, in one conditional, owner-fenced write that also
 * releases the lease (invariants 1, 3, 4). Not applied: nothing is emitted, nobody is notified.
 */
import { FatalError } from '../errors.ts'
import { type StepError, toStepError, messageOf } from '../foundation/failure.ts'
import type { SeqRange } from '../foundation/control_flow.ts'
import { childToken, nextLinkId, parentRunIdOf, retriedIdOf } from '../foundation/ids.ts'
import { toStored } from '../foundation/json.ts'
import { completionOf } from '../replay/completion.ts'
import type { Command } from '../replay/commands.ts'
import type { BodyEnd } from '../replay/outcome.ts'
import { tagsOfSuccessor } from '../flow/singletons.ts'
import type { TurnVerdict } from '../store/ports/turn_commits.ts'
import type { RunStatus, WorkflowRun } from '../types/run.ts'
import { type Effect, releases, type TurnReport } from './effects.ts'
import type { SignalWait } from '../store/ports/turn_commits.ts'
import { waitsForNews } from './performer.ts'
import { awaitedWave } from './perform/fan.ts'
import { signalWait } from './perform/signal.ts'
import type { Turn } from './turn.ts'

/** What a turn came to. */
export type Outcome =
  | { kind: 'completed'; output: unknown }
  | { kind: 'failed'; error: StepError }
  | { kind: 'cancelled'; error: StepError }
  | { kind: 'continued'; input: unknown }
  | ({ kind: 'suspended' } & Park)

/** What a parked body waits for. */
export interface Park {
  wakeAt?: number
  /** The deadline in it: absent when only news, or their fallback, wakes the run. */
  dueAt?: number
  /** The wave of the one fan that the body waits for: results outside it wake nobody. */
  waitSeqs?: SeqRange
  /** Waits that look into the buffers once more, later than they registered. */
  looks: SignalWait[]
  openSeqs: number[]
  /** One past the last position the body took. */
  frontier: number
}

/** Answers undefined when a cancel intent refused the write: the turn must undo instead. */
export async function settleTurn(turn: Turn, outcome: Outcome): Promise<TurnReport | undefined> {
  const status = STATUS[outcome.kind]
  const successor = outcome.kind === 'continued' ? successorOf(turn, outcome.input) : undefined
  const verdict = await turn.journal.settle(
    {
      status,
      patch: patchOf(turn, outcome),
      rekey: successor && { from: childToken(turn.run.id), to: childToken(successor.id) },
      looks: outcome.kind === 'suspended' && outcome.looks.length > 0 ? outcome.looks : undefined,
    },
    successor ? [successor] : []
  )
  if (!verdict.applied && verdict.cancelRequested && status !== 'cancelled') return undefined
  if (!verdict.applied) return lostReport(turn.run, verdict)
  return appliedReport(turn, outcome, verdict, successor)
}

/** How the end of a body reads as an outcome. */
export function outcomeOf(turn: Turn, end: BodyEnd): Outcome {
  if (end.kind === 'threw') return failedWith(turn, end.error)
  const { workflow } = turn.run
  const stored = (value: unknown, what: string) =>
    toStored(value, `${what} of workflow "${workflow}"`, turn.needs.settings.maxPayloadBytes)
  try {
    return end.kind === 'continued'
      ? { kind: 'continued', input: stored(end.input, 'the next input') }
      : { kind: 'completed', output: stored(end.value, 'the output') }
  } catch (error) {
    const code = (error as { code?: string }).code
    return failedWith(turn, new FatalError(messageOf(error), code))
  }
}

/** Taken before the body is unwound: afterwards nothing is open. */
export function parkOf(turn: Turn): Outcome {
  const { replay } = turn
  const looks = [...replay.openAwaits()].flatMap(({ command }) => {
    const wait = signalOf(command, turn)
    return wait ? [signalWait(wait, turn)] : []
  })
  const dueAt = Math.min(turn.nextDeadline ?? Infinity, turn.parkBy)
  return {
    kind: 'suspended',
    wakeAt: wakeOf(turn, dueAt),
    dueAt: Number.isFinite(dueAt) ? dueAt : undefined,
    waitSeqs: onlyWave(turn),
    looks,
    openSeqs: replay.openSeqs(),
    frontier: replay.position,
  }
}

/** The token and position that an open await waits on. */
function signalOf(command: Command, turn: Turn): Parameters<typeof signalWait>[0] | undefined {
  if (command.kind === 'signal') return command
  if (command.kind === 'breakpoint') return { ...command, signalSeq: command.seq }
  if (command.kind === 'entity' && command.replyTo !== undefined) {
    return { token: command.replyTo, signalSeq: command.seq }
  }
  if (command.kind !== 'task') return undefined
  return turn.history.at(command.seq)?.status === 'completed' ? command.wait : undefined
}

export function failedWith(turn: Turn, thrown: unknown): Outcome {
  const error = toStepError(thrown)
  delete error.retryable
  const step = turn.replay.stepOf(thrown)
  return { kind: 'failed', error: step ? { ...error, step } : error }
}

const STATUS: Record<Outcome['kind'], RunStatus> = {
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  continued: 'completed',
  suspended: 'suspended',
}

function patchOf(turn: Turn, outcome: Outcome): Partial<WorkflowRun> {
  const patch: Partial<WorkflowRun> = { wakeAt: undefined }
  // Progress since the last crash: a long-lived run is not buried by many deploys.
  if (turn.run.recoveryAttempts && turn.progressed) patch.recoveryAttempts = 0
  switch (outcome.kind) {
    case 'completed':
      return { ...patch, output: outcome.output, error: undefined }
    case 'failed':
      return { ...patch, error: outcome.error }
    case 'cancelled':
      // The mark stays until the children were told (after_effects).
      return { ...patch, error: outcome.error }
    case 'continued':
      return { ...patch, error: undefined }
    case 'suspended':
      return { ...patch, wakeAt: outcome.wakeAt, waitSeqs: outcome.waitSeqs, error: undefined }
  }
}

function onlyWave(turn: Turn): SeqRange | undefined {
  const [first, second] = turn.replay.openAwaits()
  if (!first || second || first.command.kind !== 'fan') return undefined
  return awaitedWave(first.command, turn)
}

/** When a parked run is due: its next deadline, or the fallback when it waits for news. */
function wakeOf(turn: Turn, dueAt: number): number | undefined {
  const { reconcileMs } = turn.needs.settings
  let wake = dueAt
  const news = [...turn.replay.openAwaits()].some(waitsForNews) || turn.replay.openCount === 0
  if (news && reconcileMs > 0) wake = Math.min(wake, turn.now() + reconcileMs)
  return Number.isFinite(wake) ? wake : undefined
}

function successorOf(turn: Turn, input: unknown): WorkflowRun {
  const { run } = turn
  const at = new Date(turn.now())
  const newest = turn.needs.lookup.newest(run.workflow)
  const successor: WorkflowRun = {
    id: nextLinkId(run.id),
    workflow: run.workflow,
    workflowVersion: newest?.version ?? run.workflowVersion,
    status: 'pending',
    input,
    createdAt: at,
    updatedAt: at,
  }
  if (run.namespace !== undefined) successor.namespace = run.namespace
  if (run.priority !== undefined) successor.priority = run.priority
  if (run.origin !== undefined) successor.origin = run.origin
  if (newest?.executionTimeoutMs !== undefined) {
    successor.deadlineAt = turn.now() + newest.executionTimeoutMs
  }
  if (run.awaited) successor.awaited = true
  const tags = tagsOfSuccessor(run.tags)
  if (tags) successor.tags = tags
  if (turn.attributes) successor.searchAttributes = turn.attributes
  return successor
}

function appliedReport(
  turn: Turn,
  outcome: Outcome,
  verdict: TurnVerdict,
  successor: WorkflowRun | undefined
): TurnReport {
  const { run } = turn
  const about = { runId: run.id, workflow: run.workflow, namespace: run.namespace }
  const { emitter } = turn.needs
  const effects: Effect[] = []
  // A store that does not keep the mark is asked about derived ids only.
  const awaited = verdict.awaited || parentRunIdOf(run.id) !== undefined
  const report: TurnReport = {
    runId: run.id,
    status: verdict.status ?? STATUS[outcome.kind],
    effects,
    again: outcome.kind === 'suspended' && verdict.wakeRequested,
  }
  switch (outcome.kind) {
    case 'completed':
      report.output = outcome.output
      emitter.emit({ type: 'run.completed', ...about, output: outcome.output })
      break
    case 'continued':
      emitter.emit({ type: 'run.completed', ...about })
      if (successor) effects.push({ kind: 'wakeSuccessor', run: successor })
      break
    case 'suspended':
      report.dueAt = outcome.dueAt
      emitter.emit({ type: 'run.suspended', ...about })
      break
    case 'failed':
    case 'cancelled':
      report.error = outcome.error
      emitter.emit({ type: 'run.failed', ...about, error: outcome.error })
  }
  if (awaited && outcome.kind !== 'suspended' && outcome.kind !== 'continued') {
    effects.push({ kind: 'notifyParent', childId: run.id, completion: completionOf(report) })
  }
  const retried = retriedIdOf(run.id)
  if (outcome.kind === 'completed' && retried !== undefined) {
    effects.push({ kind: 'offerRetry', childId: retried, completion: completionOf(report) })
  }
  if (outcome.kind === 'failed') {
    effects.push({ kind: 'startHandler', run: { ...run, error: outcome.error } })
  }
  if (outcome.kind !== 'suspended') effects.push(...releases(run))
  // A failed run keeps its waits: it may be re-opened and wait again. Those of a cancelled one go with its mark.
  const over = outcome.kind === 'completed' || outcome.kind === 'continued'
  if (over && turn.replay.openCount > 0) effects.push({ kind: 'dropWaits', runId: run.id })
  if (outcome.kind === 'cancelled') effects.push({ kind: 'tellChildren', runId: run.id })
  if (turn.folds.length > 0) effects.push({ kind: 'foldWaves', runId: run.id, folds: turn.folds })
  return report
}

/** Of a turn whose settling write was not applied. */
export function lostReport(run: WorkflowRun, verdict: TurnVerdict): TurnReport {
  return {
    runId: run.id,
    status: verdict.status ?? 'cancelled',
    effects: [],
    again: false,
    lost: true,
  }
}
