/*
 * What an exploration is told, and what it is made of.
 */
import { registerOptionsOf, workflowMeta } from '../../authoring/workflow_ref.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { storableToken } from '../../foundation/ids.ts'
import type { StepLogger } from '../../types/step.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import type { RegisterOptions, WorkflowClass } from '../../types/workflow.ts'

/** A workflow without a class: for a function, and for an instance that is built elsewhere. */
export interface NamedWorkflow<TInput = any> extends RegisterOptions {
  name: string
  /** Default '1'. */
  version?: string
  run(ctx: WorkflowCtx, input: TInput): unknown
}

/** The body of a step in an exploration; a local one is called without arguments. */
// `any`: a fake says what it takes.
export type StepFake = (input?: any, log?: StepLogger) => unknown

/** A payload for whoever waits on `token`. */
export interface GivenSignal {
  token: string
  payload?: unknown
}

/**
 * - `non_determinism`: a replay asked for something else than is recorded, or for less.
 * - `output`: a run ended otherwise than in the first run.
 * - `input`: a step was dispatched, or a child started, with another input at the same position.
 * - `effect`: a step body or a watched effect ran more often than a step that runs at least once may, or
 *   a watched effect was called by the body itself.
 * - `swallowed_suspension`: the body caught the signal that unwinds it and did not pass it on.
 * - `stuck`: a run that ended in the first run never did.
 */
export type CrashFindingKind =
  'non_determinism' | 'output' | 'input' | 'effect' | 'swallowed_suspension' | 'stuck'

/** How a run ended, for `compare`. */
export interface RunEnd {
  runId: string
  status: string
  output?: unknown
  /** Message and code of a run that did not complete. */
  error?: { message: string; code?: string }
}

export interface ExploreOptions {
  /**
   * Step bodies by name: of every dispatched step, and of those local steps and transactions whose own
   * body is not to run.
   */
  steps?: Record<string, StepFake>
  /**
   * Payloads by token, or a list in which a token may come several times: one is delivered each time that
   * somebody waits on the token.
   */
  signals?: Record<string, unknown> | GivenSignal[]
  /** The other workflows that take part: children, the next version of a chain. */
  workflows?: (WorkflowClass | NamedWorkflow)[]
  /** Objects whose methods act on the world, by a name for messages; see `CrashFinding`. */
  effects?: Record<string, object>
  /** Awaited before every run: puts fakes back to where they began. */
  setup?: () => unknown
  /** Whether a run may end like this where the first one ended like that. Default: equal as JSON. */
  compare?: (expected: RunEnd, actual: RunEnd) => boolean
  /** Kinds of findings that are left out. */
  ignore?: CrashFindingKind[]
  /** Default 'explored'. */
  runId?: string
  /** Most crashes that are tried, spread evenly over all there are; default 2000. */
  limit?: number
  /** Real ms to wait for a body or a step that shows no life before time moves on; default 1000. */
  patienceMs?: number
}

/** A workflow as it is registered. */
export interface ExploredWorkflow {
  name: string
  version: string
  fn: WorkflowFn
  options: RegisterOptions
}

/** The signals as a list, tokens as they are stored. */
export function signalList(signals: ExploreOptions['signals'] = []): GivenSignal[] {
  const list = Array.isArray(signals)
    ? signals
    : Object.entries(signals).map(([token, payload]) => ({ token, payload }))
  return list.map(({ token, payload }) => ({ token: storableToken(token), payload }))
}

/** A class, a named workflow, or a bare function. Throws `InvalidArgumentError`. */
export function exploredWorkflow(
  workflow: WorkflowClass | NamedWorkflow | WorkflowFn<never>
): ExploredWorkflow {
  if (typeof workflow === 'object' && workflow !== null && typeof workflow.run === 'function') {
    const { name, version = '1', run, ...options } = workflow
    const fn: WorkflowFn = async (ctx, input) => run.call(workflow, ctx, input)
    return { name, version, fn, options }
  }
  if (typeof workflow !== 'function') {
    throw new InvalidArgumentError(
      'exploreCrashes: a workflow',
      'must be a class, a function, or an object with a name and run(ctx, input)'
    )
  }
  const meta = workflowMeta(workflow)
  if (!meta) {
    const fn = workflow as WorkflowFn
    return { name: workflow.name || 'workflow', version: '1', fn, options: {} }
  }
  const instance = new (workflow as new () => { run: WorkflowFn })()
  return {
    name: meta.name,
    version: meta.version,
    fn: async (ctx, input) => instance.run(ctx, input),
    options: registerOptionsOf(meta),
  }
}
