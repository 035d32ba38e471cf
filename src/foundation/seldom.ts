/*
 * Work that polls ask for at every tick and that is done at most so often.
 */

/** Lets one through, and the next not before `pauseMs` after it. A clock that went back counts as a pause. */
export class Seldom {
  readonly #pauseMs: number
  #lastAt?: number

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs
  }

  /** Whether it is time; if so, the pause begins anew. */
  take(nowMs: number): boolean {
    const last = this.#lastAt
    if (last !== undefined && nowMs >= last && nowMs - last < this.#pauseMs) return false
    this.#lastAt = nowMs
    return true
  }
}
