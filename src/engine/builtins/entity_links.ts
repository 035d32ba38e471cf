/*
 * The links of an entity: a key's operations are taken by one run at a time, and each run that ends, by
 * continuing as new, by a failure or under recovery, is followed by one that takes over its state and what
 * it knew. Which run is live, what its successor begins with, and that there is only one.
 */
import type { Timers } from '../../foundation/clock.ts'
import { eventKeyName, linkOf, nextLinkId, signalName } from '../../foundation/ids.ts'
import { entityToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../../types/checkpoint.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { frontierOf } from '../runs/frontier.ts'
import type { RunLeases } from '../runs/run_leases.ts'
import type { Starter } from '../runs/starter.ts'

export const ENTITY_WORKFLOW = '__entity'
/** Operations a link remembers, so that one sent again is not applied again. */
const REMEMBERED_OPS = 1000
const REMEMBERED_KEYS = 10_000
/** How soon a link is looked at again that somebody holds: an operator, or who starts the next one. */
const HELD_MS = 50

export interface Message {
  op: string
  arg: unknown
  reply?: string
  opId: string
}

export interface LinkInput {
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

/** What applying an operation made, as its row keeps it. */
export interface Applied {
  result: unknown
  state: unknown
}

export interface EntityLinksOptions {
  store: FullStore
  starter: Pick<Starter, 'start'>
  leases: RunLeases
  timers: Timers
  instanceId: string
}

export class EntityLinks {
  readonly #options: EntityLinksOptions
  /** The last link of a key that was live when last looked at. */
  readonly #lastLinks = new Map<string, string>()

  constructor(options: EntityLinksOptions) {
    this.#options = options
  }

  /** Latest durable state; undefined for a key that no operation has reached. */
  async state(name: string, key: string): Promise<unknown> {
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
  async ensure(name: string, key: string, namespace?: string): Promise<void> {
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
    return this.ensure(name, key, namespace)
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

  /** The link that takes what comes after a failure; there once, whoever else starts it. */
  async startAfter(runId: string, input: LinkInput): Promise<void> {
    const { store, starter } = this.#options
    const run = await store.getRun(runId)
    const options = { namespace: run?.namespace }
    await starter.start(ENTITY_WORKFLOW, input, nextLinkId(runId), options)
  }
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

export const remembered = (opIds: Iterable<string>): string[] => [...opIds].slice(-REMEMBERED_OPS)
