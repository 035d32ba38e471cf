/*
 * What adapters of `@adonisjs/queue` keep, in memory: enough for `queue` transports of several processes to
 * meet, and to be broken in every way.
 */
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../../src/foundation/clock.ts'
import type { TransportSettings, TransportUnderContract } from '../../../src/testing/conformance.ts'
import { LocalKeys } from '../../../src/transport/queue/local_keys.ts'
import {
  type QueueAdapter,
  type QueueJob,
  QueueTransport,
  type QueueTransportConfig,
} from '../../../src/transport/queue/queue_transport.ts'
import { KEY_LIVES_MS } from '../../../src/transport/worker_keys.ts'
import { keyNames } from '../../../src/wire/names.ts'
import { STANDING_STILL } from '../standing_still.ts'

interface Kept {
  job: QueueJob
  queue: string
  /** In epoch ms. */
  from: number
  claimed?: { by: string; at: number }
}

const NORMAL = 5

export class MemoryQueues {
  #kept: Kept[] = []

  /** For one process. */
  adapter(): QueueAdapter {
    let worker: string = randomUUID()
    const held = (id: string) => this.#kept.find(({ job }) => job.id === id)
    const own = (id: string) => (held(id)?.claimed?.by === worker ? held(id) : undefined)
    return {
      setWorkerId: (id) => void (worker = id),
      pushOn: async (queue, job) => {
        this.#kept.push({ queue, from: 0, job: { ...job, payload: JSON.stringify(job.payload) } })
      },
      popFrom: async (queue) => {
        const next = this.#waiting(queue).sort((a, b) => urgency(a) - urgency(b))[0]
        if (!next) return null
        next.claimed = { by: worker, at: systemClock() }
        return { ...next.job }
      },
      completeJob: async (id) => {
        const done = own(id)
        this.#kept = this.#kept.filter((each) => each !== done)
      },
      retryJob: async (id, _queue, at) => {
        const kept = own(id)
        if (kept) Object.assign(kept, { from: at?.getTime() ?? 0, claimed: undefined })
      },
      sizeOf: async (queue) => this.#waiting(queue).length,
      renewJobs: async (_queue, ids) => {
        const claims = ids.flatMap((id) => own(id)?.claimed ?? [])
        for (const claim of claims) claim.at = systemClock()
        return claims.length
      },
      recoverStalledJobs: async (queue, thresholdMs) => {
        const stalled = this.#kept.filter(
          ({ queue: of, claimed }) =>
            of === queue && claimed && claimed.at < systemClock() - thresholdMs
        )
        for (const each of stalled) {
          each.claimed = undefined
          each.job.stalledCount = (each.job.stalledCount ?? 0) + 1
        }
        return stalled.length
      },
      destroy: async () => {},
    }
  }

  #waiting(queue: string): Kept[] {
    const now = systemClock()
    return this.#kept.filter((each) => each.queue === queue && !each.claimed && each.from <= now)
  }
}

const urgency = ({ job }: Kept): number => job.priority ?? NORMAL

const PREFIX = 't'

/** What a factory of the transport contract makes, over queues in memory. */
export function inMemory(
  make: (
    config: QueueTransportConfig & { adapter: QueueAdapter }
  ) => ReturnType<TransportUnderContract['open']>
): TransportUnderContract {
  const queues = new MemoryQueues()
  const workerKeys = new LocalKeys(systemClock)
  return {
    open: ({ standsStill, leaseMs, ...settings }) =>
      make({
        ...defined(settings),
        ...(leaseMs && { stalledThresholdMs: leaseMs, stalledCheckIntervalMs: leaseMs / 2 }),
        ...(standsStill && { timers: STANDING_STILL }),
        adapter: queues.adapter(),
        prefix: PREFIX,
        workerKeys,
        pollIntervalMs: 20,
        closeTimeoutMs: 300,
        tenantSubscribersCacheMs: 0,
      }),
    abilities: ['shared', 'leases', 'concurrency', 'descriptors', 'timers'],
    advertise: (token, instanceId, text) =>
      workerKeys.set(keyNames(PREFIX).workerDescriptor(token, instanceId), text, KEY_LIVES_MS),
  }
}

const defined = (settings: TransportSettings & { onError(error: unknown): void }) =>
  Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined)
  ) as QueueTransportConfig

export const sound = (): TransportUnderContract => inMemory((config) => new QueueTransport(config))
