/*
 * One kind of rows that this process takes and handles: never more at once than it has slots for, each
 * held by a claim that is renewed while it is handled. Owns the loop, the claims and their renewal; what a
 * row means is its user's.
 */
import type { Cancel, Clock, Timers } from '../../foundation/clock.ts'
import { DurableError, isolate } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import { PollLoop } from '../poll_loop.ts'
import type { TransportErrorHandler } from '../ports.ts'
import type { Held } from './claims.ts'

/** Taken, and not yet let go of. */
export interface Taken extends Held {
  /** Handles it. Never rejects. */
  handle(claim: LiveClaim): Promise<void>
}

/** Tells a handler whether its claim still stands. */
export interface LiveClaim extends Held {
  readonly lost: boolean
  /** Set while its end is being written: a renewal that finds nothing then says nothing. */
  ending?: boolean
}

export interface Batch {
  taken: Taken[]
  more: boolean
}

export interface LaneOptions {
  /** In errors. */
  what: string
  instanceId: string
  /** How many may be handled at once. */
  slots(): number
  /** `more`: there may be others, beyond the limit. */
  take(claim: { token: string; nowMs: number; limit: number }): Promise<Batch>
  /** Extends claims; answers the ids that still stand. */
  renew(held: Held[], nowMs: number): Promise<Set<string>>
  /** Frees rows whose claim lapsed before this time. */
  freeLapsed(beforeMs: number): Promise<void>
  release(held: Held[]): Promise<void>
  leaseMs: number
  pollIntervalMs: number
  idleBackoffMax: number
  clock: Clock
  timers: Timers
  onError: TransportErrorHandler
}

type HeldClaim = LiveClaim & { lost: boolean; done: Promise<void> }

export class ClaimLane {
  readonly #options: LaneOptions
  readonly #held = new Map<string, HeldClaim>()
  readonly #loop: PollLoop
  #keeping?: Cancel
  #mayBeMore = false
  #stopped = false

  constructor(options: LaneOptions) {
    this.#options = options
    const { pollIntervalMs, idleBackoffMax, timers, onError } = options
    this.#loop = new PollLoop({
      poll: () => this.#poll(),
      intervalMs: pollIntervalMs,
      idleBackoffMax,
      timers,
      onError,
    })
  }

  /** Begins to take rows, or looks for some now. True: there is room for one. */
  kick = (): boolean => {
    if (this.#stopped) return false
    const { timers, leaseMs, onError } = this.#options
    this.#keeping ??= timers.every(leaseMs / 3, () => isolate(() => this.#keep(), onError))
    if (this.#room > 0) {
      this.#loop.kick()
      return true
    }
    this.#mayBeMore = true
    return false
  }

  get started(): boolean {
    return this.#keeping !== undefined
  }

  /** Takes nothing more. Resolves when the last look has ended; what is held stays held. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loop.stop()
  }

  /** Resolves when nothing is handled any more. */
  async idle(): Promise<void> {
    while (this.#held.size > 0) await Promise.all([...this.#held.values()].map(({ done }) => done))
  }

  /** Gives back what is still held. */
  async close(): Promise<void> {
    this.#keeping?.()
    const left = [...this.#held.values()]
    this.#held.clear()
    for (const claim of left) claim.lost = true
    if (left.length > 0) await this.#options.release(left.map(({ id, token }) => ({ id, token })))
  }

  get #room(): number {
    return this.#options.slots() - this.#held.size
  }

  async #poll(): Promise<boolean> {
    const { take, instanceId, clock } = this.#options
    const limit = this.#room
    // Nothing is claimed ahead: a row that waits here would wait behind one that runs. Whoever asked for
    // this look may have had a reason: it is taken again once there is room.
    this.#mayBeMore = limit <= 0
    if (this.#mayBeMore) return false
    const token = `${instanceId}:${randomId()}`
    const { taken, more } = await take({ token, nowMs: clock(), limit })
    for (const each of taken) this.#handle(each)
    this.#mayBeMore ||= more
    return taken.length > 0
  }

  #handle({ id, token, handle }: Taken): void {
    const claim: HeldClaim = { id, token, lost: false, done: Promise.resolve() }
    this.#held.set(token + id, claim)
    claim.done = handle(claim).finally(() => {
      this.#held.delete(token + id)
      if (this.#mayBeMore && !this.#stopped) this.#loop.kick()
    })
  }

  async #keep(): Promise<void> {
    const { renew, freeLapsed, clock, leaseMs, what, onError } = this.#options
    const now = clock()
    const held = [...this.#held.values()].filter(({ lost }) => !lost)
    if (held.length > 0) {
      const standing = await renew(held, now)
      const lost = held.filter(
        ({ id, token, ending }) => !standing.has(id) && !ending && this.#held.has(token + id)
      )
      for (const claim of lost) claim.lost = true
      if (lost.length > 0) {
        onError(
          new DurableError(
            `lost ${lost.length} of ${held.length} claim(s) on ${what}: ` +
              'this process was too busy to renew them, or the database could not be reached',
            { code: 'claims_lost' }
          )
        )
      }
    }
    if (!this.#stopped) await freeLapsed(now - leaseMs)
    if (this.#room > 0 && !this.#stopped) this.#loop.kick()
  }
}
