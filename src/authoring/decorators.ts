/*
 * Class decorators of workflows: what starts a run beside calls. They only stamp `static on` and
 * `static schedule`; the AdonisJS binding listens and ticks.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { WorkflowScheduleConfig } from '../types/schedule.ts'
import type {
  DiagnosticsTriggerConfig,
  EmitterTriggerConfig,
  WorkflowTrigger,
} from '../types/workflow.ts'

/** The library under which this package reports its own events. */
export const OWN_LIBRARY = 'durable'

/**
 * Starts a run of the workflow whenever the application's emitter emits `config.event`, an exact name. The
 * event's data is the input; the run id is random. The class must be one that is discovered at boot.
 * Decorators add up, in source order; a subclass with decorators of its own has only those.
 *
 * Throws `InvalidArgumentError` for a config without an event name.
 */
export function OnEvent(config: EmitterTriggerConfig): ClassDecorator {
  return stamping('@OnEvent', { ...config }, emitterProblem)
}

/**
 * Starts a run of the workflow whenever a library reports to the diagnostics bus: `config.lib` names it,
 * `config.event` one of its events or a pattern (default: all of them). The payload is the input; the run
 * id is random. Library `durable` needs an event, and a workflow never starts on events of its own runs.
 * Decorators add up as those of `OnEvent` do.
 *
 * Throws `InvalidArgumentError` for a config that cannot be used.
 */
export function OnDiagnostic(config: DiagnosticsTriggerConfig): ClassDecorator {
  return stamping('@OnDiagnostic', { ...config }, diagnosticsProblem)
}

/**
 * Starts runs of the workflow on a schedule, or on several: the decorator form of `static schedule`. The
 * class must be one that is discovered at boot, and a worker must run. Decorators add up, in source order;
 * a subclass with decorators of its own has only those.
 *
 * Throws `InvalidArgumentError` for what is no schedule; its options are checked at boot.
 */
export function Scheduled(
  config: WorkflowScheduleConfig | WorkflowScheduleConfig[]
): ClassDecorator {
  const schedules = [config].flat()
  if (schedules.length === 0 || !schedules.every(isObject)) {
    throw new InvalidArgumentError('@Scheduled', "needs a schedule: { cron: '0 2 * * *' }")
  }
  return (target) => {
    const later = Object.hasOwn(target, 'schedule') ? schedulesOf(target) : []
    stamp(target, 'schedule', [...schedules, ...later])
  }
}

/** The schedules in a class's `static schedule`. Throws `InvalidArgumentError` for what is none. */
export function schedulesOf(target: object): WorkflowScheduleConfig[] {
  const { schedule } = target as {
    schedule?: WorkflowScheduleConfig | readonly WorkflowScheduleConfig[]
  }
  const schedules = [schedule ?? []].flat() as WorkflowScheduleConfig[]
  if (schedules.every(isObject)) return schedules
  const what = `static schedule of ${(target as { name?: string }).name}`
  throw new InvalidArgumentError(what, "must hold schedules: { cron: '0 2 * * *' }")
}

/** Whether a trigger listens to the diagnostics bus, not to the emitter. */
export function isDiagnosticsTrigger(
  trigger: WorkflowTrigger
): trigger is DiagnosticsTriggerConfig {
  return 'lib' in trigger
}

/** The triggers in a class's `static on`. Throws `InvalidArgumentError` for one that cannot be used. */
export function triggersOf(target: object): WorkflowTrigger[] {
  const { on } = target as { on?: WorkflowTrigger | readonly WorkflowTrigger[] }
  const triggers = [on ?? []].flat() as WorkflowTrigger[]
  for (const trigger of triggers) {
    const problem = triggerProblem(trigger)
    if (problem) {
      throw new InvalidArgumentError(`static on of ${(target as { name?: string }).name}`, problem)
    }
  }
  return triggers
}

function stamping(
  decorator: string,
  trigger: WorkflowTrigger,
  problemOf: (trigger: never) => string | undefined
): ClassDecorator {
  const problem = problemOf(trigger as never)
  if (problem) throw new InvalidArgumentError(decorator, problem)
  return (target) => {
    // Decorators run from the last to the first. Inherited triggers stay those of the base class.
    const later = Object.hasOwn(target, 'on') ? triggersOf(target) : []
    stamp(target, 'on', [trigger, ...later])
  }
}

function stamp(target: object, name: string, value: unknown): void {
  const property = { value, configurable: true, enumerable: true, writable: true }
  Object.defineProperty(target, name, property)
}

function triggerProblem(trigger: WorkflowTrigger): string | undefined {
  if (typeof trigger !== 'object' || trigger === null)
    return 'must hold { event } or { lib, event }'
  return isDiagnosticsTrigger(trigger) ? diagnosticsProblem(trigger) : emitterProblem(trigger)
}

function emitterProblem({ event }: EmitterTriggerConfig): string | undefined {
  return isName(event) ? undefined : 'needs the name of an event: { event: "order:paid" }'
}

function diagnosticsProblem({ lib, event }: DiagnosticsTriggerConfig): string | undefined {
  if (!isName(lib)) return 'needs the name of a library: { lib: "queue" }'
  if (event === undefined) {
    return lib === OWN_LIBRARY
      ? `needs an event for library "${OWN_LIBRARY}": each run it starts reports events of its own`
      : undefined
  }
  return isName(event) || event instanceof RegExp
    ? undefined
    : 'takes the name of an event or a pattern as its event'
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''
