/*
 * The last completed steps of a worker, and how many it completed within the last minute.
 */

const SIZE = 100
const MINUTE_SECONDS = 60

interface Completion {
  durationMs: number
  ok: boolean
}

export class StepWindow {
  readonly #last: Completion[] = []
  /** Completions by second; a slot belongs to the second it names. */
  readonly #seconds = Array.from({ length: MINUTE_SECONDS }, () => ({ second: -1, count: 0 }))

  add(completion: Completion, now: number): void {
    this.#last.push(completion)
    if (this.#last.length > SIZE) this.#last.shift()
    const second = Math.floor(now / 1000)
    const slot = this.#seconds[second % MINUTE_SECONDS]
    if (slot.second !== second) Object.assign(slot, { second, count: 0 })
    slot.count++
  }

  /** Steps completed within the trailing minute, to the second. */
  perMinute(now: number): number {
    const current = Math.floor(now / 1000)
    return this.#seconds
      .filter(({ second }) => second >= 0 && current - second < MINUTE_SECONDS)
      .reduce((sum, { count }) => sum + count, 0)
  }

  /** Failed ones among the last 100; 0 before the first. */
  get errorRate(): number {
    if (this.#last.length === 0) return 0
    return this.#last.filter(({ ok }) => !ok).length / this.#last.length
  }

  /** The shortest step that succeeded: one that failed early says nothing of the load. */
  get shortestMs(): number | undefined {
    return this.#durations(true)[0]
  }

  /** The median step that succeeded. */
  get p50Ms(): number | undefined {
    return quantile(this.#durations(true), 0.5)
  }

  /** Of all steps, failed ones too. */
  get p95Ms(): number | undefined {
    return quantile(this.#durations(false), 0.95)
  }

  #durations(okOnly: boolean): number[] {
    const steps = okOnly ? this.#last.filter(({ ok }) => ok) : this.#last
    return steps.map(({ durationMs }) => durationMs).sort((a, b) => a - b)
  }
}

/** Nearest rank. */
function quantile(sorted: readonly number[], q: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)]
}
