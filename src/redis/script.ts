/*
 * A Lua script: sent by its digest, and as a whole where the server does not know it, since it restarts
 * and may be told to forget.
 */
import { createHash } from 'node:crypto'
import { messageOf } from '../foundation/failure.ts'
import type { RedisClient } from './client.ts'

export class RedisScript {
  readonly #source: string
  readonly #digest: string

  constructor(source: string) {
    this.#source = source
    this.#digest = createHash('sha1').update(source).digest('hex')
  }

  async run(client: RedisClient, keys: string[], args: (string | number)[]): Promise<unknown> {
    const rest = [...keys, ...args.map(String)]
    try {
      return await client.evalsha(this.#digest, keys.length, ...rest)
    } catch (error) {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error
      return client.eval(this.#source, keys.length, ...rest)
    }
  }
}
