/*
 * Operators: they start runs, cancel some, and set back those that failed.
 */
import { LIVE_RUN_STATUSES } from '../../src/types/run.ts'
import { isEntityRun } from './entities.ts'
import type { Random } from './random.ts'
import type { Shadow } from './shadow.ts'
import type { SimProcess } from './sim_process.ts'
import { EPOCH, type VirtualTime } from './virtual_time.ts'

export interface OperatorsWorld {
  time: VirtualTime
  random: Random
  shadow: Shadow
  /** Faults and operators act until here. */
  chaosMs: number
  any(): SimProcess | undefined
  /** Absent in a world without crashes. */
  crash?(one: SimProcess): void
  note(text: () => string): void
}

export class Operators {
  readonly #world: OperatorsWorld

  constructor(world: OperatorsWorld) {
    this.#world = world
  }

  start(name: string, runId: string): void {
    const { time, random, shadow, any } = this.#world
    shadow.expect(runId)
    const startAt = random() < 0.1 ? 2000 * random() : undefined
    const attempt = () => {
      if (shadow.run(runId)) return
      const options = startAt === undefined ? {} : { startAt: EPOCH + Math.floor(startAt) }
      void any()
        ?.engine.start(name, { round: 0 }, runId, options)
        .catch(() => {})
      time.after(700, attempt)
    }
    attempt()
  }

  scheduleCancel(): void {
    const { time, random, shadow, chaosMs, any, crash, note } = this.#world
    const compensate = random() < 0.6
    const dice = random()
    time.after(0.6 * chaosMs * random() * random(), () => {
      // What an entity has taken is applied: nobody cancels it in the middle.
      const live = shadow
        .runs()
        .filter((one) => LIVE_RUN_STATUSES.includes(one.status) && !isEntityRun(one))
      const run = live[Math.floor(dice * live.length)]
      const one = any()
      if (!run || !one) return
      note(() => `cancel ${run.id}${compensate ? ', compensating' : ''} at ${one.id}`)
      one.engine.cancel(run.id, { compensate }).catch(() => {})
      if (crash && random() < 0.4) time.after(80 * random(), () => crash(one))
    })
  }

  reopenFailed(): void {
    const { random, shadow, any, note } = this.#world
    for (const { id, status } of shadow.runs()) {
      const failed = status === 'failed' || status === 'dead'
      if (!failed && random() < 0.8) continue
      const one = any()
      note(() => `requeue ${id} at ${one?.id}`)
      const verb = random() < 0.8 ? one?.engine.requeue(id) : one?.engine.resume(id)
      verb?.catch(() => {})
    }
  }
}
