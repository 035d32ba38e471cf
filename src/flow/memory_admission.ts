/*
 * Flow-control queues of one process. Whoever is denied stands in line under its waiter id; a slot goes to
 * the rightful next one only, so a caller that asks early does not overtake. Who stops asking leaves the
 * line, or a caller that is gone would hold it up for ever.
 */
import { type Clock, systemClock } from '../foundation/clock.ts'
import type { Admission, AdmissionBackend, AdmissionRequest, QueueConfig } from './port.ts'
import { checkQueue } from './queue_config.ts'

const RETRY_MS = 1000
/** How late a waiter may be, in retries, before it leaves the line. */
const LATE_RETRIES = 2
const REMEMBERED_KEYS = 10_000

interface Waiter {
  id: string
  key: string
  priority: number
  /** Place of its first request. */
  arrival: number
  /** When it was told to ask again, epoch ms. */
  dueAt: number
}

interface Line {
  config: QueueConfig
  /** Waiter ids that hold a slot. */
  held: Set<string>
  waiting: Map<string, Waiter>
  /** When a key was served last, as a counter. */
  served: Map<string, number>
  window?: { endsAt: number; admitted: number }
}

export class InMemoryAdmissionBackend implements AdmissionBackend {
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()
  readonly #listeners = new Set<(queue: string, next?: readonly string[]) => void>()
  #counter = 0

  constructor(options: { clock?: Clock } = {}) {
    this.#clock = options.clock ?? systemClock
  }

  registerQueue(config: QueueConfig): void {
    checkQueue('registerQueue', config)
    const known = this.#lines.get(config.name)
    if (known) known.config = { ...config }
    else {
      this.#lines.set(config.name, {
        config: { ...config },
        held: new Set(),
        waiting: new Map(),
        served: new Map(),
      })
    }
  }

  handles(queue: string): boolean {
    return this.#lines.has(queue)
  }

  async tryAdmit(queue: string, request: AdmissionRequest): Promise<Admission> {
    const line = this.#lines.get(queue)
    if (!line || line.held.has(request.waiterId)) return { admitted: true }
    const now = this.#clock()
    const { rateLimit, retryMs = RETRY_MS } = line.config
    this.#prune(line, now - LATE_RETRIES * retryMs)
    const waiter = this.#stand(line, request, now)
    const free = this.#free(line, now)
    if (!this.#isAmongNext(line, waiter, free)) {
      const { window } = line
      const isSpent = rateLimit && window && window.admitted >= rateLimit.limit
      waiter.dueAt = isSpent ? window.endsAt : now + retryMs
      return { admitted: false, retryAt: waiter.dueAt }
    }
    line.waiting.delete(waiter.id)
    line.held.add(waiter.id)
    if (line.config.fairness === 'key') this.#served(line.served, waiter.key)
    if (rateLimit) {
      line.window ??= { endsAt: now + rateLimit.periodMs, admitted: 0 }
      line.window.admitted += 1
    }
    return { admitted: true }
  }

  async release(queue: string, waiterId: string): Promise<void> {
    const line = this.#lines.get(queue)
    line?.waiting.delete(waiterId)
    if (!line?.held.delete(waiterId)) return
    const next = this.#inOrder(line).slice(0, this.#free(line, this.#clock()))
    const ids = next.map(({ id }) => id)
    for (const listener of this.#listeners) listener(queue, ids)
  }

  onFreed(listener: (queue: string, next?: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #stand(line: Line, { waiterId, key = waiterId, priority = 0 }: AdmissionRequest, now: number) {
    const known = line.waiting.get(waiterId)
    const arrival = known?.arrival ?? ++this.#counter
    const waiter: Waiter = { id: waiterId, key, priority, arrival, dueAt: now }
    line.waiting.set(waiterId, waiter)
    return waiter
  }

  #prune({ waiting }: Line, dueBefore: number): void {
    for (const [id, { dueAt }] of waiting) if (dueAt < dueBefore) waiting.delete(id)
  }

  /** Slots that can be given now. */
  #free(line: Line, now: number): number {
    if (line.window && line.window.endsAt <= now) line.window = undefined
    const { concurrency = Infinity, rateLimit } = line.config
    const left = rateLimit ? rateLimit.limit - (line.window?.admitted ?? 0) : Infinity
    return Math.max(0, Math.min(concurrency - line.held.size, left))
  }

  #isAmongNext(line: Line, waiter: Waiter, slots: number): boolean {
    if (slots === 0 || slots >= line.waiting.size) return slots > 0
    return this.#inOrder(line).slice(0, slots).includes(waiter)
  }

  /** In the order of service: the first is forgotten first, and then counts as never served. */
  #served(served: Map<string, number>, key: string): void {
    served.delete(key)
    served.set(key, ++this.#counter)
    if (served.size <= REMEMBERED_KEYS) return
    for (const oldest of served.keys()) return void served.delete(oldest)
  }

  /** Everybody who waits, in the order of service. */
  #inOrder(line: Line): Waiter[] {
    const latest = line.config.order === 'lifo' ? -1 : 1
    const sorted = [...line.waiting.values()].sort(
      (a, b) => b.priority - a.priority || latest * (a.arrival - b.arrival)
    )
    if (line.config.fairness !== 'key') return sorted
    const ordered: Waiter[] = []
    // Keys as they will have been served when it is the turn of the next.
    const served = new Map<string, number>()
    const servedAt = (key: string) => served.get(key) ?? line.served.get(key) ?? 0
    for (const equals of Map.groupBy(sorted, ({ priority }) => priority).values()) {
      let keys = [...Map.groupBy(equals, ({ key }) => key)]
      keys.sort(([a], [b]) => servedAt(a) - servedAt(b))
      for (let round = 0; keys.length > 0; round++) {
        for (const [key, waiters] of keys) {
          ordered.push(waiters[round])
          served.set(key, this.#counter + ordered.length)
        }
        keys = keys.filter(([, waiters]) => waiters.length > round + 1)
      }
    }
    return ordered
  }
}
