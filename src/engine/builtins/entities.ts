/*
 * Entities: one run per key takes operations from its token, one after the other. A handler and the record
 * of what it did are one local step; its history is cut by continuing as new. An operation that throws
 * answers its caller and fails that run, once a new link with the state before it is there: whatever waits
 * in the buffer is taken, also when nobody sends anything any more.
 */
import { FatalError, InvalidArgumentError } from '../../errors.ts'
import type { Timers } from '../../foundation/clock.ts'
import { isWorkflowControlFlowSignal } from '../../foundation/control_flow.ts'
import { messageOf, toStepError } from '../../foundation/failure.ts'
import { eventKeyName, linkOf, nextLinkId, randomId, signalName } from '../../foundation/ids.ts'
import { cloneJson, toStored } from '../../foundation/json.ts'
import { entityProblem, entityToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { EntityOp, EntitySender } from '../../turns/needs.ts'
import {
  type CompletionEnvelope,
  isSettledStatus,
  type StepCheckpoint,
} from '../../types/checkpoint.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import type { EntityConfig } from '../../types/entity.ts'
import type { StepOptions } from '../../types/step.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import type { Signals } from '../delivery/signals.ts'
import type { EventHub } from '../event_hub.ts'
import type { Registry } from '../registry.ts'
import { frontierOf } from '../runs/frontier.ts'
import type { RunLeases } from '../runs/run_leases.ts'
import type { Starter } from '../runs/starter.ts'

export const ENTITY_WORKFLOW = '__entity'
const VERSION = '1'
/** Operations a link executes. */
const OPS_PER_LINK = 500
/** Operations a link remembers, so that one sent again is not applied again. */
const REMEMBERED_OPS = 1000
const REMEMBERED_KEYS = 10_000
/** How soon a link is looked at again that somebody holds: an operator, or who starts the next one. */
const HELD_MS = 50
const BURIED = 'max_recovery_attempts'
/** What is only handed to the store is tried again: that it failed once says nothing about the operation. */
const DELIVERY: StepOptions = {
  retries: 20,
  backoff: 'exp',
  backoffMs: 50,
  backoffMaxMs: 30_000,
  jitter: true,
}

interface Message {
  op: string
  arg: unknown
  reply?: string
  opId: string
}

interface LinkInput {
  name: string
  key: string
  state?: { value: unknown }
  applied?: string[]
  left?: Left
}

/** An operation that a link took and was buried with; when it was applied, what is still to be answered. */
interface Left {
  message: Message
  completion?: CompletionEnvelope
}

interface Applied {
  result: unknown
  state: unknown
}

export interface EntitiesOptions {
  store: FullStore
  registry: Registry
  starter: Pick<Starter, 'start'>
  signals: Pick<Signals, 'post'>
  hub: Pick<EventHub, 'subscribe'>
  leases: RunLeases
  timers: Timers
  instanceId: string
  /** Lets a drain wait for work that nobody awaits; reports what fails. */
  inBackground: (work: Promise<void>) => void
  maxPayloadBytes: number
}

export class Entities implements EntitySender {
  readonly #options: EntitiesOptions
  readonly #configs = new Map<string, EntityConfig>()
  /** The last link of a key that was live when last looked at. */
  readonly #lastLinks = new Map<string, string>()

  constructor(options: EntitiesOptions) {
    this.#options = options
    options.hub.subscribe(({ type, workflow, runId, error }) => {
      if (type !== 'run.failed' || workflow !== ENTITY_WORKFLOW) return
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

  /** A link that recovery buried had taken an operation, or leaves some in the buffer. */
  async #follow(runId: string): Promise<void> {
    const parts = /^entity:([^:]+):(.+)$/s.exec(linkOf(runId).origin)
    if (parts) await this.#ensureRun(parts[1], parts[2], undefined)
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
    await this.#startNext(last.id, { name, key, namespace })
  }

  /**
   * Under the lease of the link that ended: an operator who brings it back either comes first, and it goes
   * on itself, or finds it followed.
   */
  async #startNext(
    endedId: string,
    { name, key, namespace }: { name: string; key: string; namespace?: string }
  ): Promise<void> {
    const { starter, leases, instanceId, timers } = this.#options
    const next = nextLinkId(endedId)
    const live = await leases.hold(endedId, `${instanceId}/entity`, async (ended) => {
      if (!isTerminalStatus(ended.status)) return endedId
      const input = await this.#inputAfter(ended, name, key)
      const options = { namespace: ended.namespace ?? namespace }
      await starter.start(ENTITY_WORKFLOW, input, next, options)
      return next
    })
    if (live !== undefined) return this.#remember(entityToken(name, key), live)
    await new Promise<void>((resolve) => timers.after(HELD_MS, resolve))
    return this.#ensureRun(name, key, namespace)
  }

  /** A link whose state a later link has taken over. */
  async isFollowed({ id, workflow }: WorkflowRun): Promise<boolean> {
    if (workflow !== ENTITY_WORKFLOW) return false
    return (await this.#options.store.getRun(nextLinkId(id))) !== null
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
    const last = rows.findLast((row) => row.name === eventKeyName('state'))
    const seen = takenBy(rows, entityToken(name, key)).map((row) => (row.output as Message).opId)
    return {
      name,
      key,
      state: last ? { value: last.output } : state,
      applied: remembered([...applied, ...seen]),
      left: leftBy(run.input as LinkInput, rows),
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
        const end = await outcomeOf(
          ctx.localStep(`op:${i}`, () => this.#apply(name, before, message))
        )
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
      const next = { name, key, state: { value: state }, applied: remembered(applied) }
      await ctx.localStep(`next:${i}`, () => this.#startAfter(ctx.runId, next), DELIVERY)
      throw failure
    }
    return ctx.continueAsNew({ name, key, state: { value: state }, applied: remembered(applied) })
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

  /** The link that takes what comes after a failure; there once, whoever else starts it. */
  async #startAfter(runId: string, input: LinkInput): Promise<void> {
    const { store, starter } = this.#options
    const run = await store.getRun(runId)
    const options = { namespace: run?.namespace }
    await starter.start(ENTITY_WORKFLOW, input, nextLinkId(runId), options)
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

/** What was applied, or why it was not. A suspension is no outcome. */
async function outcomeOf(step: Promise<Applied>): Promise<Applied | { failure: FatalError }> {
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

const takenBy = (rows: StepCheckpoint[], token: string): StepCheckpoint[] =>
  rows.filter((row) => row.name === signalName(token) && row.status === 'completed')

/** An operation is applied once its state is recorded. One that failed is not tried again. */
function leftBy(
  { name, key, applied = [], left }: LinkInput,
  rows: StepCheckpoint[]
): Left | undefined {
  const taken = takenBy(rows, entityToken(name, key))
  const last = taken.at(-1)
  const message = last ? (last.output as Message) : left?.message
  if (!message) return undefined
  const earlier = [...applied, ...taken.slice(0, -1).map((row) => (row.output as Message).opId)]
  if (last && earlier.includes(message.opId)) return undefined
  const isState = (row: StepCheckpoint) => row.name === eventKeyName('state')
  const from = last?.seq ?? rows.find(isState)?.seq ?? Infinity
  const since = rows.filter(({ seq }) => seq > from)
  const op = since.find((row) => row.name.startsWith('op:'))
  const owed = last ? undefined : left?.completion
  if (op?.status === 'failed') return undefined
  if (!owed && !since.some(isState)) return { message }
  const answered = since.some((row) => row.name.startsWith('reply:') && row.status === 'completed')
  if (message.reply === undefined || answered) return undefined
  return { message, completion: owed ?? { ok: true, value: (op?.output as Applied).result } }
}

const remembered = (opIds: Iterable<string>): string[] => [...opIds].slice(-REMEMBERED_OPS)
