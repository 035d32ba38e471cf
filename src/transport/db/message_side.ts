/*
 * Everything of a `db` transport that is neither a step nor its result: decisions and step events of
 * remote turns, requests of pods without a store and their replies, tenant events, run hints. One lane
 * takes them all, from the lists that this process consumes.
 */
import { isolate } from '../../foundation/failure.ts'
import { sleepOn } from '../../foundation/clock.ts'
import { DurableError } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import { decode, encode, toWire, type Messages } from '../../wire/codec.ts'
import type { RunDispatch, TenantEvent } from '../../wire/messages.ts'
import { Inbox } from '../inbox.ts'
import { type Batch, ClaimLane, type LiveClaim, type Taken } from './claim_lane.ts'
import type { TableKeys } from './keys.ts'
import {
  type ClaimedMessage,
  claimMessages,
  deleteMessage,
  dropUnreachable,
  insertMessage,
  type MessageKind,
  type MessageList,
} from './messages.ts'
import { topics } from './nudges.ts'
import { pace, type Shared } from './shared.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'
import { freeLapsed, releaseClaims, renewClaims } from './claims.ts'

type Handler = (payload: string) => Promise<void>

/** Kinds that anybody may take, and what each carries. */
export type SharedKind = 'decision' | 'stepEvent' | 'startRun' | 'runRequest'

interface Consumer {
  list(): MessageList
  handler: Handler
  inFlight: Set<Promise<void>>
  topic?: string
  /** It was stopped: a look that was under way may still find something for it. */
  stopped?: boolean
}

export class MessageSide {
  readonly inbox: Inbox
  readonly #shared: Shared
  readonly #keys: TableKeys
  readonly #lane: ClaimLane
  readonly #consumers = new Map<string, Consumer>()
  readonly #tenants = new Map<string, Set<(event: TenantEvent) => void>>()
  #sweptAt = 0

  constructor(shared: Shared, keys: TableKeys) {
    this.#shared = shared
    this.#keys = keys
    const { session, clock, timers, onError, instanceId, tuning } = shared
    this.inbox = new Inbox({
      store: keys,
      names: shared.keyNames,
      instanceId,
      cacheMs: tuning.tenantSubscribersCacheMs,
      clock,
      timers,
      onError,
    })
    this.#lane = new ClaimLane({
      ...pace(shared),
      what: 'messages',
      slots: () => tuning.batchSize,
      // Decisions, replies and run hints are what somebody waits for.
      idleBackoffMax: 1,
      take: (claim) => this.#take(claim),
      renew: (held, nowMs) => renewClaims(session, T.messages, 'id', held, nowMs),
      freeLapsed: (beforeMs) => this.#freeLapsed(beforeMs),
      release: (held) => releaseClaims(session, T.messages, 'id', held),
    })
  }

  /** Hands a message to anybody who consumes its kind. */
  async publish<K extends SharedKind>(kind: K, message: Messages[K]): Promise<void> {
    const asks = kind === 'startRun' || kind === 'runRequest'
    const wire = toWire(kind, message)
    const payload = asks ? { ...wire, replyTo: this.#shared.instanceId } : wire
    await this.#insert({ kind, payload: JSON.stringify(payload) })
  }

  /** A second consumer of a kind changes nothing. */
  consume<K extends SharedKind>(kind: K, handler: (message: Messages[K]) => Promise<void>): void {
    this.#add(kind, {
      list: () => ({ namespace: this.#shared.namespace(), kind }),
      handler: (payload) => {
        const message = decode(kind, payload) as Messages[K] & { replyTo?: unknown }
        const { replyTo, ...rest } = message
        const { requestId, runId } = rest as { requestId?: string; runId?: string }
        this.inbox.remember(requestId ?? runId, replyTo)
        return handler(rest as Messages[K])
      },
    })
  }

  async publishReply(reply: Messages['runReply']): Promise<void> {
    const recipient = this.inbox.addressOf(reply.requestId)
    if (recipient === undefined) {
      throw new DurableError(`nobody is known to wait for the reply to "${reply.requestId}"`, {
        code: 'unknown_request',
      })
    }
    await this.#insert({ kind: 'runReply', recipient, payload: encode('runReply', reply) })
  }

  consumeReplies(handler: (reply: Messages['runReply']) => void): void {
    this.inbox.open()
    this.#addressed('runReply', async (payload) => handler(decode('runReply', payload)))
  }

  /** One message for each instance that follows the tenant. */
  async publishTenantEvent(event: TenantEvent): Promise<void> {
    const payload = encode('tenantEvent', event)
    for (const recipient of await this.inbox.followersOf(event.tenant)) {
      await this.#insert({ kind: 'tenantEvent', recipient, payload })
    }
  }

  follow(tenant: string, handler: (event: TenantEvent) => void): () => void {
    const own = (event: TenantEvent) => handler(event)
    const known = this.#tenants.get(tenant) ?? new Set()
    this.#tenants.set(tenant, known.add(own))
    const unfollow = this.inbox.follow(tenant)
    this.#addressed('tenantEvent', async (payload) => {
      const event = decode('tenantEvent', payload)
      for (const each of this.#tenants.get(event.tenant) ?? []) {
        isolate(() => each(event), this.#shared.onError)
      }
    })
    return () => {
      if (known.delete(own)) unfollow()
    }
  }

  async dispatchRun(run: RunDispatch, scope: string): Promise<void> {
    const { priority } = run
    await this.#insert({ kind: 'run', namespace: scope, payload: encode('run', run), priority })
  }

  consumeRuns(scope: string, handler: (run: RunDispatch) => Promise<void>): () => Promise<void> {
    const key = `run:${scope}`
    const consumer = this.#add(key, {
      list: () => ({ namespace: scope, kind: 'run' }),
      handler: (payload) => handler(decode('run', payload)),
    })
    return async () => {
      if (this.#consumers.get(key) === consumer) this.#remove(key)
      await Promise.all(consumer?.inFlight ?? [])
    }
  }

  /** The namespace is another one from now on. */
  listen(): void {
    const { nudges } = this.#shared
    for (const consumer of this.#consumers.values()) {
      if (consumer.topic !== undefined) nudges.forget(consumer.topic, this.#lane.kick)
      const { namespace, kind } = consumer.list()
      consumer.topic = topics.messages(namespace, kind)
      nudges.listen(consumer.topic, this.#lane.kick)
    }
  }

  stop(): Promise<void> {
    return this.#lane.stop()
  }

  idle(): Promise<void> {
    return this.#lane.idle()
  }

  async close(): Promise<void> {
    this.#consumers.clear()
    await this.#lane.close()
    await this.inbox.close()
  }

  #addressed(kind: MessageKind, handler: Handler): void {
    const { instanceId } = this.#shared
    this.#add(kind, {
      list: () => ({ namespace: this.#shared.namespace(), kind, recipient: instanceId }),
      handler,
    })
  }

  #add(key: string, { list, handler }: Pick<Consumer, 'list' | 'handler'>): Consumer | undefined {
    if (this.#consumers.has(key)) return undefined
    const consumer: Consumer = { list, handler, inFlight: new Set() }
    this.#consumers.set(key, consumer)
    this.#shared.gate.whenOpen(() => {
      if (this.#shared.closed || this.#consumers.get(key) !== consumer) return
      const { namespace, kind } = list()
      consumer.topic = topics.messages(namespace, kind)
      this.#shared.nudges.listen(consumer.topic, this.#lane.kick)
      this.#lane.kick()
    })
    return consumer
  }

  #remove(key: string): void {
    const consumer = this.#consumers.get(key)
    if (!consumer) return
    consumer.stopped = true
    this.#consumers.delete(key)
    const { topic } = consumer
    if (topic !== undefined) this.#shared.nudges.forget(topic, this.#lane.kick)
  }

  async #insert(message: {
    kind: MessageKind
    namespace?: string
    recipient?: string
    payload: string
    priority?: number
  }): Promise<void> {
    const { session, clock, nudges, ready } = this.#shared
    await ready()
    const { namespace = this.#shared.namespace(), ...rest } = message
    await insertMessage(session, { ...rest, namespace, id: randomId(), nowMs: clock() })
    nudges.tell(topics.messages(namespace, message.kind))
  }

  #nudge({ namespace, kind }: MessageList): void {
    this.#shared.nudges.tell(topics.messages(namespace, kind))
  }

  async #take(claim: { token: string; nowMs: number; limit: number }): Promise<Batch> {
    const { session, ready } = this.#shared
    const consumers = [...this.#consumers.values()].filter(({ topic }) => topic !== undefined)
    if (consumers.length === 0) return { taken: [], more: false }
    await ready()
    const lists = consumers.map((consumer) => consumer.list())
    const messages = await claimMessages(session, claim, lists)
    const taken = messages.map((message): Taken => ({
      id: message.id,
      token: message.token,
      handle: (live) => this.#handle(message, consumers[lists.indexOf(message.list)], live),
    }))
    return { taken, more: taken.length >= claim.limit }
  }

  async #handle(message: ClaimedMessage, consumer: Consumer, claim: LiveClaim): Promise<void> {
    const { onError, timers, tuning, session } = this.#shared
    const held = { id: message.id, token: message.token }
    if (consumer.stopped) {
      await releaseClaims(session, T.messages, 'id', [held]).catch((error: unknown) =>
        isolate(() => onError(error))
      )
      return this.#nudge(message.list)
    }
    const { maxStalledCount } = tuning
    if (message.reclaims > maxStalledCount) {
      isolate(() =>
        onError(
          new DurableError(
            `a ${message.list.kind} message was dropped: its claim lapsed more than ${maxStalledCount} times`,
            { code: 'claim_lapsed' }
          )
        )
      )
      return void isolate(() => deleteMessage(session, held), onError)
    }
    const handling = consumer.handler(message.payload)
    const settled = handling.then(
      () => {},
      () => {}
    )
    consumer.inFlight.add(settled)
    try {
      await handling
    } catch (error) {
      isolate(() => onError(error))
      await sleepOn(timers, tuning.pollIntervalMs)
      if (!claim.lost) isolate(() => releaseClaims(session, T.messages, 'id', [held]), onError)
      return
    } finally {
      consumer.inFlight.delete(settled)
    }
    claim.ending = true
    await deleteMessage(session, held).catch((error: unknown) => isolate(() => onError(error)))
  }

  async #freeLapsed(beforeMs: number): Promise<void> {
    const { session, clock, tuning, ready } = this.#shared
    await ready()
    for (const namespace of new Set([...this.#consumers.values()].map((c) => c.list().namespace))) {
      await freeLapsed(session, T.messages, { namespace, beforeMs, counted: true })
    }
    if (clock() - this.#sweptAt < tuning.inboxSweepIntervalMs) return
    this.#sweptAt = clock()
    await this.#keys.dropExpired()
    const reachable = await this.inbox.addressable()
    const namespace = this.#shared.namespace()
    await dropUnreachable(session, namespace, clock() - tuning.inboxTtlMs, [...reachable, ''])
  }
}
