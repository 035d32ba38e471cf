/*
 * Coalesced work: one at a time per key; whoever asks while it is under way shares the next one, which
 * begins after all of them asked.
 */
export class Coalesced {
  readonly #running = new Map<string, Promise<void>>()
  readonly #queued = new Map<string, Promise<void>>()

  /** Resolves, or rejects, with work that began after this call. */
  ask(key: string, work: () => Promise<void>): Promise<void> {
    const running = this.#running.get(key)
    if (!running) return this.#begin(key, work)
    const queued = this.#queued.get(key)
    if (queued) return queued
    const next = () => {
      this.#queued.delete(key)
      return this.#begin(key, work)
    }
    const later = running.then(next, next)
    this.#queued.set(key, later)
    return later
  }

  #begin(key: string, work: () => Promise<void>): Promise<void> {
    const running = work().finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    return running
  }
}
