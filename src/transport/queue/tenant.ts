/*
 * The lane between pods without a store and a control plane. Starts and requests are jobs that one control
 * plane takes; a reply goes to the queue of the pod that asked, an event to the queue of each pod that
 * follows its tenant. A pod's own queues are never deferred: they take nothing from anybody.
 */
import { DurableError, isolate } from '../../foundation/failure.ts'
import { type Messages as Wire, toWire } from '../../wire/codec.ts'
import type { RunReply, RunRequest, StartRunMessage, TenantEvent } from '../../wire/messages.ts'
import { JOB } from '../../wire/names.ts'
import { Inbox } from '../inbox.ts'
import type { Messages } from '../job_messages.ts'
import { KEY_LIVES_MS, type WorkerKeyStore } from '../worker_keys.ts'
import { Announcer, readRegistration } from './announcer.ts'
import type { Broker } from './broker.ts'
import { LocalKeys } from './local_keys.ts'

type Asking = 'startRun' | 'runRequest'

export class TenantLane {
  readonly #broker: Broker
  readonly #messages: Messages
  readonly #announcer: Announcer
  readonly #keys: WorkerKeyStore
  readonly #inbox: Inbox
  /** Listeners of this pod, by tenant. */
  readonly #listeners = new Map<string, Set<(event: TenantEvent) => void>>()
  /** The tenants that each pod was last heard to follow, and when it was last seen alive. */
  readonly #pods = new Map<string, { tenants: string[]; at: number }>()
  #onReply?: (reply: RunReply) => void
  #hearsEvents = false
  #meetsPods = false

  constructor(broker: Broker, messages: Messages) {
    const { settings, clock, timers, report } = broker
    this.#broker = broker
    this.#messages = messages
    this.#announcer = new Announcer(broker)
    this.#keys = settings.workerKeys ?? new LocalKeys(clock)
    this.#inbox = new Inbox({
      store: this.#keys,
      names: () => broker.keys,
      instanceId: settings.instanceId,
      cacheMs: settings.tenantSubscribersCacheMs,
      clock,
      timers,
      onError: report,
    })
  }

  dispatchStartRun(message: StartRunMessage): Promise<void> {
    return this.#ask('startRun', this.#broker.names.startRun, message)
  }

  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void {
    this.#answer('startRun', () => this.#broker.names.startRun, handler)
  }

  dispatchRunRequest(request: RunRequest): Promise<void> {
    return this.#ask('runRequest', this.#broker.names.runRequest, request)
  }

  onRunRequest(handler: (request: RunRequest) => Promise<void>): void {
    this.#answer('runRequest', () => this.#broker.names.runRequest, handler)
  }

  async publishRunReply(reply: RunReply): Promise<void> {
    const pod = this.#inbox.addressOf(reply.requestId)
    if (pod === undefined) {
      throw new DurableError(`nobody is known to wait for the reply to "${reply.requestId}"`, {
        code: 'unknown_request',
      })
    }
    const queue = this.#broker.names.runReplies(pod)
    await this.#broker.send(queue, 'runReply', reply)
  }

  onRunReply(handler: (reply: RunReply) => void): void {
    if (this.#onReply) return
    this.#onReply = handler
    this.#hear('runReply', (pod) => this.#broker.names.runReplies(pod), handler)
    this.#announcer.open()
  }

  /** One job for each pod that follows the tenant. Who publishes listens for pods from now on. */
  async publishTenantEvent(event: TenantEvent): Promise<void> {
    this.#meetPods()
    for (const pod of await this.#inbox.followersOf(event.tenant)) {
      await this.#broker.send(this.#broker.names.tenantEvents(pod), 'tenantEvent', event)
    }
  }

  onTenantEvent(tenant: string, handler: (event: TenantEvent) => void): () => void {
    const own = (event: TenantEvent): void => handler(event)
    const listeners = this.#listeners.get(tenant) ?? new Set()
    this.#listeners.set(tenant, listeners.add(own))
    this.#hearEvents()
    const leave = this.#announcer.follow(tenant)
    return () => {
      if (listeners.delete(own)) leave()
    }
  }

  /** Says that this pod leaves. */
  close(): Promise<void> {
    return this.#announcer.close()
  }

  async #ask<K extends Asking>(kind: K, queue: string, message: Wire[K]): Promise<void> {
    await this.#announcer.ready()
    const { instanceId } = this.#broker.settings
    await this.#broker.push(queue, JOB[kind], { ...toWire(kind, message), replyTo: instanceId })
  }

  #answer<K extends Asking>(
    kind: K,
    queue: () => string,
    handler: (message: Wire[K]) => Promise<void>
  ): void {
    const isNew = this.#messages.consume(kind, queue, (message) => {
      const { replyTo, ...rest } = message as Wire[K] & { replyTo?: unknown }
      const { requestId, runId } = rest as { requestId?: string; runId?: string }
      this.#inbox.remember(requestId ?? runId, replyTo)
      return handler(rest as Wire[K])
    })
    if (isNew) this.#meetPods()
  }

  #hearEvents(): void {
    if (this.#hearsEvents) return
    this.#hearsEvents = true
    const queue = (pod: string) => this.#broker.names.tenantEvents(pod)
    this.#hear('tenantEvent', queue, (event) => {
      for (const listener of [...(this.#listeners.get(event.tenant) ?? [])]) {
        isolate(() => listener(event), this.#broker.report)
      }
    })
  }

  /** A queue of this pod's own. */
  #hear<K extends 'runReply' | 'tenantEvent'>(
    kind: K,
    queue: (instanceId: string) => string,
    listener: (message: Wire[K]) => void
  ): void {
    const { settings, report } = this.#broker
    this.#broker.consume({
      queue: () => queue(settings.instanceId),
      slots: () => 1,
      handle: async (payload) => {
        const message = this.#broker.read(kind, payload)
        if (message) isolate(() => listener(message), report)
      },
    })
  }

  #meetPods(): void {
    if (this.#meetsPods) return
    this.#meetsPods = true
    this.#broker.gate.whenOpen(() => this.#hearRegistrations())
  }

  #hearRegistrations(): void {
    this.#broker.every(this.#broker.settings.inboxSweepIntervalMs, () => this.#sweep())
    this.#broker.consume({
      queue: () => this.#broker.names.inboxRegistrations,
      // In the order in which they were made.
      slots: () => 1,
      handle: (payload) => this.#note(payload),
    })
  }

  async #note(payload: unknown): Promise<void> {
    const registration = readRegistration(payload)
    if (!registration) return
    const { instanceId, tenants, leaving } = registration
    const { keys, clock } = this.#broker
    const subscriber = (tenant: string) => keys.tenantSubscriber(tenant, instanceId)
    const before = this.#pods.get(instanceId)?.tenants ?? []
    const left = before.filter((tenant) => leaving || !tenants.includes(tenant)).map(subscriber)
    if (leaving) left.push(keys.inbox(instanceId), ...tenants.map(subscriber))
    if (left.length > 0) await this.#keys.delete(left)
    this.#pods.set(instanceId, { tenants: leaving ? [] : tenants, at: clock() })
    if (leaving) return
    const value = JSON.stringify({ ts: clock() })
    for (const key of [keys.inbox(instanceId), ...tenants.map(subscriber)]) {
      await this.#keys.set(key, value, KEY_LIVES_MS)
    }
  }

  /** Empties the queues of pods that are gone. */
  async #sweep(): Promise<void> {
    const { clock, settings, names } = this.#broker
    const now = clock()
    const alive = new Set(await this.#inbox.addressable())
    for (const [pod, seen] of [...this.#pods]) {
      if (alive.has(pod)) seen.at = now
      else if (now - seen.at >= settings.inboxTtlMs) {
        this.#pods.delete(pod)
        await this.#broker.drain(names.runReplies(pod))
        await this.#broker.drain(names.tenantEvents(pod))
      }
    }
  }
}
