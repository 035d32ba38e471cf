/*
 * The registry: which workflows this process can run, by name and version.
 */
import { InvalidArgumentError, WorkflowNotRegisteredError } from '../errors.ts'
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { checkEventBatch } from './event_batch.ts'
import { checkQuota } from '../flow/quotas.ts'
import { checkSingleton } from '../flow/singletons.ts'
import { parseDuration } from '../foundation/duration.ts'
import { messageOf } from '../foundation/failure.ts'
import { isStandardSchema } from '../foundation/standard_schema.ts'
import { keyProblem } from '../foundation/keys.ts'
import { MAX_EVENT_NAME_BYTES } from '../foundation/tokens.ts'
import { compareVersions } from '../foundation/versions.ts'
import { checkHandlers } from './routes.ts'
import type { RunnableWorkflow, WorkflowLookup } from '../turns/needs.ts'
import type { WorkflowFn } from '../types/ctx.ts'
import type { RegisterOptions } from '../types/workflow.ts'

export interface RegisteredWorkflow extends RunnableWorkflow {
  options: RegisterOptions
}

/** Options whose machinery is not part of this release: refused, never silently ignored. */
const NOT_YET = ['requires'] as const

export class Registry implements WorkflowLookup {
  readonly #workflows = new Map<string, Map<string, RegisteredWorkflow>>()

  /** Adds or replaces `name@version`. Throws `InvalidArgumentError` for what cannot be registered. */
  register(
    name: string,
    version: string,
    fn: WorkflowFn,
    options: RegisterOptions = {},
    { refuses }: Pick<RunnableWorkflow, 'refuses'> = {}
  ): void {
    check('register: the workflow name', keyProblem(name))
    check(`register: the version of workflow "${name}"`, keyProblem(version))
    if (typeof fn !== 'function') {
      throw new InvalidArgumentError(`register: workflow "${name}"`, 'needs a function')
    }
    checkOptions(`register: workflow "${name}"`, options, OPTIONS.register)
    const { inputSchema, onEvent = [], validateInput } = options
    if (validateInput !== undefined && typeof validateInput !== 'function') {
      check(`register: validateInput of workflow "${name}"`, 'must be a function')
    }
    const origin: unknown = options.origin
    if (origin !== undefined) {
      check(`register: the origin of workflow "${name}"`, keyProblem(origin))
    }
    if (!Array.isArray(onEvent)) {
      check(`register: onEvent of workflow "${name}"`, 'must be a list of event names')
    }
    for (const slot of ['inputSchema', 'searchAttributesSchema'] as const) {
      if (options[slot] === undefined || isStandardSchema(options[slot])) continue
      const what = `register: the ${slot} of workflow "${name}"`
      throw new InvalidArgumentError(what, 'is not a Standard Schema (zod 3.24+, valibot, arktype)')
    }
    for (const event of onEvent) {
      const what = `register: event ${JSON.stringify(event)} of workflow "${name}"`
      check(what, keyProblem(event, MAX_EVENT_NAME_BYTES))
    }
    for (const option of NOT_YET) {
      if (options[option] === undefined) continue
      throw new InvalidArgumentError(
        `register: option "${option}" of workflow "${name}"`,
        'is not supported by this release'
      )
    }
    checkSingleton(name, options.singleton)
    checkQuota(`register: concurrency of workflow "${name}"`, options.concurrency)
    checkHandlers(name, options)
    checkEventBatch(name, options.eventBatch)
    const { tags = [] } = options
    if (!Array.isArray(tags)) check(`register: tags of workflow "${name}"`, 'must be a list')
    for (const tag of tags) {
      check(`register: tag ${JSON.stringify(tag)} of workflow "${name}"`, keyProblem(tag))
    }
    const versions = this.#workflows.get(name) ?? new Map<string, RegisteredWorkflow>()
    const { searchAttributesSchema, singleton, executionTimeout } = options
    const schemas = { inputSchema, searchAttributesSchema }
    const executionTimeoutMs = budgetOf(name, executionTimeout)
    const given = { ...schemas, singleton, executionTimeoutMs, refuses, options }
    versions.set(version, { name, version, fn, ...given })
    this.#workflows.set(name, versions)
  }

  find(name: string, version: string): RegisteredWorkflow | undefined {
    return this.#workflows.get(name)?.get(version)
  }

  newest(name: string): RegisteredWorkflow | undefined {
    const versions = [...(this.#workflows.get(name)?.values() ?? [])]
    return versions.sort((a, b) => compareVersions(b.version, a.version))[0]
  }

  /** Every version of every workflow. */
  all(): RegisteredWorkflow[] {
    return [...this.#workflows.values()].flatMap((versions) => [...versions.values()])
  }

  /** The newest version of every workflow that an event starts; by name. */
  subscribersOf(event: string): RegisteredWorkflow[] {
    const newest = [...this.#workflows.keys()].sort().map((name) => this.newest(name)!)
    return newest.filter(({ options }) => options.onEvent?.includes(event))
  }

  /** The version asked for, or the newest. Throws `WorkflowNotRegisteredError`; never falls back. */
  resolve(name: string, version?: string): RegisteredWorkflow {
    const found = version === undefined ? this.newest(name) : this.find(name, version)
    if (found) return found
    const known = [...(this.#workflows.get(name)?.keys() ?? [])]
    throw new WorkflowNotRegisteredError(
      name,
      version,
      known.length > 0 ? `Registered versions: ${known.join(', ')}` : undefined
    )
  }
}

/** The execution timeout in ms. Throws `InvalidArgumentError` for one that no run could keep. */
function budgetOf(name: string, given: string | number | undefined): number | undefined {
  if (given === undefined) return undefined
  const what = `register: executionTimeout of workflow "${name}"`
  let budget: number
  try {
    budget = Math.ceil(parseDuration(given))
  } catch (error) {
    throw new InvalidArgumentError(what, `cannot be used: ${messageOf(error)}`)
  }
  check(what, budget > 0 ? undefined : 'must be longer than 0')
  return budget
}

function check(what: string, problem: string | undefined): void {
  if (problem) throw new InvalidArgumentError(what, problem)
}
