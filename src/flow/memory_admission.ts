/*
 * Flow-control queues of one process. Whoever is denied stands in line under its waiter id; a slot goes to
 * the rightful next one only, so a caller that asks early does not overtake. Who stops asking leaves the
 * line, or a caller that is gone would hold it up for ever.
 */
import { type Clock, systemClock } from '../foundation/clock.ts'
import type { Admission, AdmissionBackend, AdmissionRequest, QueueConfig } from './port.ts'
import { checkQueue } from './queue_config.ts'

const RETRY_MS = 1000
/** Retries that a waiter may miss before it leaves the line. */
const MISSED_RETRIES = 3
const REMEMBERED_KEYS = 10_000

interface Waiter {
  id: string
  key: string
  priority: number
  /** Place of its first request. */
  arrival: number
  /** When it asked last, epoch ms. */
  seenAt: number
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
    const { concurrency = Infinity, rateLimit, retryMs = RETRY_MS } = line.config
    this.#prune(line, now - MISSED_RETRIES * retryMs)
    if (line.window && line.window.endsAt <= now) line.window = undefined
    if (rateLimit && line.window && line.window.admitted >= rateLimit.limit) {
      return { admitted: false, retryAt: line.window.endsAt }
    }
    const waiter = this.#stand(line, request, now)
    const full = line.held.size >= concurrency
    if (full || this.#best(line)[0] !== waiter) return { admitted: false, retryAt: now + retryMs }
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
    const free = (line.config.concurrency ?? Infinity) - line.held.size
    const next = this.#best(line, free).map(({ id }) => id)
    for (const listener of this.#listeners) listener(queue, next)
  }

  onFreed(listener: (queue: string, next?: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #stand(line: Line, { waiterId, key = waiterId, priority = 0 }: AdmissionRequest, now: number) {
    const known = line.waiting.get(waiterId)
    const arrival = known?.arrival ?? ++this.#counter
    const waiter: Waiter = { id: waiterId, key, priority, arrival, seenAt: now }
    line.waiting.set(waiterId, waiter)
    return waiter
  }

  #prune({ waiting }: Line, seenBefore: number): void {
    for (const [id, { seenAt }] of waiting) if (seenAt < seenBefore) waiting.delete(id)
  }

  /** In the order of service: the first is forgotten first, and then counts as never served. */
  #served(served: Map<string, number>, key: string): void {
    served.delete(key)
    served.set(key, ++this.#counter)
    if (served.size <= REMEMBERED_KEYS) return
    for (const oldest of served.keys()) return void served.delete(oldest)
  }

  /** Who has the next slots, best first. */
  #best(line: Line, slots = 1): Waiter[] {
    const { fairness, order } = line.config
    const latest = order === 'lifo' ? -1 : 1
    const chosen: Waiter[] = []
    // Keys that would be served by the slots chosen so far.
    const served = new Map<string, number>()
    const servedAt = ({ key }: Waiter) =>
      fairness === 'key' ? (served.get(key) ?? line.served.get(key) ?? 0) : 0
    const isBefore = (a: Waiter, b: Waiter) =>
      (b.priority - a.priority || servedAt(a) - servedAt(b) || latest * (a.arrival - b.arrival)) < 0
    while (chosen.length < Math.min(slots, line.waiting.size)) {
      let best: Waiter | undefined
      for (const waiter of line.waiting.values()) {
        if (chosen.includes(waiter)) continue
        if (!best || isBefore(waiter, best)) best = waiter
      }
      chosen.push(best!)
      served.set(best!.key, this.#counter + chosen.length)
    }
    return chosen
  }
}
