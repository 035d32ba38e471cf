/*
 * Entities: one run per key takes operations from its token, one after the other. A handler and the record
 * of what it did are one local step; its history is cut by continuing as new. An operation that throws
 * answers its caller and fails that run, once a new link with the state before it is there: whatever waits
 * in the buffer is taken, also when nobody sends anything any more.
 */
import { isRemoteEvent } from '../../wire/remote_events.ts'
import { FatalError, InvalidArgumentError, WorkflowNotRegisteredError } from '../../errors.ts'
import { isWorkflowControlFlowSignal } from '../../foundation/control_flow.ts'
import { messageOf, toStepError } from '../../foundation/failure.ts'
import { linkOf, randomId } from '../../foundation/ids.ts'
import { cloneJson, toStored } from '../../foundation/json.ts'
import { entityProblem, entityToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { EntityOp, EntitySender } from '../../turns/needs.ts'
import { type CompletionEnvelope, isSettledStatus } from '../../types/checkpoint.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import type { EntityConfig } from '../../types/entity.ts'
import type { StepOptions } from '../../types/step.ts'
import type { Signals } from '../delivery/signals.ts'
import type { EventHub } from '../event_hub.ts'
import type { Registry } from '../registry.ts'
import {
  type Applied,
  type EntityLinks,
  ENTITY_WORKFLOW,
  type LinkInput,
  type Message,
  remembered,
} from './entity_links.ts'

const VERSION = '1'
/** Operations a link executes. */
const OPS_PER_LINK = 500
const BURIED = 'max_recovery_attempts'
/** What is only handed to the store is tried again: that it failed once says nothing about the operation. */
const DELIVERY: StepOptions = {
  retries: 20,
  backoff: 'exp',
  backoffMs: 50,
  backoffMaxMs: 30_000,
  jitter: true,
}

export interface EntitiesOptions {
  store: FullStore
  registry: Registry
  links: EntityLinks
  signals: Pick<Signals, 'post'>
  hub: Pick<EventHub, 'subscribe'>
  /** Lets a drain wait for work that nobody awaits; reports what fails. */
  inBackground: (work: Promise<void>) => void
  maxPayloadBytes: number
}

export class Entities implements EntitySender {
  readonly #options: EntitiesOptions
  readonly #configs = new Map<string, EntityConfig>()

  constructor(options: EntitiesOptions) {
    this.#options = options
    options.hub.subscribe((event) => {
      const { type, workflow, runId, error } = event
      // Where it happened it is followed already.
      if (type !== 'run.failed' || workflow !== ENTITY_WORKFLOW || isRemoteEvent(event)) return
      if (error?.code === BURIED) options.inBackground(this.#follow(runId))
    })
  }

  /** Registers or replaces. Only a process that knows an entity executes entity runs. */
  register(name: string, config: EntityConfig): void {
    const wrong = entityProblem(name, 'key', 'op')
    if (wrong) throw new InvalidArgumentError(`registerEntity: ${wrong.what}`, wrong.problem)
    const { initialState, handlers } = config ?? {}
    if (typeof initialState !== 'function' || typeof handlers !== 'object' || handlers === null) {
      throw new InvalidArgumentError(
        `registerEntity: entity "${name}"`,
        'needs { initialState, handlers }'
      )
    }
    for (const [op, handler] of Object.entries(handlers)) {
      if (typeof handler === 'function') continue
      throw new InvalidArgumentError(
        `registerEntity: "${op}" of entity "${name}"`,
        'needs a function'
      )
    }
    this.#configs.set(name, config)
    const refuses = (input: unknown) => this.#refusal((input as LinkInput).name)
    const { registry } = this.#options
    registry.register(ENTITY_WORKFLOW, VERSION, this.#run as WorkflowFn, {}, { refuses })
  }

  /** An operation from outside a run. */
  async signal(name: string, key: string, op: string, arg: unknown): Promise<void> {
    const wrong = entityProblem(name, key, op)
    if (wrong) throw new InvalidArgumentError(`signalEntity: ${wrong.what}`, wrong.problem)
    const what = `the argument of "${op}" on entity "${name}"`
    const stored = this.#stored(arg, what)
    await this.send({ name, key, op, arg: stored, opId: randomId() })
  }

  async send({ name, key, op, arg, replyTo, opId, namespace }: EntityOp): Promise<void> {
    const token = entityToken(name, key)
    const message: Message = { op, arg, reply: replyTo, opId }
    await this.#options.links.ensure(name, key, namespace)
    await this.#options.signals.post(token, message, { buffer: true })
  }

  /** Latest durable state; undefined for a key that no operation has reached. */
  async state(name: string, key: string): Promise<unknown> {
    const wrong = entityProblem(name, key, 'op')
    if (wrong) throw new InvalidArgumentError(`getEntityState: ${wrong.what}`, wrong.problem)
    return this.#options.links.state(name, key)
  }

  /** A link that recovery buried had taken an operation, or leaves some in the buffer. */
  async #follow(runId: string): Promise<void> {
    const parts = /^entity:([^:]+):(.+)$/s.exec(linkOf(runId).origin)
    if (parts) await this.#options.links.ensure(parts[1], parts[2])
  }

  readonly #run = async (ctx: WorkflowCtx, input: LinkInput): Promise<unknown> => {
    const { name, key } = input
    const token = entityToken(name, key)
    const applied = new Set(input.applied)
    let state = input.state?.value
    let broken: FatalError | undefined
    if (!input.state) {
      const begun = await outcomeOf(ctx.localStep('initial', () => this.#initial(name)))
      if ('failure' in begun) broken = begun.failure
      else state = begun.state
    }
    if (!broken) await ctx.setEvent('state', state)
    let { left } = input
    for (let i = 0; i < OPS_PER_LINK; i++) {
      const { message, completion: owed } = left ?? {
        message: await ctx.waitForSignal<Message>(token),
      }
      if (!left && applied.has(message.opId)) continue
      left = undefined
      applied.add(message.opId)
      const before = state
      let failure: FatalError | undefined
      let completion = owed
      if (!completion) {
        const end: Outcome = broken
          ? { failure: broken }
          : await outcomeOf(ctx.localStep(`op:${i}`, () => this.#apply(name, before, message)))
        if ('failure' in end) failure = end.failure
        else await ctx.setEvent('state', (state = end.state))
        completion = 'failure' in end ? failed(end.failure) : { ok: true, value: end.result }
      }
      const { reply } = message
      if (reply !== undefined) {
        const answer = completion
        await ctx.localStep(`reply:${i}`, () => this.#reply(reply, message, answer), DELIVERY)
      }
      if (!failure) continue
      const next: LinkInput = { name, key, applied: remembered(applied) }
      if (!broken) next.state = { value: state }
      await ctx.localStep(
        `next:${i}`,
        () => this.#options.links.startAfter(ctx.runId, next),
        DELIVERY
      )
      throw failure
    }
    return ctx.continueAsNew({ name, key, state: { value: state }, applied: remembered(applied) })
  }

  async #initial(name: string): Promise<Applied> {
    try {
      const state = await this.#config(name).initialState()
      return {
        result: undefined,
        state: this.#stored(state, `the first state of entity "${name}"`),
      }
    } catch (error) {
      const { message, code, details } = toStepError(error)
      throw new FatalError(message, code, details)
    }
  }

  /** A process that does not know an entity leaves its runs to those that do. */
  #refusal(name: string): Error | undefined {
    if (this.#configs.has(name)) return undefined
    return new WorkflowNotRegisteredError(
      ENTITY_WORKFLOW,
      VERSION,
      `Entity "${name}" is not registered in this process: call registerEntity in a preload`
    )
  }

  /** Runs a handler on a copy: a retry after a crash begins with the state before it. */
  async #apply(name: string, before: unknown, { op, arg }: Message): Promise<Applied> {
    const state = cloneJson(before)
    try {
      const { handlers } = this.#config(name)
      if (!Object.hasOwn(handlers, op)) {
        throw new FatalError(`entity "${name}" has no operation "${op}"`, 'unknown_operation')
      }
      const result = await handlers[op](state, arg as never)
      return {
        result: this.#stored(result, `the result of "${op}" on entity "${name}"`),
        state: this.#stored(state, `the state of entity "${name}"`),
      }
    } catch (error) {
      const { message, code, details } = toStepError(error)
      throw new FatalError(message, code, details)
    }
  }

  /**
   * Whoever waits registered before sending, and an answer that comes twice is nobody's. It is kept only for
   * a caller that has no answer yet and may go on: one that failed meanwhile and is re-opened.
   */
  async #reply(token: string, { opId }: Message, completion: CompletionEnvelope): Promise<void> {
    const { signals, store } = this.#options
    if (await signals.post(token, completion, { buffer: false })) return
    const { runId, seq } = callOf(opId)
    const run = await store.getRun(runId)
    if (!run || run.status === 'completed' || run.status === 'cancelled') return
    const row = await store.getCheckpoint(runId, seq)
    if (row && isSettledStatus(row.status)) return
    await signals.post(token, completion, { buffer: true })
  }

  #config(name: string): EntityConfig {
    const config = this.#configs.get(name)
    if (!config) throw new FatalError(`entity "${name}" is not registered`, 'unknown_entity')
    return config
  }

  #stored(value: unknown, what: string): unknown {
    try {
      return toStored(value, what, this.#options.maxPayloadBytes)
    } catch (error) {
      throw new InvalidArgumentError('entity:', messageOf(error))
    }
  }
}

type Outcome = Applied | { failure: FatalError }

/** What was applied, or why it was not. A suspension is no outcome. */
async function outcomeOf(step: Promise<Applied>): Promise<Outcome> {
  try {
    return await step
  } catch (error) {
    if (isWorkflowControlFlowSignal(error)) throw error
    const { message, code, details } = toStepError(error)
    return { failure: new FatalError(message, code, details) }
  }
}

const failed = ({ message, code, details }: FatalError): CompletionEnvelope => ({
  ok: false,
  error: message,
  code,
  details,
})

/** The call that an operation with an answer came from. */
function callOf(opId: string): { runId: string; seq: number } {
  const at = opId.lastIndexOf(':')
  return { runId: opId.slice(0, at), seq: Number(opId.slice(at + 1)) }
}
