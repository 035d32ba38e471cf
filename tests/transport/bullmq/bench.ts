/*
 * Transports over the Redis of the tests: each test has names of its own, and leaves nothing behind.
 */
import { randomUUID } from 'node:crypto'
import type { TestContext } from '@japa/runner/core'
import { Redis } from 'ioredis'
import type {
  RunQueueUnderContract,
  TransportSettings,
  TransportUnderContract,
} from '../../../src/testing/conformance.ts'
import {
  Sessions,
  type TransportSession,
} from '../../../src/testing/contracts/transport_session.ts'
import {
  BullMQTransport,
  type BullMQDeps,
  type BullMQTransportConfig,
  loadBullMQDeps,
} from '../../../src/transport/bullmq/bullmq_transport.ts'
import { depsOf } from '../../../src/transport/bullmq/deps.ts'
import { keyNames } from '../../../src/wire/names.ts'
import { backend } from '../../helpers/backends.ts'

/** Null when there is no Redis, which was announced. */
export const redisUrl = await backend('redis')

/** Every release of BullMQ that the transport is for: what loads it. */
export const RELEASES: Record<string, () => Promise<BullMQDeps>> = {
  'BullMQ 5': loadBullMQDeps,
  'BullMQ 6': async () =>
    depsOf({ bullmq: await import('bullmq-6'), ioredis: await import('ioredis') }),
}

/** Patient enough for a busy machine, quick enough for tests. */
const QUICK = { closeTimeoutMs: 500, lockDuration: 10_000, stalledInterval: 10_000 }

/** Workers that renew no lock, and look for none that lapsed. */
const silent = (deps: BullMQDeps): BullMQDeps => ({
  ...deps,
  makeWorker: (name, processor, client, options) =>
    deps.makeWorker(name, processor, client, {
      ...options,
      ...{ skipLockRenewal: true, skipStalledCheck: true },
    }),
})

const given = <T extends object>(config: T): T =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as T

export class BullBench {
  readonly prefix = `t${randomUUID().slice(0, 8)}`
  readonly redis: Redis
  readonly #cleanup: TestContext['cleanup']
  readonly #load: () => Promise<BullMQDeps>
  readonly #sessions = new Sessions(this.prefix)

  constructor(cleanup: TestContext['cleanup'], load = loadBullMQDeps) {
    this.#cleanup = cleanup
    this.#load = load
    this.redis = new Redis(redisUrl!)
    cleanup(async () => {
      for (const pattern of [`bull:${this.prefix}*`, `${this.prefix}*`]) await this.#delete(pattern)
      this.redis.disconnect()
    })
  }

  async transport(config: Partial<BullMQTransportConfig> = {}): Promise<BullMQTransport> {
    return this.#open(config, await this.#load())
  }

  #open(config: Partial<BullMQTransportConfig>, deps: BullMQDeps): BullMQTransport {
    const settings = { connection: redisUrl!, prefix: this.prefix, instanceId: randomUUID() }
    const transport = new BullMQTransport({ ...settings, ...QUICK, ...given(config) }, deps)
    this.#cleanup(() => transport.close())
    return transport
  }

  underContract(): TransportUnderContract {
    return {
      abilities: ['shared', 'leases', 'concurrency', 'priority', 'descriptors', 'timers'],
      open: (settings) => this.#underContract(settings),
      advertise: async (token, instanceId, text) => {
        await this.redis.set(keyNames(this.prefix).workerDescriptor(token, instanceId), text)
      },
    }
  }

  runQueues(): Omit<RunQueueUnderContract, 'cleanup'> {
    return {
      supportsLeases: true,
      open: (settings) =>
        this.#underContract({ onError: () => {}, ...settings, runConcurrency: 1 }),
    }
  }

  async #underContract({
    standsStill = false,
    leaseMs,
    ...settings
  }: TransportSettings & Partial<BullMQTransportConfig>): Promise<BullMQTransport> {
    const deps = await this.#load()
    const lease = leaseMs && { lockDuration: leaseMs, stalledInterval: leaseMs / 2 }
    return this.#open({ ...settings, ...lease }, standsStill ? silent(deps) : deps)
  }

  async session({
    deferred,
    ...config
  }: Partial<BullMQTransportConfig> & { deferred?: boolean } = {}): Promise<TransportSession> {
    const errors: unknown[] = []
    const transport = await this.transport({ onError: (error) => errors.push(error), ...config })
    return this.#sessions.over(transport, errors, { namespace: config.namespace, deferred })
  }

  /** The jobs of a queue, in whatever state they are. */
  async jobs(queue: string): Promise<Record<string, string>[]> {
    const keys = await this.redis.keys(`bull:${queue}:*`)
    const ids = keys.filter((key) => /:\d+$/.test(key)).sort()
    return Promise.all(ids.map((key) => this.redis.hgetall(key)))
  }

  async #delete(pattern: string): Promise<void> {
    const keys = await this.redis.keys(pattern)
    if (keys.length > 0) await this.redis.del(...keys)
  }
}
