/*
 * Keys in memory, for a control plane without a key store: it knows the pods that it heard of by itself.
 */
import type { Clock } from '../../foundation/clock.ts'
import type { WorkerKeyStore } from '../worker_keys.ts'

export class LocalKeys implements WorkerKeyStore {
  readonly #clock: Clock
  readonly #keys = new Map<string, { value: string; at: number; until: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    const at = this.#clock()
    this.#keys.set(key, { value, at, until: at + ttlMs })
  }

  async list(prefix: string): Promise<{ key: string; value: string; at: number }[]> {
    const now = this.#clock()
    for (const [key, { until }] of this.#keys) if (until <= now) this.#keys.delete(key)
    return [...this.#keys]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, { value, at }]) => ({ key, value, at }))
  }

  async delete(keys: string[]): Promise<void> {
    for (const key of keys) this.#keys.delete(key)
  }
}
