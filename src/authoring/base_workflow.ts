/*
 * The class that workflows extend. Its statics start runs: through the engine outside a workflow, as
 * children of the current run inside one.
 */
import { NestedWorkflowCallError } from '../errors.ts'
import { DurableError, fromStepError } from '../foundation/failure.ts'
import { randomId } from '../foundation/ids.ts'
import type { ChildCallOptions, WorkflowCtx } from '../types/ctx.ts'
import type { RunResult } from '../types/run.ts'
import type { WorkflowScheduleConfig } from '../types/schedule.ts'
import type {
  DeadLetter,
  StartArguments,
  StartOptions,
  WorkflowClass,
  WorkflowDispatchOptions,
  WorkflowInputOf,
  WorkflowOptions,
  WorkflowOutputOf,
  WorkflowTrigger,
} from '../types/workflow.ts'
import { currentStepBody, getCurrentWorkflowCtx } from './ambient.ts'
import { checkOptions, OPTIONS } from './options.ts'
import { resolveWorkflowEngine, type WorkflowStarter } from './engine_resolver.ts'
import { workflowName } from './workflow_ref.ts'

/** Stamped on the base class, so that discovery knows a subclass made with another copy of the package. */
export const WORKFLOW_BASE: unique symbol = Symbol.for('@agora/durable:workflow-base') as never

/**
 * Base class of a workflow. Classes under `app/workflows` are registered at boot; one instance is built
 * through the container and shared by all runs, so keep no state of a run on it.
 *
 *     export default class OrderWorkflow extends BaseWorkflow {
 *       static workflow = { name: 'order', version: '1' }
 *
 *       async run(ctx: WorkflowCtx, input: { orderId: string }) {
 *         return ctx.step(chargeOrder, input)
 *       }
 *     }
 */
export abstract class BaseWorkflow {
  static readonly [WORKFLOW_BASE] = true

  /** Name, version and options. A class without it cannot be registered. */
  static workflow?: WorkflowOptions

  /** What starts a run beside calls; `@OnEvent` and `@OnDiagnostic` add to it. */
  static on?: WorkflowTrigger | readonly WorkflowTrigger[]

  /** When runs start by themselves, in any worker; `@Scheduled` adds to it. */
  static schedule?: WorkflowScheduleConfig | WorkflowScheduleConfig[]

  /** The body. Annotate `input`: `start` and `dispatch` take what it says, `start` answers what it returns. */
  abstract run(ctx: WorkflowCtx, input: unknown): unknown

  /**
   * The body of a workflow that is started, as `dlq:<deadRunId>`, when a run of this one goes dead. It is
   * registered as `<name>.dlq`. Excludes `deadLetterWorkflow`.
   */
  deadLetter?(ctx: WorkflowCtx, dead: DeadLetter): unknown

  /**
   * Runs the workflow and answers its output once the run is terminal, however long it sleeps.
   *
   * Outside a workflow: starts a run on the engine. `options.runId` (default random) makes the start
   * idempotent. Rejects with the run's error, its `message`, `code` and `details` kept, when the run ends
   * as anything but `completed`; with `DurableError` (`no_engine`) when there is no engine.
   *
   * Inside a workflow body: `ctx.child`. `options.runId` is the child's id (default derived from the
   * position); of the other options only `priority` reaches a child. Rejects with
   * `NestedWorkflowCallError` inside a step body.
   */
  static start<C extends WorkflowClass>(
    this: C,
    ...[input, options]: StartArguments<C>
  ): Promise<WorkflowOutputOf<C>> {
    return (inWorkflowBody('child', (ctx) =>
      ctx.child(this, input as WorkflowInputOf<C>, childOptions(options))
    ) ?? runToItsEnd(this, input, options)) as Promise<WorkflowOutputOf<C>>
  }

  /**
   * Starts the workflow and answers its run id without waiting for it: `engine.start` outside a workflow,
   * `ctx.startChild` inside one. Options and errors are those of `start`.
   */
  static dispatch<C extends WorkflowClass>(
    this: C,
    ...[input, options]: StartArguments<C>
  ): Promise<{ runId: string }> {
    return (
      inWorkflowBody('startChild', async (ctx) => ({
        runId: await ctx.startChild(this, input as WorkflowInputOf<C>, childOptions(options)),
      })) ?? startRun(this, input, options).then(({ runId }) => ({ runId }))
    )
  }
}

/** Makes `call` on the current body's context; undefined outside a body. */
function inWorkflowBody<T>(
  primitive: 'child' | 'startChild',
  call: (ctx: WorkflowCtx) => Promise<T>
): Promise<T> | undefined {
  const ctx = getCurrentWorkflowCtx()
  const body = currentStepBody()
  if (!ctx && !body) return undefined
  let promise: Promise<T>
  try {
    promise =
      body || !ctx
        ? Promise.reject(new NestedWorkflowCallError(body!.runId, primitive, body!.step))
        : call(ctx)
  } catch (error) {
    promise = Promise.reject(error)
  }
  // Like every ctx promise: a body that suspends may have dropped it.
  promise.catch(() => {})
  return promise
}

function childOptions(options: WorkflowDispatchOptions = {}): ChildCallOptions | undefined {
  checkOptions('start', options, OPTIONS.dispatch)
  const { runId, priority } = options
  if (runId === undefined && priority === undefined) return undefined
  return {
    ...(runId === undefined ? {} : { childId: runId }),
    ...(priority === undefined ? {} : { priority }),
  }
}

async function startRun(
  workflow: WorkflowClass,
  input: unknown,
  given: WorkflowDispatchOptions = {}
): Promise<{ engine: WorkflowStarter; runId: string }> {
  checkOptions('start', given, OPTIONS.dispatch)
  const { runId = randomId(), ...options } = given
  const name = workflowName(workflow)
  const engine = await resolveWorkflowEngine()
  await engine.start(name, input, runId, options satisfies StartOptions)
  return { engine, runId }
}

async function runToItsEnd(
  workflow: WorkflowClass,
  input: unknown,
  options?: WorkflowDispatchOptions
): Promise<unknown> {
  const { engine, runId } = await startRun(workflow, input, options)
  const end = await engine.waitForRun(runId, { terminal: true })
  if (end.status === 'completed') return end.output
  throw failureOf(end, workflowName(workflow))
}

function failureOf({ runId, status, error }: RunResult, workflow: string): Error {
  if (error) return fromStepError(error)
  return new DurableError(`run ${runId} of workflow ${workflow} ended as ${status}`, {
    code: `run_${status}`,
  })
}
