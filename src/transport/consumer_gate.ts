/*
 * Deferred consumption: a process that only produces (a console command, a REPL) must not take messages
 * it will not live to handle. Owns what is parked; a consumer parked before the gate closed never starts.
 */

/** One consumer: passes work on at once, or keeps it in order until the gate opens. */
export interface ConsumerLane {
  /** False while the lane is parked. */
  readonly open: boolean
  run(work: () => void): void
}

export class ConsumerGate {
  #deferring = false
  #closed = false
  #parked: (() => void)[] = []

  /** Parks consumers registered from now on; those that run go on. */
  defer(): void {
    this.#deferring = true
  }

  /** Starts parked consumers in the order of their registration, and parks nothing more. */
  start(): void {
    this.#deferring = false
    for (const begin of this.#parked.splice(0)) begin()
  }

  /** Forgets parked consumers; nothing starts any more. */
  close(): void {
    this.#closed = true
    this.#parked = []
  }

  /** Calls `begin` now or when consumption starts. For consumers that fetch their work. */
  whenOpen(begin: () => void): void {
    if (this.#closed) return
    if (this.#deferring) this.#parked.push(begin)
    else begin()
  }

  /** A lane that opens now or when consumption starts. For consumers whose work is pushed to them. */
  lane(): ConsumerLane {
    const backlog: (() => void)[] = []
    const lane = {
      open: false,
      run(work: () => void): void {
        if (lane.open) work()
        else backlog.push(work)
      },
    }
    this.whenOpen(() => {
      lane.open = true
      for (const work of backlog.splice(0)) work()
    })
    return lane
  }
}
