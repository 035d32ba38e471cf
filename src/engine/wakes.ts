/*
 * Wakes: the one road of everything that can make a run move. A started run goes to the run dispatcher
 * when there is one; news of a run that waits is executed here, where it came in.
 */
import { nextMacrotask } from '../foundation/clock.ts'
import { Coalesced } from '../foundation/coalesced.ts'
import type { SeqRange } from '../foundation/control_flow.ts'
import type { FullStore } from '../store/full_store.ts'
import type { CheckpointStatus } from '../types/checkpoint.ts'
import { bestEffort } from '../foundation/failure.ts'
import type { TurnQueue } from '../turns/turn_queue.ts'
import type { RunDispatcher } from './deps.ts'
import type { Drain } from './drain.ts'

const OUTSTANDING: CheckpointStatus[] = ['pending', 'running']

export interface WakesOptions {
  store: Pick<FullStore, 'hasCheckpoints'>
  queue: TurnQueue
  drain: Drain
  runDispatcher?: RunDispatcher
  report: (error: unknown, what: string) => void
}

export class Wakes {
  readonly #options: WakesOptions
  /** Members of a wave that end together ask the store once. */
  readonly #waveChecks = new Coalesced()

  constructor(options: WakesOptions) {
    this.#options = options
  }

  /**
   * A run is `pending`. Its row is durable; what fails here is found by the pending poll. While the
   * engine drains the row is left for another instance.
   */
  started(runId: string): void {
    // One microtask later: whoever causes a start is never re-entered by it.
    if (!this.#options.drain.draining) this.#dispatchAfter(Promise.resolve(), runId)
  }

  /**
   * The same for what follows from a turn of ours: it goes on while draining. One macrotask later: a
   * chain that never ends leaves room for everybody else in the process.
   */
  handOff(runId: string): void {
    this.#dispatchAfter(nextMacrotask(), runId)
  }

  #dispatchAfter(moment: Promise<void>, runId: string): void {
    const { queue, drain, runDispatcher, report } = this.#options
    const dispatch = async () => {
      if (runDispatcher) await runDispatcher.dispatch(runId)
      else await queue.begin(runId)
    }
    void drain.track(bestEffort('the row stays pending for a poll', moment.then(dispatch), report))
  }

  /** Something a waiting run may be waiting for is durable. Resolves when handed over. */
  news(runId: string): Promise<void> {
    return this.#options.drain.track(this.#options.queue.wake(runId))
  }

  /** News of a position that a fan holds: wakes once nothing of the awaited range is outstanding. */
  async newsOfWave(runId: string, wave: SeqRange | undefined): Promise<void> {
    if (!wave) return this.news(runId)
    const { from: fromSeq, to: toSeq } = wave
    await this.#waveChecks.ask(`${fromSeq}:${toSeq}:${runId}`, async () => {
      const range = { fromSeq, toSeq, statuses: OUTSTANDING }
      if (!(await this.#options.store.hasCheckpoints(runId, range))) await this.news(runId)
    })
  }

  /** The same for a caller that cannot fail: the run carries its wake request, or its poll is near. */
  newsInBackground(runId: string): void {
    const { report } = this.#options
    void bestEffort('the timer poll sees the wake request', this.news(runId), report)
  }
}
