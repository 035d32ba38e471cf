/*
 * What this transport uses of `bullmq` and `ioredis`, in its own words, so that both stay optional and a
 * unit test can give its own. The only file that imports them, and only when it is asked to.
 */
import type { Redis, RedisOptions } from 'ioredis'

/** A job as its processor and its bridge see it. */
export interface BullJob {
  id?: string
  name: string
  data: unknown
  /** How often it was taken, this time included; absent in early releases of BullMQ 5. */
  attemptsStarted?: number
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>
  /** Absent in early releases of BullMQ 5. */
  moveToWait?(token?: string): Promise<unknown>
}

export interface BullJobOptions {
  removeOnComplete: boolean
  removeOnFail: boolean | { age: number }
  priority?: number
  deduplication?: { id: string }
}

export interface BullQueue {
  add(name: string, data: unknown, options: BullJobOptions): Promise<unknown>
  getJobCounts(...states: ('waiting' | 'active' | 'delayed' | 'prioritized')[]): Promise<object>
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
}

export type BullProcessor = (job: BullJob, token?: string) => Promise<unknown>

export interface BullWorkerOptions {
  concurrency: number
  maxStalledCount: number
  lockDuration?: number
  stalledInterval?: number
}

export interface BullWorker {
  concurrency: number
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'failed', listener: (job: BullJob | undefined, error: Error) => void): unknown
}

/** The commands of ioredis that are used here. */
export interface RedisClient {
  readonly status: string
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'ready', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, text: string) => void): unknown
  emit(event: 'end'): unknown
  ping(): Promise<string>
  publish(channel: string, text: string): Promise<number>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  set(key: string, value: string, unit: 'EX', seconds: number): Promise<unknown>
  del(...keys: string[]): Promise<number>
  mget(...keys: string[]): Promise<(string | null)[]>
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    size: number
  ): Promise<[cursor: string, keys: string[]]>
  duplicate(options?: RedisSettings): RedisClient
  disconnect(reconnect?: boolean): void
}

/** Options of ioredis; those named here are set by this transport. */
export interface RedisSettings {
  host?: string
  port?: number
  path?: string
  username?: string
  password?: string
  db?: number
  family?: number
  tls?: object
  keepAlive?: number
  maxRetriesPerRequest?: number | null
  [option: string]: unknown
}

export interface BullMQDeps {
  makeQueue(name: string, client: RedisClient): BullQueue
  makeWorker(
    name: string,
    processor: BullProcessor,
    client: RedisClient,
    options: BullWorkerOptions
  ): BullWorker
  makeRedis(settings: RedisSettings): RedisClient
}

/** What is used of the modules, of whichever release. */
export interface BullMQModules {
  bullmq: {
    Queue: new (name: string, options: { connection: Redis }) => BullQueue
    Worker: new (
      name: string,
      processor: BullProcessor,
      options: BullWorkerOptions & { connection: Redis }
    ) => BullWorker
  }
  ioredis: { Redis: new (settings: RedisOptions) => RedisClient }
}

/** Imports the peers. Rejects with the error of the import when one is missing. */
export async function loadBullMQDeps(): Promise<BullMQDeps> {
  const [bullmq, ioredis] = await Promise.all([import('bullmq'), import('ioredis')])
  return depsOf({ bullmq, ioredis })
}

export function depsOf({ bullmq: { Queue, Worker }, ioredis }: BullMQModules): BullMQDeps {
  return {
    makeQueue: (name, client) => new Queue(name, { connection: client as Redis }),
    makeWorker: (name, processor, client, options) =>
      new Worker(name, processor, { ...options, connection: client as Redis }),
    makeRedis: (settings) => new ioredis.Redis(settings as RedisOptions),
  }
}
