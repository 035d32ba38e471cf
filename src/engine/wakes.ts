/*
 * Wakes: the one road of everything that can make a run move. A run that is started goes to the run
 * dispatcher when there is one, else to the run queue of the transport, else it begins here. News of a run
 * that waits is acted on here, where it came in; a process that has no turn for it hands the run over.
 */
import { nextMacrotask } from '../foundation/clock.ts'
import { Coalesced } from '../foundation/coalesced.ts'
import type { SeqRange } from '../foundation/control_flow.ts'
import type { FullStore } from '../store/full_store.ts'
import type { CheckpointStatus } from '../types/checkpoint.ts'
import { isTerminalStatus } from '../types/run.ts'
import { bestEffort, DurableError } from '../foundation/failure.ts'
import type { TurnQueue } from '../turns/turn_queue.ts'
import type { RunDispatcher } from './deps.ts'
import type { Drain } from './drain.ts'
import type { HandedRun, RunQueueLink } from './run_queue_link.ts'

const OUTSTANDING: CheckpointStatus[] = ['pending', 'running']

export interface WakesOptions {
  store: Pick<FullStore, 'hasCheckpoints' | 'getRun'>
  queue: TurnQueue
  runs: RunQueueLink
  drain: Drain
  namespace?: string
  runDispatcher?: RunDispatcher
  /** Tells other instances of a `pending` run, and whether somebody took it. */
  announce: (runId: string, taken: boolean) => void
  /** Takes `pending` runs, as a poll does. */
  takeDue: () => Promise<unknown>
  report: (error: unknown, what: string) => void
}

export class Wakes {
  readonly #options: WakesOptions
  /** Members of a wave that end together ask the store once. */
  readonly #waveChecks = new Coalesced()

  constructor(options: WakesOptions) {
    this.#options = options
  }

  /** Whoever brings news may be answered before the turn that follows from them. */
  get handsOver(): boolean {
    return this.#options.runs.publishes
  }

  /**
   * A run is `pending`. Its row is durable; what fails here is found by the pending poll. While the
   * engine drains the row is left for another instance.
   */
  started(run: HandedRun): void {
    // One microtask later: whoever causes a start is never re-entered by it.
    const { drain, announce, runs } = this.#options
    if (drain.draining && !runs.publishes) announce(run.id, false)
    else this.#dispatchAfter(Promise.resolve(), run, announce)
  }

  /**
   * The same for what follows from a turn of ours: it goes on while draining. One macrotask later: a
   * chain that never ends leaves room for everybody else in the process.
   */
  handOff(run: HandedRun): void {
    this.#dispatchAfter(nextMacrotask(), run)
  }

  /** Another instance enqueued this run, and did not take it. */
  takePending(runId: string): unknown {
    const { queue, drain, runDispatcher, runs } = this.#options
    if (drain.draining || queue.freeSlots === 0) return
    if (runDispatcher) return runDispatcher.enqueued?.(runId)
    if (!runs.publishes || runs.consumes) return this.#options.takeDue()
  }

  #dispatchAfter(
    moment: Promise<void>,
    run: HandedRun,
    announce: WakesOptions['announce'] = () => {}
  ): void {
    const { drain, report } = this.#options
    const dispatch = () => this.#dispatch(run, announce)
    void drain.track(bestEffort('the row stays pending for a poll', moment.then(dispatch), report))
  }

  async #dispatch(run: HandedRun, announce: WakesOptions['announce']): Promise<void> {
    const { queue, runDispatcher, runs } = this.#options
    if (runDispatcher) {
      const dispatched = runDispatcher.dispatch(run.id)
      announce(run.id, false)
      await dispatched
    } else if (runs.publishes) {
      const told = await runs.publish(run, 'start')
      announce(run.id, told || (runs.consumes && (await queue.begin(run.id))))
    } else announce(run.id, await queue.begin(run.id))
  }

  /** Something a waiting run may be waiting for is durable. Resolves when handed over. */
  news(runId: string): Promise<void> {
    return this.#options.drain.track(this.#news(runId))
  }

  async #news(runId: string): Promise<void> {
    const { queue, runs, drain, store } = this.#options
    if (!runs.publishes || queue.isExecuting(runId)) return queue.wake(runId)
    if (runs.consumes && !drain.draining && queue.freeSlots > 0) return queue.wake(runId)
    if (!(await queue.request(runId))) return
    const run = await store.getRun(runId)
    if (run && run.status !== 'running') await runs.publish(run, 'resume')
  }

  /** A run that was handed over, or whose message came again: what its row says is what counts. */
  async taken(runId: string): Promise<void> {
    const { queue, drain, store, namespace } = this.#options
    if (drain.draining) {
      throw new DurableError(`run ${runId} is for another process: this one drains`, {
        code: 'draining',
      })
    }
    if (queue.isExecuting(runId)) return queue.wake(runId)
    if (queue.freeSlots > 0 && (await queue.begin(runId))) return
    const run = await store.getRun(runId)
    if (!run || isTerminalStatus(run.status)) return
    if (namespace !== undefined && (run.namespace ?? 'default') !== namespace) return
    if (run.status === 'pending') await queue.begin(runId)
    else await queue.wake(runId)
  }

  /** A slot came free for a run that is due by its row: it goes where started runs go. */
  async mayEnter(runId: string): Promise<void> {
    const { runDispatcher } = this.#options
    if (runDispatcher) await runDispatcher.dispatch(runId)
    else await this.news(runId)
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
