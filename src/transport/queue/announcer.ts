/*
 * A pod that can be addressed says so on a queue, since it cannot assume a store of keys: again and again,
 * at each change, and when it leaves. A control plane writes it down.
 */
import type { Cancel } from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import { JOB } from '../../wire/names.ts'
import { BEAT_KEY_MS } from '../worker_keys.ts'
import type { Broker } from './broker.ts'

/** What a pod says of itself. */
export interface Registration {
  instanceId: string
  tenants: string[]
  /** In epoch ms, by the pod's clock. */
  at: number
  leaving?: true
}

/** Undefined for what is none. */
export function readRegistration(payload: unknown): Registration | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  const { instanceId, tenants, leaving } = payload as Record<string, unknown>
  if (typeof instanceId !== 'string' || instanceId === '' || !Array.isArray(tenants)) {
    return undefined
  }
  const named = tenants.filter((tenant): tenant is string => typeof tenant === 'string')
  return { instanceId, tenants: named, at: 0, ...(leaving === true && { leaving }) }
}

export class Announcer {
  readonly #broker: Broker
  readonly #tenants = new Map<string, number>()
  /** One after the other: the last one counts. */
  #sent: Promise<void> = Promise.resolve()
  #stop?: Cancel

  constructor(broker: Broker) {
    this.#broker = broker
  }

  /** This instance can be addressed from now on. */
  open(): void {
    if (this.#stop) return
    this.#stop = this.#broker.timers.every(BEAT_KEY_MS, () => this.#announce())
    this.#announce()
  }

  /** This instance follows a tenant until the answer is called as often as this. */
  follow(tenant: string): Cancel {
    const followers = this.#tenants.get(tenant) ?? 0
    this.#tenants.set(tenant, followers + 1)
    if (!this.#stop) this.open()
    else if (followers === 0) this.#announce()
    return () => {
      const left = (this.#tenants.get(tenant) ?? 1) - 1
      if (left > 0) return void this.#tenants.set(tenant, left)
      this.#tenants.delete(tenant)
      this.#announce()
    }
  }

  /** Resolves once what was announced so far is sent, or could not be. */
  ready(): Promise<void> {
    return this.#sent
  }

  async close(): Promise<void> {
    if (!this.#stop) return
    this.#stop()
    this.#tenants.clear()
    this.#announce(true)
    await this.#sent
  }

  #announce(leaving = false): void {
    const { settings, clock, report } = this.#broker
    const { instanceId } = settings
    const registration: Registration = {
      instanceId,
      tenants: [...this.#tenants.keys()],
      at: clock(),
      ...(leaving && { leaving }),
    }
    const send = () =>
      this.#broker.push(this.#broker.names.inboxRegistrations, JOB.inbox, registration)
    this.#sent = this.#sent.then(send).catch((error: unknown) => isolate(() => report(error)))
  }
}
