/*
 * Over what the demo dispatches its steps: `--transport=…`. And what that keeps outside of the demo's
 * folder: keys of Redis, under a prefix of this demo's own, which are gone in the end.
 */
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'

/** Those of examples/shop/config/durable.ts, the default first. */
const TRANSPORTS = ['eventEmitter', 'db', 'bullmq', 'queue']
const OVER_REDIS = new Set(['bullmq', 'queue'])
const REDIS_URL =
  process.env.REDIS_URL || process.env.DURABLE_TEST_REDIS_URL || 'redis://127.0.0.1:6379'

export class DemoTransport {
  readonly name: string
  readonly #prefix = `durable-shop-${randomBytes(4).toString('hex')}`

  /** Throws a sentence that tells which transports there are. */
  constructor(args: string[]) {
    this.name = read(args)
  }

  /** For those who watch. */
  get title(): string {
    return this.#overRedis ? `${this.name} (prefix ${this.#prefix})` : this.name
  }

  /** What tells the shop. */
  get env(): NodeJS.ProcessEnv {
    const env = { DURABLE_TRANSPORT: this.name }
    return this.#overRedis ? { ...env, REDIS_URL, REDIS_PREFIX: this.#prefix } : env
  }

  /** Throws a sentence when what it needs is not there. */
  async check(): Promise<void> {
    await this.#onRedis((redis) => redis.ping())
  }

  async clear(): Promise<void> {
    await this.#onRedis(async (redis) => {
      for await (const keys of redis.scanStream({ match: `*${this.#prefix}*`, count: 1000 })) {
        if (keys.length > 0) await redis.del(keys as string[])
      }
    })
  }

  get #overRedis(): boolean {
    return OVER_REDIS.has(this.name)
  }

  async #onRedis(act: (redis: Redis) => Promise<unknown>): Promise<void> {
    if (!this.#overRedis) return
    const once = { lazyConnect: true, retryStrategy: () => null, connectTimeout: 3_000 }
    const redis = new Redis(REDIS_URL, once)
    let problem: Error | undefined
    redis.on('error', (error) => (problem = error))
    try {
      await redis.connect()
      await act(redis)
    } catch (error) {
      const { host, port } = redis.options
      const why = (problem ?? (error as Error)).message
      throw new Error(
        `--transport=${this.name} needs Redis, and the one at ${host}:${port} does not answer (${why}): ` +
          'start it, or set REDIS_URL',
        { cause: error }
      )
    } finally {
      redis.disconnect()
    }
  }
}

function read(args: string[]): string {
  const options = { transport: { type: 'string', default: TRANSPORTS[0] } } as const
  const { transport } = parseArgs({ args, options }).values
  if (TRANSPORTS.includes(transport)) return transport
  const known = `${TRANSPORTS.slice(0, -1).join(', ')} or ${TRANSPORTS.at(-1)}`
  throw new Error(`--transport must be ${known}, not ${JSON.stringify(transport)}`)
}
