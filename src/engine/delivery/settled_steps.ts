/*
 * Who in this process waits for the result of a step in memory. A convenience of the turn that waits:
 * the row is what counts, and is looked at as well.
 */
import type { StepResult } from '../../wire/messages.ts'

export class SettledSteps {
  readonly #listeners = new Map<string, Set<(result: StepResult) => void>>()

  /** Calls back once; the answer stops waiting. */
  once(stepId: string, listener: (result: StepResult) => void): () => void {
    const listeners = this.#listeners.get(stepId) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(stepId, listeners)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(stepId)
    }
  }

  settled(result: StepResult): void {
    const listeners = this.#listeners.get(result.stepId)
    this.#listeners.delete(result.stepId)
    for (const listener of listeners ?? []) listener(result)
  }
}
