/*
 * What a store or a transport has to be able to, for what was asked of the engine.
 */
import { runOutsideWorkflow } from '../authoring/ambient.ts'
import { InvalidArgumentError, StoreCapabilityError } from '../errors.ts'
import type { FullStore } from '../store/full_store.ts'
import { SCHEDULE_MEMBERS } from '../store/ports/members.ts'
import type { TransportPool } from '../transport/pool.ts'
import type { StepHandler } from '../types/step.ts'

export function requireScheduleRows({ base, capabilities }: FullStore): void {
  if (capabilities.schedules) return
  const missing = SCHEDULE_MEMBERS.filter((name) => base[name] === undefined)
  throw new StoreCapabilityError(
    `persistedSchedules needs a store that keeps schedules; this one lacks ${missing.join(', ')}`
  )
}

/** The id that a message of the run queue, or a caller, names. */
export function checkedRunId(where: string, given: { runId: string } | string): string {
  const runId: unknown = typeof given === 'string' ? given : given?.runId
  if (typeof runId === 'string' && runId !== '') return runId
  throw new InvalidArgumentError(where, 'takes a run id, or a message that carries one in runId')
}

/** Serves a step in this process. A handler never sees the workflow that happened to dispatch it here. */
export function serve({ pool }: { pool?: TransportPool }, name: string, fn: StepHandler): void {
  if (!pool?.servesSteps) {
    throw new InvalidArgumentError(
      `handle("${name}")`,
      'needs a transport that can serve step handlers in this process'
    )
  }
  pool.handle(name, (input, log) => runOutsideWorkflow(() => fn(input, log)))
}
