/*
 * The two ambient scopes: the workflow body that runs on this async path, and the step body inside it.
 * Both storages live on globalThis under registry symbols, so every copy of the package reads the same
 * scopes. Owns no other state.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { WorkflowCtx } from '../types/ctx.ts'

/** The step body on an async path. */
export interface StepBody {
  runId: string
  step: string
}

const WORKFLOW_SCOPE: unique symbol = Symbol.for('@agora/durable:workflow-scope') as never
const STEP_BODY_SCOPE: unique symbol = Symbol.for('@agora/durable:step-body-scope') as never

interface Scopes {
  [WORKFLOW_SCOPE]?: AsyncLocalStorage<WorkflowCtx | undefined>
  [STEP_BODY_SCOPE]?: AsyncLocalStorage<StepBody | undefined>
}

const scopes = globalThis as Scopes
const workflowScope = () => (scopes[WORKFLOW_SCOPE] ??= new AsyncLocalStorage())
const stepBodyScope = () => (scopes[STEP_BODY_SCOPE] ??= new AsyncLocalStorage())

/** Runs a workflow body so that everything it calls finds `ctx`. Returns what `fn` returns. */
export function runInWorkflowScope<T>(ctx: WorkflowCtx, fn: () => T): T {
  // A run may be driven from inside another run's step body, which is not this body's.
  return stepBodyScope().run(undefined, () => workflowScope().run(ctx, fn))
}

/**
 * The context of the workflow body running on this async path. `undefined` outside a body and in the
 * body of a dispatched step.
 */
export function getCurrentWorkflowCtx(): WorkflowCtx | undefined {
  return workflowScope().getStore()
}

/** Runs the body of a step, in which workflow primitives are refused. Returns what `fn` returns. */
export function runInStepBody<T>(body: StepBody, fn: () => T): T {
  return stepBodyScope().run(body, fn)
}

/** The step body running on this async path, or `undefined`. */
export function currentStepBody(): StepBody | undefined {
  return stepBodyScope().getStore()
}

/**
 * Runs `fn` as if no workflow were running: for work that only happens to be started from a turn, such
 * as the handler of a dispatched step in the engine's own process.
 */
export function runOutsideWorkflow<T>(fn: () => T): T {
  return stepBodyScope().run(undefined, () => workflowScope().run(undefined, fn))
}
