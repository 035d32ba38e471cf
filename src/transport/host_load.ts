/*
 * What this process takes of its host: memory against what it may have, CPU against all cores.
 */
import { availableParallelism, totalmem } from 'node:os'
import type { Clock } from '../foundation/clock.ts'

/** Raw readings of the host; a test gives its own. */
export interface Host {
  rssBytes(): number
  /** The memory limit of the container, else the memory of the host. */
  memoryLimitBytes(): number
  /** CPU time of the process so far, in ms over all cores. */
  cpuMs(): number
  cores(): number
}

export const thisHost: Host = {
  rssBytes: () => process.memoryUsage.rss(),
  memoryLimitBytes: () => {
    // 0 when the kernel knows no limit; far above the memory of the host when a cgroup sets none.
    const constrained = process.constrainedMemory()
    return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  },
  cpuMs: () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
  cores: () => availableParallelism(),
}

/** Memory in use; `rssPct` is of the limit, with one decimal. */
export interface MemoryUse {
  rssBytes: number
  rssLimitBytes: number
  rssPct: number
}

export function memoryUse(host: Host): MemoryUse {
  const rssBytes = host.rssBytes()
  const rssLimitBytes = host.memoryLimitBytes()
  return { rssBytes, rssLimitBytes, rssPct: oneDecimal((rssBytes / rssLimitBytes) * 100) }
}

/** Share of all cores that this process used between two readings. */
export class CpuMeter {
  readonly #clock: Clock
  readonly #host: Host
  #at: number
  #cpuMs: number
  #pct?: number

  constructor(clock: Clock, host: Host) {
    this.#clock = clock
    this.#host = host
    this.#at = clock()
    this.#cpuMs = host.cpuMs()
  }

  /** Percent with one decimal, over at least `minMs`; until then the last answer, first `undefined`. */
  read(minMs = 1): number | undefined {
    const now = this.#clock()
    const wall = now - this.#at
    // A clock that was set back begins a new reading.
    if (wall >= 0 && wall < minMs) return this.#pct
    const used = this.#host.cpuMs()
    if (wall > 0) {
      this.#pct = oneDecimal(Math.max(0, (used - this.#cpuMs) / wall / this.#host.cores()) * 100)
    }
    this.#at = now
    this.#cpuMs = used
    return this.#pct
  }
}

const oneDecimal = (value: number): number => Math.round(value * 10) / 10
