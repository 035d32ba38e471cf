/*
 * After-effects: what follows from a settled turn. Idempotent, tracked for a drain, never on the path of
 * the turn that caused it.
 */
import type { Effect, TurnReport } from '../turns/effects.ts'
import type { Wakes } from './wakes.ts'

export class AfterEffects {
  readonly #wakes: Pick<Wakes, 'handOff'>

  constructor(options: { wakes: Pick<Wakes, 'handOff'> }) {
    this.#wakes = options.wakes
  }

  run(report: TurnReport): void {
    for (const effect of report.effects) this.#perform(effect)
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'wakeSuccessor':
        this.#wakes.handOff(effect.runId)
    }
  }
}
