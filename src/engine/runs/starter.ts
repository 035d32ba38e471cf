/*
 * Starting runs. Every check comes before the row; the insert itself decides who started an id. A start
 * that rejects has written nothing.
 */
import { checkOptions, OPTIONS } from '../../authoring/options.ts'
import { validateStandard } from '../../authoring/validate_standard.ts'
import { workflowName } from '../../authoring/workflow_ref.ts'
import { InvalidArgumentError } from '../../errors.ts'
import { attributeProblem } from '../../foundation/attributes.ts'
import type { Clock } from '../../foundation/clock.ts'
import { messageOf } from '../../foundation/failure.ts'
import { toStored } from '../../foundation/json.ts'
import { keyProblem } from '../../foundation/keys.ts'
import { checkQuota, type Quotas } from '../../flow/quotas.ts'
import type { Singletons } from '../../flow/singletons.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { ChildOrder, ChildRuns } from '../../turns/needs.ts'
import type { RunResult, SearchAttributes, WorkflowRun } from '../../types/run.ts'
import type { ConcurrencyQuota, StartOptions, WorkflowRef } from '../../types/workflow.ts'
import type { Registry, RegisteredWorkflow } from '../registry.ts'
import type { DueTimes } from '../upkeep/due_times.ts'
import type { Wakes } from '../wakes.ts'
import { resultOf } from './result.ts'

export interface StarterOptions {
  store: Pick<FullStore, 'createRun' | 'getRun'>
  registry: Registry
  wakes: Pick<Wakes, 'started'>
  clock: Clock
  singletons: Pick<Singletons, 'tagsOf'>
  quotas: Pick<Quotas, 'tagOf'>
  dueTimes: Pick<DueTimes, 'note'>
  namespace?: string
  maxPayloadBytes: number
}

export class Starter implements Pick<ChildRuns, 'prepare'> {
  readonly #options: StarterOptions

  constructor(options: StarterOptions) {
    this.#options = options
  }

  async start(
    ref: WorkflowRef,
    input: unknown,
    runId: string,
    options: StartOptions = {}
  ): Promise<RunResult> {
    const { registry, store, wakes, dueTimes } = this.#options
    check('start: the run id', keyProblem(runId))
    checkOptions('start', options, OPTIONS.start)
    const workflow = registry.resolve(workflowName(ref), options.version)
    checkStart(options)
    const stored = this.#storedInput(workflow, input)
    await validateInput(workflow, stored)
    let run: WorkflowRun
    try {
      run = await this.#newRun(workflow, stored, runId, options)
    } catch (error) {
      // Whoever starts an id again is never turned away.
      const known = await store.getRun(runId)
      if (!known) throw error
      return resultOf(known)
    }
    try {
      await store.createRun(run)
      if (run.wakeAt !== undefined) dueTimes.note(run.wakeAt)
    } catch (error) {
      // Somebody else may have started this id: then theirs is the run.
      const winner = await store.getRun(runId).catch(() => null)
      if (!winner) throw error
      return resultOf(winner)
    }
    if (run.status === 'pending') wakes.started(run)
    return { runId, status: run.status }
  }

  /** The row of a child run; every check of a start, no write. Rejects with why it cannot be started. */
  async prepare(order: ChildOrder, parent: WorkflowRun): Promise<WorkflowRun> {
    const { childId, workflow: name, input, priority } = order
    const workflow = this.#options.registry.resolve(name)
    await validateInput(workflow, input)
    // The parent's run decides the pool, never the engine that happens to execute it (invariant 10).
    const options = { namespace: parent.namespace, priority }
    try {
      return await this.#newRun(workflow, input, childId, options)
    } catch (error) {
      const known = await this.#options.store.getRun(childId)
      if (!known) throw error
      return known
    }
  }

  /** Tags by which a run is admitted. Rejects when too many are there already. */
  async #admissionTags(
    { name, options }: RegisteredWorkflow,
    input: unknown,
    quota: ConcurrencyQuota | undefined
  ): Promise<string[]> {
    const { singletons, quotas } = this.#options
    const tag = await quotas.tagOf(name, quota ?? options.concurrency, input)
    const tags = options.singleton ? await singletons.tagsOf(name, options.singleton, input) : []
    return tag === undefined ? tags : [...tags, tag]
  }

  #storedInput(workflow: RegisteredWorkflow, input: unknown): unknown {
    const what = `the input of workflow "${workflow.name}"`
    try {
      return toStored(input, what, this.#options.maxPayloadBytes)
    } catch (error) {
      throw new InvalidArgumentError('start:', messageOf(error))
    }
  }

  async #newRun(
    workflow: RegisteredWorkflow,
    input: unknown,
    runId: string,
    options: StartOptions
  ): Promise<WorkflowRun> {
    const admission = await this.#admissionTags(workflow, input, options.concurrency)
    const now = this.#options.clock()
    const startAt = options.startAt === undefined ? now : Math.ceil(Number(options.startAt))
    const run: WorkflowRun = {
      id: runId,
      workflow: workflow.name,
      workflowVersion: workflow.version,
      status: startAt > now ? 'suspended' : 'pending',
      namespace: options.namespace || this.#options.namespace || 'default',
      input,
      createdAt: new Date(now),
      updatedAt: new Date(now),
    }
    if (startAt > now) run.wakeAt = startAt
    const { executionTimeoutMs } = workflow
    if (executionTimeoutMs !== undefined) {
      run.deadlineAt = Math.max(now, startAt) + executionTimeoutMs
    }
    const origin = options.origin ?? workflow.options.origin
    if (origin !== undefined) run.origin = origin
    if (options.priority !== undefined) run.priority = options.priority
    if (options.searchAttributes) run.searchAttributes = { ...options.searchAttributes }
    const tags = [...mergedTags(workflow.options.tags, options.tags), ...admission]
    if (tags.length > 0) run.tags = tags
    return run
  }
}

function check(what: string, problem: string | undefined): void {
  if (problem) throw new InvalidArgumentError(what, problem)
}

function checkStart(options: StartOptions): void {
  const { tags = [] } = options
  if (!Array.isArray(tags)) throw new InvalidArgumentError('start: tags', 'must be a list')
  for (const tag of tags) {
    check(`start: tag ${JSON.stringify(tag)}`, keyProblem(tag))
  }
  if (options.namespace) check('start: the namespace', keyProblem(options.namespace))
  if (options.origin !== undefined) check('start: the origin', keyProblem(options.origin))
  if (options.startAt !== undefined && !isMoment(options.startAt)) {
    throw new InvalidArgumentError('start: startAt', 'must be a valid Date or epoch ms')
  }
  if (options.priority !== undefined && !isInt32(options.priority)) {
    throw new InvalidArgumentError('start: priority', 'must be an integer of at most 32 bits')
  }
  checkQuota('start: concurrency', options.concurrency)
  checkAttributes(options.searchAttributes)
}

function checkAttributes(attributes: SearchAttributes | undefined): void {
  const wrong = attributeProblem(attributes ?? {})
  if (!wrong) return
  throw new InvalidArgumentError(
    `start: the search attribute ${JSON.stringify(wrong.key)}`,
    wrong.problem
  )
}

/** A Date or epoch ms that a Date can hold. */
const isMoment = (value: unknown): boolean =>
  (value instanceof Date || typeof value === 'number') && !Number.isNaN(new Date(value).getTime())

/** What every store keeps in an integer column. */
const isInt32 = (value: unknown): boolean =>
  Number.isInteger(value) && Math.abs(value as number) < 2 ** 31

async function validateInput(workflow: RegisteredWorkflow, input: unknown): Promise<void> {
  const { inputSchema, validateInput: validate } = workflow.options
  const label = `the input of workflow "${workflow.name}"`
  const parsed = inputSchema
    ? await validateStandard(inputSchema, input, label, 'invalid_input')
    : input
  const refusal = await validate?.(parsed)
  if (typeof refusal === 'string' && refusal !== '') {
    throw new InvalidArgumentError(label, `was refused: ${refusal}`)
  }
}

/** By these the engine finds its own. */
const RESERVED = ['durable:', 'singleton:', 'concurrency:']

/** Static tags, then per-start ones, each once; reserved ones are not a caller's to set. */
function mergedTags(ofWorkflow: string[] = [], ofStart: string[] = []): string[] {
  return [...new Set([...ofWorkflow, ...ofStart])].filter(
    (tag) => !RESERVED.some((prefix) => tag.startsWith(prefix))
  )
}
