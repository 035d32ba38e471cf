/*
 * How the statics of a workflow class find an engine: an override slot for tests and applications, and a
 * default slot that the AdonisJS provider fills. Both live on globalThis under registry symbols, so a
 * class and the provider agree even when each has its own copy of the package.
 */
import { DurableError } from '../foundation/failure.ts'
import type { RunResult } from '../types/run.ts'
import type { StartOptions } from '../types/workflow.ts'

/** What the statics need of an engine. */
export interface WorkflowStarter {
  start(
    workflow: string,
    input: unknown,
    runId: string,
    options?: StartOptions
  ): Promise<RunResult<unknown>>
  waitForRun(
    runId: string,
    options?: { timeoutMs?: number; terminal?: boolean }
  ): Promise<RunResult<unknown>>
}

/** Answers the engine that `BaseWorkflow.start` and `.dispatch` use outside a workflow. */
export type WorkflowEngineResolver = () => WorkflowStarter | Promise<WorkflowStarter>

const OVERRIDE: unique symbol = Symbol.for('@agora/durable:engine-resolver') as never
const DEFAULT: unique symbol = Symbol.for('@agora/durable:default-engine-resolver') as never

const slots = globalThis as {
  [OVERRIDE]?: WorkflowEngineResolver
  [DEFAULT]?: WorkflowEngineResolver
}

/**
 * Overrides how `BaseWorkflow.start` and `.dispatch` find the engine outside a workflow, for the whole
 * process. `undefined` restores the default, the engine of the AdonisJS container.
 */
export function setWorkflowEngineResolver(resolver: WorkflowEngineResolver | undefined): void {
  slots[OVERRIDE] = resolver
}

/** Fills or empties the default slot; for the provider. */
export function setDefaultWorkflowEngineResolver(
  resolver: WorkflowEngineResolver | undefined
): void {
  slots[DEFAULT] = resolver
}

/** The engine to use now. Throws `DurableError` with code `no_engine` when there is none. */
export async function resolveWorkflowEngine(): Promise<WorkflowStarter> {
  const engine = await (slots[OVERRIDE] ?? slots[DEFAULT])?.()
  if (engine) return engine
  throw new DurableError(
    'there is no workflow engine in this process: list @adonis-agora/durable/durable_provider in ' +
      'adonisrc.ts and wait until the application has booted (a tenant has a run gateway in place of an ' +
      'engine), or in a test call setWorkflowEngineResolver(() => engine)',
    { code: 'no_engine' }
  )
}
