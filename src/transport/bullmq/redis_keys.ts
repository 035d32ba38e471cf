/*
 * Keys of workers in Redis, found by SCAN, a hundred at a time; those that vanish meanwhile are left out.
 */
import type { KeyStore } from '../worker_keys.ts'
import type { Clients } from './clients.ts'

const SCAN_COUNT = 100

export class RedisKeys implements KeyStore {
  readonly #clients: Clients

  constructor(clients: Clients) {
    this.#clients = clients
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#clients.producer.set(key, value, 'EX', Math.ceil(ttlMs / 1000))
  }

  async list(prefix: string): Promise<{ key: string; value: string }[]> {
    const keys = await this.#scan(prefix)
    if (keys.length === 0) return []
    const values = await this.#clients.producer.mget(...keys)
    return keys.flatMap((key, index) => {
      const value = values[index]
      return typeof value === 'string' ? [{ key, value }] : []
    })
  }

  async delete(keys: string[]): Promise<void> {
    await this.#clients.producer.del(...keys)
  }

  async #scan(start: string): Promise<string[]> {
    const { producer } = this.#clients
    const pattern = `${escapeGlob(start)}*`
    const found = new Set<string>()
    let cursor = '0'
    do {
      const [next, keys] = await producer.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT)
      for (const key of keys) found.add(key)
      cursor = String(next)
    } while (cursor !== '0')
    return [...found].sort()
  }
}

const escapeGlob = (text: string): string => text.replace(/[\\*?[\]^-]/g, '\\$&')
