/*
 * Options objects: what is none is refused, and so is a key that nobody reads, since it is a misspelt one.
 * Only objects as they are written down are looked at: an instance of a class may carry more than options.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { ChildCallOptions } from '../types/ctx.ts'
import type { AllOptions } from '../types/fan.ts'
import type {
  StepConfig,
  StepDecoratorOptions,
  StepDispatchOpts,
  StepOptions,
} from '../types/step.ts'
import type {
  ConcurrencyConfig,
  RegisterOptions,
  SingletonConfig,
  StartOptions,
  WorkflowDispatchOptions,
  WorkflowMeta,
} from '../types/workflow.ts'

/** The keys of an options type; a key too many or too few is a type error. */
function keysOf<Options>(keys: Record<keyof Options, true>): ReadonlySet<string> {
  return new Set(Object.keys(keys))
}

const STEP: Record<keyof StepConfig, true> = {
  retries: true,
  backoff: true,
  backoffMs: true,
  backoffMaxMs: true,
  jitter: true,
  timeoutMs: true,
  pickupTimeoutMs: true,
  requires: true,
}

const DISPATCH: Record<keyof StepDispatchOpts, true> = {
  ...STEP,
  queue: true,
  priority: true,
  fairnessKey: true,
  transport: true,
}

const START: Record<keyof StartOptions, true> = {
  version: true,
  tags: true,
  searchAttributes: true,
  priority: true,
  namespace: true,
  startAt: true,
  origin: true,
  concurrency: true,
}

type StepCall = StepDispatchOpts & { compensate?: unknown }

export const OPTIONS = {
  step: keysOf<StepCall>({ ...DISPATCH, compensate: true }),
  localStep: keysOf<StepOptions>({ ...STEP, compensate: true }),
  declaredStep: keysOf<StepDecoratorOptions>({ ...STEP, name: true, input: true, output: true }),
  childFan: keysOf<AllOptions>({ mode: true, concurrency: true }),
  stepFan: keysOf<StepDispatchOpts & AllOptions>({ ...DISPATCH, mode: true, concurrency: true }),
  child: keysOf<ChildCallOptions>({ childId: true, priority: true }),
  wait: keysOf<{ timeoutMs?: number }>({ timeoutMs: true }),
  eventWait: keysOf<{ match?: unknown; timeoutMs?: number }>({ match: true, timeoutMs: true }),
  start: keysOf<StartOptions>(START),
  dispatch: keysOf<WorkflowDispatchOptions>({
    runId: true,
    ...START,
  }),
  register: keysOf<RegisterOptions>({
    tags: true,
    singleton: true,
    concurrency: true,
    executionTimeout: true,
    validateInput: true,
    inputSchema: true,
    searchAttributesSchema: true,
    onEvent: true,
    eventBatch: true,
    requires: true,
    origin: true,
    onError: true,
    deadLetterWorkflow: true,
  }),
  workflow: keysOf<WorkflowMeta>({
    name: true,
    version: true,
    tags: true,
    executionTimeout: true,
    onEvent: true,
    singleton: true,
    concurrency: true,
    origin: true,
    onError: true,
    deadLetterWorkflow: true,
    inputSchema: true,
    searchAttributes: true,
    on: true,
    schedules: true,
    file: true,
  }),
  singleton: keysOf<SingletonConfig>({ key: true, limit: true, maxQueueDepth: true }),
  concurrency: keysOf<ConcurrencyConfig>({ key: true, limit: true, countStatuses: true }),
} as const

/**
 * Throws `InvalidArgumentError`, beginning with `where`, for options that are no object or have a key that
 * is none of `known`; one that is undefined says nothing.
 */
export function checkOptions(where: string, options: unknown, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const got = options === null ? 'null' : Array.isArray(options) ? 'a list' : typeof options
    const takes = [...known].join(', ')
    throw new InvalidArgumentError(
      `${where}: the options`,
      `must be an object, got ${got}; there are ${takes}`
    )
  }
  const prototype: unknown = Object.getPrototypeOf(options)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return
  for (const key of Object.keys(options)) {
    if (known.has(key) || (options as Record<string, unknown>)[key] === undefined) continue
    throw new InvalidArgumentError(`${where}: option "${key}"`, unknownKey(key, known))
  }
}

function unknownKey(key: string, known: ReadonlySet<string>): string {
  const near = [...known]
    .map((name) => ({ name, distance: distance(key.toLowerCase(), name.toLowerCase()) }))
    .filter((one) => one.distance <= Math.max(2, one.name.length / 3))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 2)
    .map(({ name }) => `"${name}"`)
  const meant = near.length > 0 ? `Did you mean ${near.join(' or ')}? ` : ''
  return `is unknown. ${meant}There are ${[...known].join(', ')}`
}

/** Letters to change, add or leave out. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, row[j] + 1, next[j - 1] + 1))
    }
    row = next
  }
  return row[b.length]
}
