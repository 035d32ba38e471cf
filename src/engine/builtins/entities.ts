/*
 * Entities: one run per key takes operations from its token, one after the other. A handler and the record
 * of what it did are one local step; its history is cut by continuing as new. An operation that throws
 * answers its caller and fails that run; a new link goes on with the state before it.
 */
import { FatalError, InvalidArgumentError } from '../../errors.ts'
import { messageOf, type StepError, toStepError } from '../../foundation/failure.ts'
import { eventKeyName, linkOf, nextLinkId, randomId, signalName } from '../../foundation/ids.ts'
import { cloneJson, toStored } from '../../foundation/json.ts'
import { entityProblem, entityToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { EntityOp, EntitySender } from '../../turns/needs.ts'
import type { CompletionEnvelope } from '../../types/checkpoint.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import type { EntityConfig } from '../../types/entity.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import type { Signals } from '../delivery/signals.ts'
import type { Registry } from '../registry.ts'
import { frontierOf } from '../runs/frontier.ts'
import type { Starter } from '../runs/starter.ts'

export const ENTITY_WORKFLOW = '__entity'
const VERSION = '1'
/** Operations a link executes. */
const OPS_PER_LINK = 500
/** Operations a link remembers, so that one sent again is not applied again. */
const REMEMBERED_OPS = 1000
const REMEMBERED_KEYS = 10_000

interface Message {
  op: string
  arg: unknown
  reply?: string
  opId: string
}

type Done = { ok: true; result: unknown; state: unknown } | { ok: false; error: StepError }

interface LinkInput {
  name: string
  key: string
  state?: { value: unknown }
  applied?: string[]
}

export interface EntitiesOptions {
  store: FullStore
  registry: Registry
  starter: Pick<Starter, 'start'>
  signals: Pick<Signals, 'post'>
  maxPayloadBytes: number
}

export class Entities implements EntitySender {
  readonly #options: EntitiesOptions
  readonly #configs = new Map<string, EntityConfig>()
  /** The last link of a key that was live when last looked at. */
  readonly #lastLinks = new Map<string, string>()

  constructor(options: EntitiesOptions) {
    this.#options = options
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
    this.#options.registry.register(ENTITY_WORKFLOW, VERSION, this.#run as WorkflowFn)
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
    await this.#ensureRun(name, key, namespace)
    await this.#options.signals.post(token, message, { buffer: true })
  }

  /** Latest durable state; undefined for a key that no operation has reached. */
  async state(name: string, key: string): Promise<unknown> {
    const wrong = entityProblem(name, key, 'op')
    if (wrong) throw new InvalidArgumentError(`getEntityState: ${wrong.what}`, wrong.problem)
    const { store } = this.#options
    let run = await frontierOf(store, entityToken(name, key))
    while (run) {
      const row = await store.getLatestCheckpointByName(run.id, eventKeyName('state'))
      if (row) return row.output
      const { state } = run.input as LinkInput
      if (state) return state.value
      const { link } = linkOf(run.id)
      if (link === 0) return undefined
      const before = link === 1 ? entityToken(name, key) : `${entityToken(name, key)}~${link - 1}`
      run = (await store.getRun(before)) ?? undefined
    }
    return undefined
  }

  /** Somebody takes what is sent to this key: its run is live, or a new link follows the one that ended. */
  async #ensureRun(name: string, key: string, namespace: string | undefined): Promise<void> {
    const { store, starter } = this.#options
    const id = entityToken(name, key)
    const known = this.#lastLinks.get(id)
    const run = known === undefined ? undefined : await store.getRun(known)
    if (run && !isTerminalStatus(run.status)) return
    const first = await starter.start(ENTITY_WORKFLOW, { name, key }, id, { namespace })
    if (!isTerminalStatus(first.status)) return this.#remember(id, id)
    const last = await frontierOf(store, id)
    if (!last) return
    if (!isTerminalStatus(last.status)) return this.#remember(id, last.id)
    // Cancelled or dead: a failed one was followed by its successor.
    const input = await this.#inputAfter(last, name, key)
    const next = nextLinkId(last.id)
    await starter.start(ENTITY_WORKFLOW, input, next, { namespace: last.namespace ?? namespace })
    this.#remember(id, next)
  }

  #remember(id: string, link: string): void {
    this.#lastLinks.delete(id)
    this.#lastLinks.set(id, link)
    if (this.#lastLinks.size <= REMEMBERED_KEYS) return
    for (const oldest of this.#lastLinks.keys()) {
      this.#lastLinks.delete(oldest)
      return
    }
  }

  async #inputAfter(run: WorkflowRun, name: string, key: string): Promise<LinkInput> {
    const rows = await this.#options.store.listCheckpoints(run.id)
    const { applied = [], state } = run.input as LinkInput
    const taken = rows.filter(
      (row) => row.name === signalName(entityToken(name, key)) && row.status === 'completed'
    )
    const seen = taken.map((row) => (row.output as Message).opId)
    const last = rows.findLast((row) => row.name === eventKeyName('state'))
    return {
      name,
      key,
      state: last ? { value: last.output } : state,
      applied: [...applied, ...seen].slice(-REMEMBERED_OPS),
    }
  }

  readonly #run = async (ctx: WorkflowCtx, input: LinkInput): Promise<unknown> => {
    const { name, key } = input
    const token = entityToken(name, key)
    const applied = new Set(input.applied)
    let state = input.state?.value
    if (!input.state) {
      state = await ctx.localStep('initial', () => this.#config(name).initialState())
    }
    await ctx.setEvent('state', state)
    for (let i = 0; i < OPS_PER_LINK; i++) {
      const message = await ctx.waitForSignal<Message>(token)
      if (applied.has(message.opId)) continue
      applied.add(message.opId)
      const before = state
      const done = await ctx.localStep(`op:${i}`, () => this.#apply(name, before, message))
      if (done.ok) {
        state = done.state
        await ctx.setEvent('state', state)
      }
      const { reply } = message
      if (reply !== undefined) {
        await ctx.localStep(`reply:${i}`, () => this.#reply(reply, completionOf(done)))
      }
      if (!done.ok) return this.#fail(ctx, i, linkInput(name, key, state, applied), done.error)
    }
    return ctx.continueAsNew(linkInput(name, key, state, applied))
  }

  /** Runs a handler on a copy: a retry after a crash begins with the state before it. */
  async #apply(name: string, before: unknown, { op, arg }: Message): Promise<Done> {
    const state = cloneJson(before)
    try {
      const { handlers } = this.#config(name)
      if (!Object.hasOwn(handlers, op)) {
        throw new FatalError(`entity "${name}" has no operation "${op}"`, 'unknown_operation')
      }
      const result = await handlers[op](state, arg as never)
      return {
        ok: true,
        result: this.#stored(result, `the result of "${op}" on entity "${name}"`),
        state: this.#stored(state, `the state of entity "${name}"`),
      }
    } catch (error) {
      return { ok: false, error: toStepError(error) }
    }
  }

  /** What happened is recorded by now, so nothing can go on here: its successor takes what was sent. */
  async #fail(ctx: WorkflowCtx, i: number, input: LinkInput, error: StepError): Promise<never> {
    await ctx.localStep(`next:${i}`, async () => {
      const { store, starter } = this.#options
      const run = await store.getRun(ctx.runId)
      const options = { namespace: run?.namespace }
      await starter.start(ENTITY_WORKFLOW, input, nextLinkId(ctx.runId), options)
    })
    throw new FatalError(error.message, error.code, error.details)
  }

  /** Not kept: whoever waits registered before sending, and an answer that comes twice is nobody's. */
  async #reply(token: string, completion: CompletionEnvelope): Promise<void> {
    await this.#options.signals.post(token, completion, { buffer: false })
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

const linkInput = (name: string, key: string, state: unknown, applied: Set<string>): LinkInput => ({
  name,
  key,
  state: { value: state },
  applied: [...applied].slice(-REMEMBERED_OPS),
})

function completionOf(done: Done): CompletionEnvelope {
  if (done.ok) return { ok: true, value: done.result }
  const { message, code, details } = done.error
  return { ok: false, error: message, code, details }
}
