/*
 * From what a schedule names to the registered name of its workflow.
 */
import { workflowMeta, workflowName } from '../authoring/workflow_ref.ts'
import { InvalidArgumentError } from '../errors.ts'
import { DurableError, messageOf } from '../foundation/failure.ts'
import type {
  LazyWorkflowImport,
  ScheduledRef,
  ScheduledWorkflow,
} from '../types/scheduled_workflow.ts'
import type { WorkflowRef } from '../types/workflow.ts'

/** A schedule whose workflow is a name. */
export type ResolvedSchedule = ScheduledWorkflow & { workflow: string }

/**
 * The schedules with every workflow resolved to its registered name: lazy imports are performed. Call it
 * once the application has booted. Rejects with `DurableError` (`schedule_import`) for a module that cannot
 * be imported, with `InvalidArgumentError` for a class without `static workflow`; both name the key.
 */
export async function resolveSchedules(
  schedules: readonly ScheduledWorkflow[]
): Promise<ResolvedSchedule[]> {
  if (!Array.isArray(schedules)) {
    throw new InvalidArgumentError('resolveSchedules: the schedules', 'must be a list')
  }
  for (const [index, schedule] of (schedules as readonly unknown[]).entries()) {
    if (typeof schedule === 'object' && schedule !== null && !Array.isArray(schedule)) continue
    const got = schedule === null ? 'null' : Array.isArray(schedule) ? 'a list' : typeof schedule
    throw new InvalidArgumentError(
      `resolveSchedules: schedules[${index}]`,
      `must be an object { key, workflow, cron }, got ${got}`
    )
  }
  const resolved: ResolvedSchedule[] = []
  for (const schedule of schedules) {
    resolved.push({ ...schedule, workflow: await resolvedName(schedule) })
  }
  return resolved
}

/** The name, for a name or a class. Throws `InvalidArgumentError` for a lazy import. */
export function nameOf({ key, workflow }: ScheduledWorkflow): string {
  if (isLazy(workflow)) {
    throw new InvalidArgumentError(
      `schedule "${key}": its workflow`,
      'is a lazy import: pass what resolveSchedules answers'
    )
  }
  return named(key, workflow)
}

export async function resolvedName({ key, workflow }: ScheduledWorkflow): Promise<string> {
  if (!isLazy(workflow)) return named(key, workflow)
  let module: unknown
  try {
    module = await workflow()
  } catch (cause) {
    throw new DurableError(
      `schedule "${key}": its workflow cannot be imported: ${messageOf(cause)}`,
      { code: 'schedule_import', cause }
    )
  }
  const found = (module as { default?: unknown } | undefined)?.default ?? module
  return named(key, found as WorkflowRef)
}

function named(key: string, ref: WorkflowRef): string {
  const isName = typeof ref === 'string' && ref !== ''
  if (isName || (typeof ref === 'function' && workflowMeta(ref))) return workflowName(ref)
  throw new InvalidArgumentError(
    `schedule "${key}": its workflow`,
    'must be a registered name, a workflow class with `static workflow = { name }`, or a lazy import of one'
  )
}

/** A class has a prototype and an arrow function none. */
export const isLazy = (ref: ScheduledRef): ref is LazyWorkflowImport =>
  typeof ref === 'function' && !workflowMeta(ref) && ref.prototype === undefined
