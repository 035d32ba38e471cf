/*
 * Schedules at boot: those of the config and of the discovered classes become known to the engine. Who
 * fires them is the worker loop; lazy imports wait for it, because a workflow may import what awaits the
 * boot.
 */
import type { SchedulesApi } from '../engine/api.ts'
import type { WorkflowMeta } from '../types/workflow.ts'
import type { ScheduledWorkflow } from '../types/scheduled_workflow.ts'
import { newestOf } from './boot_triggers.ts'

export interface SchedulesAtBoot {
  engine: Pick<SchedulesApi, 'registerSchedules'>
  configured: readonly ScheduledWorkflow[] | undefined
  /** What was discovered. */
  workflows: readonly WorkflowMeta[]
}

/** Rejects for a schedule that cannot be used, by its key. */
export async function registerSchedulesAtBoot(options: SchedulesAtBoot): Promise<void> {
  const { engine, configured = [], workflows } = options
  await engine.registerSchedules(configured, 'config')
  await engine.registerSchedules(newestOf(workflows).flatMap(colocated), 'class')
}

function colocated({ name, schedules = [] }: WorkflowMeta): ScheduledWorkflow[] {
  return schedules.map((schedule, index) => {
    const key = schedules.length === 1 ? name : `${name}:${index}`
    return { ...schedule, key: schedule.key ?? key, workflow: name }
  })
}
