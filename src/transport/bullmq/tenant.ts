/*
 * The lane between pods without a store and a control plane: starts and requests are jobs, which one
 * control plane takes; replies and events are broadcast, and who is not listening misses them. Listening
 * is never deferred: it takes nothing from anybody, and a console process wants its replies.
 */
import { decode, encode } from '../../wire/codec.ts'
import type { RunReply, RunRequest, StartRunMessage, TenantEvent } from '../../wire/messages.ts'
import type { Messages } from '../job_messages.ts'
import type { Broker } from './broker.ts'

export class TenantLane {
  readonly #broker: Broker
  readonly #messages: Messages
  #hearsReplies = false

  constructor(broker: Broker, messages: Messages) {
    this.#broker = broker
    this.#messages = messages
  }

  async dispatchStartRun(message: StartRunMessage): Promise<void> {
    await this.#broker.subscriptions.ready()
    await this.#broker.send(this.#broker.names.startRun, 'startRun', message)
  }

  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void {
    this.#messages.consume('startRun', () => this.#broker.names.startRun, handler)
  }

  async dispatchRunRequest(request: RunRequest): Promise<void> {
    await this.#broker.subscriptions.ready()
    await this.#broker.send(this.#broker.names.runRequest, 'runRequest', request)
  }

  onRunRequest(handler: (request: RunRequest) => Promise<void>): void {
    this.#messages.consume('runRequest', () => this.#broker.names.runRequest, handler)
  }

  publishRunReply(reply: RunReply): Promise<void> {
    return this.#broker.publish(this.#broker.names.runReply, encode('runReply', reply))
  }

  onRunReply(handler: (reply: RunReply) => void): void {
    if (this.#hearsReplies) return
    this.#hearsReplies = true
    this.#broker.listen(this.#broker.names.runReply, (text) => handler(decode('runReply', text)))
  }

  async publishTenantEvent(event: TenantEvent): Promise<void> {
    await this.#broker.subscriptions.ready()
    const channel = this.#broker.names.tenantEvents(event.tenant)
    await this.#broker.publish(channel, encode('tenantEvent', event))
  }

  onTenantEvent(tenant: string, handler: (event: TenantEvent) => void): () => void {
    return this.#broker.listen(this.#broker.names.tenantEvents(tenant), (text) =>
      handler(decode('tenantEvent', text))
    )
  }
}
