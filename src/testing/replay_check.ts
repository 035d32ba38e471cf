/*
 * Replays captured histories against the code of today. The core runs over the record alone, with nobody
 * to perform what the body asks for: a body that gets past its history stands still there, so no step,
 * no effect and no clock is ever touched.
 */
import { runInWorkflowScope } from '../authoring/ambient.ts'
import { validateStandard } from '../authoring/validate_standard.ts'
import { createCtx } from '../ctx/create_ctx.ts'
import { WorkflowEngine } from '../engine/workflow_engine.ts'
import { NonDeterminismError, WorkflowNotRegisteredError } from '../errors.ts'
import {
  keepProcessAlive,
  nextMacrotask,
  sleepOn,
  systemClock,
  systemTimers,
} from '../foundation/clock.ts'
import { DurableError, messageOf, toStepError } from '../foundation/failure.ts'
import { cloneJson, DEFAULT_MAX_PAYLOAD_BYTES, toStored } from '../foundation/json.ts'
import { History } from '../replay/history.ts'
import { Replay } from '../replay/replay.ts'
import { InMemoryStateStore } from '../store/memory/memory_store.ts'
import { InMemoryTransport } from '../transport/memory/memory_transport.ts'
import type { WorkflowFn } from '../types/ctx.ts'
import { isTerminalStatus } from '../types/run.ts'
import type { RegisterOptions } from '../types/workflow.ts'
import { describeDifference, differenceOf } from './difference.ts'
import {
  type NamedHistory,
  parseRunHistory,
  readHistories,
  type RunHistory,
} from './run_history.ts'

/** How a replay left its record other than by asking for something else (see `NonDeterminismError`). */
export class ReplayMismatchError extends DurableError {
  static override readonly code: string = 'replay_mismatch'
}

/** Several histories of a folder do not replay; `failures` has them all, by file. */
export class ReplayFailuresError extends DurableError {
  static override readonly code: string = 'replay_failures'

  constructor(readonly failures: { file: string; error: Error }[]) {
    const lines = failures.map(({ file, error }) => `  ${file}: ${error.message}`)
    super(`${failures.length} captured histories do not replay:\n${lines.join('\n')}`, {
      cause: failures[0].error,
    })
  }
}

/** Registers the workflows to be checked: `engine.register`, `registerWorkflowClass`, … */
export type RegisterWorkflows = (engine: WorkflowEngine) => unknown

/** What `assertReplayable` replays: a history, its JSON text, or the path of a file or a folder. */
export type HistorySource = RunHistory | string | URL

/** Real ms that a body may wait for something else than its ctx. */
const PATIENCE_MS = 5000

/**
 * Asserts that the workflows registered by `register` replay a captured history: they ask for what is
 * recorded, in order, all of it, and a run that has ended ends as it did, output included. A folder is
 * searched for `*.json` files, which are all checked.
 *
 * Nothing is executed: no step body, no dispatch, no timer; a body that gets past its record stops there.
 *
 * Rejects with `NonDeterminismError` when the code asks for something else at a recorded position,
 * `ReplayMismatchError` when it fails, ends or stops before the record does or ends otherwise,
 * `WorkflowNotRegisteredError` when the run's version is not registered, `RunHistoryError` for what is no
 * history, and `ReplayFailuresError` when histories of a folder fail.
 */
export async function assertReplayable(
  register: RegisterWorkflows,
  source: HistorySource
): Promise<void> {
  const histories = historiesOf(source)
  const workflows = await registeredBy(register)
  const failures: { file: string; error: Error }[] = []
  for (const { file, history } of histories) {
    try {
      await replayHistory(workflows, history)
    } catch (error) {
      if (file === undefined || histories.length === 1) throw error
      failures.push({ file, error: error as Error })
    }
  }
  if (failures.length > 0) throw new ReplayFailuresError(failures)
}

function historiesOf(source: HistorySource): NamedHistory[] {
  if (source instanceof URL) return readHistories(source)
  if (typeof source !== 'string') return [{ history: parseRunHistory(source) }]
  return source.trimStart().startsWith('{')
    ? [{ history: parseRunHistory(source) }]
    : readHistories(source)
}

/** A registered body, by `name@version`. */
export interface ReplayableWorkflow {
  fn: WorkflowFn
  options: RegisterOptions
}

/** Notes what is registered; besides, it is an engine like any other, over nothing. */
class NotingEngine extends WorkflowEngine {
  readonly workflows = new Map<string, ReplayableWorkflow>()

  override register(
    name: string,
    version: string,
    fn: WorkflowFn<never>,
    options: RegisterOptions = {}
  ): void {
    super.register(name, version, fn, options)
    this.workflows.set(`${name}@${version}`, { fn: fn as WorkflowFn, options })
  }
}

async function registeredBy(register: RegisterWorkflows): Promise<Map<string, ReplayableWorkflow>> {
  const transport = new InMemoryTransport()
  const engine = new NotingEngine({ store: new InMemoryStateStore(), transport })
  await register(engine)
  await transport.close()
  return engine.workflows
}

/** Replays one history. Rejects as `assertReplayable` does. */
export async function replayHistory(
  workflows: ReadonlyMap<string, ReplayableWorkflow>,
  { run, checkpoints }: RunHistory
): Promise<void> {
  const { workflow: name, workflowVersion: version } = run
  const workflow = workflows.get(`${name}@${version}`)
  if (!workflow) {
    const known = [...workflows.keys()].join(', ') || 'none'
    throw new WorkflowNotRegisteredError(name, version, `Registered: ${known}`)
  }
  // Its body never began.
  if (run.status === 'failed' && run.error?.code === 'invalid_input') return
  const rows = checkpoints.filter(({ seq }) => seq >= 0)
  const replay = new Replay({ runId: run.id, history: new History(rows) })
  const ctx = createCtx({
    replay,
    maxPayloadBytes: DEFAULT_MAX_PAYLOAD_BYTES,
    transactions: true,
  })
  let input = cloneJson(run.input)
  const { inputSchema } = workflow.options
  if (inputSchema) {
    input = await validateStandard(inputSchema, input, `the input of workflow "${name}"`)
  }
  replay.start(() => runInWorkflowScope(ctx, () => workflow.fn(ctx, input)))
  await untilItStands(replay, momentOf({ run, checkpoints }))
  try {
    judge(replay, { run, checkpoints })
  } finally {
    await replay.unwind()
  }
}

/** When the record was taken, as far as it tells: what fell due later has not happened in it. */
function momentOf({ run, checkpoints }: RunHistory): number {
  if (isTerminalStatus(run.status)) return Infinity
  const times = checkpoints.flatMap((row) => [row.enqueuedAt, row.startedAt, row.finishedAt])
  const known = [run.createdAt, run.updatedAt, ...(run.claimedAt ? [run.claimedAt] : []), ...times]
  return Math.max(...known.map((date) => date.getTime()))
}

async function untilItStands(replay: Replay, moment: number): Promise<void> {
  const giveUpAt = systemClock() + PATIENCE_MS
  const sleep = keepProcessAlive()
  try {
    for (let round = 0; ; round++) {
      await replay.settle(() => moment)
      if (replay.end || replay.broken || replay.openCount > 0) return
      // The body waits for something else than its ctx.
      if (systemClock() > giveUpAt) {
        throw new ReplayMismatchError(
          `run ${replay.runId}: after ${PATIENCE_MS} ms the body still waits for something that is no ` +
            `call on its ctx, at position ${replay.position}`
        )
      }
      await (round < 20 ? nextMacrotask() : sleepOn(systemTimers, 1))
    }
  } finally {
    sleep()
  }
}

function judge(replay: Replay, { run }: RunHistory): void {
  if (replay.broken) throw replay.broken
  const { end, position, history } = replay
  const left = position < history.frontier ? history.at(position) : undefined
  const about = `run ${run.id} of workflow ${run.workflow}@${run.workflowVersion}`
  const recorded = `recorded as ${run.status}`
  if (end?.kind === 'threw') return judgeFailure(end.error, { replay, run, about })
  if (!end) {
    const [open] = replay.openAwaits()
    if (left || run.status === 'completed') {
      throw new ReplayMismatchError(
        `${about}, ${recorded}: the code waits for ${open.command.kind} at position ${open.seq}` +
          (left ? `, and never asks for position ${position}, "${left.name}"` : '')
      )
    }
    return
  }
  if (left) {
    throw new NonDeterminismError(
      run.id,
      position,
      end.kind === 'continued' ? 'nothing (it continues as new)' : 'nothing (it returns)',
      `"${left.name}" (${left.kind})`
    )
  }
  if (run.status === 'failed') {
    throw new ReplayMismatchError(
      `${about}, ${recorded} (${run.error?.message}): the code completes`
    )
  }
  if (run.status === 'completed' && end.kind === 'returned') {
    const output = toStored(end.value, 'the output')
    const found = differenceOf(run.output, output)
    if (found) throw new ReplayMismatchError(`${about}: ${describeDifference('output', found)}`)
  }
}

function judgeFailure(
  thrown: unknown,
  { replay, run, about }: { replay: Replay; run: RunHistory['run']; about: string }
): void {
  const exhausted = replay.position >= replay.history.frontier
  const { message, code } = toStepError(thrown)
  const same = run.error?.message === message && run.error?.code === code
  if (run.status === 'failed' && same) return
  // What a live run does past its record, it has not done yet.
  if (exhausted && !isTerminalStatus(run.status)) return
  if (exhausted && run.status !== 'failed' && run.status !== 'completed') return
  const expected = run.error ? `${run.status} (${run.error.message})` : run.status
  throw new ReplayMismatchError(
    `${about}, recorded as ${expected}: the code fails at position ${replay.position} with ` +
      `${messageOf(thrown)}`,
    { cause: thrown }
  )
}
