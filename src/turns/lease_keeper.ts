/*
 * Leases: one hold per run that executes here, all renewed by one timer. A renewal that is refused means
 * that another executor owns the run: the hold aborts and its turn writes nothing more (invariant 1).
 */
import type { Cancel, Clock, Timers } from '../foundation/clock.ts'
import { bestEffort } from '../foundation/failure.ts'
import type { Leases } from '../store/ports/leases.ts'

export interface LeaseHold {
  readonly runId: string
  readonly owner: string
  /** Epoch ms of the last taking or renewal. */
  since: number
  lost: boolean
  onLost: () => void
}

export interface LeaseKeeperOptions {
  store: Pick<Leases, 'renewRunLock'>
  clock: Clock
  timers: Timers
  leaseMs: number
  report(error: unknown, what: string): void
}

const SHORTEST_RENEWAL_MS = 50

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #holds = new Set<LeaseHold>()
  #stop?: Cancel

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
  }

  /** Keeps a lease that was just taken. */
  hold(runId: string, owner: string): LeaseHold {
    const hold: LeaseHold = {
      runId,
      owner,
      since: this.#options.clock(),
      lost: false,
      onLost: () => {},
    }
    this.#holds.add(hold)
    this.#stop ??= this.#options.timers.every(
      Math.max(SHORTEST_RENEWAL_MS, this.#options.leaseMs / 2),
      () => this.#renewAll()
    )
    return hold
  }

  /**
   * Stops renewing; the store's lease is released by whoever settles the run. What the turn left under way
   * has no lease any more.
   */
  drop(hold: LeaseHold): void {
    this.#holds.delete(hold)
    hold.lost = true
    if (this.#holds.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }

  #renewAll(): void {
    const now = this.#options.clock()
    for (const hold of this.#holds) {
      // Younger leases outlive the next round too: short turns renew nothing.
      if (now - hold.since < this.#options.leaseMs / 4) continue
      void bestEffort('the next round renews again', this.#renew(hold), this.#options.report)
    }
  }

  async #renew(hold: LeaseHold): Promise<void> {
    const now = this.#options.clock()
    const { store, leaseMs } = this.#options
    const kept = await store.renewRunLock(hold.runId, hold.owner, now + leaseMs)
    if (kept) {
      hold.since = now
    } else if (this.#holds.has(hold)) {
      hold.lost = true
      hold.onLost()
    }
  }
}
