/*
 * After-effects: what follows from a commit. Idempotent, tracked for a drain, never on the path of the
 * turn that caused it; losing one costs a delay, since each can be derived again from the store.
 */
import type { Clock } from '../foundation/clock.ts'
import { bestEffort } from '../foundation/failure.ts'
import { childToken, parentRunIdOf } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import type { CompletionEnvelope } from '../types/checkpoint.ts'
import type { Effect, ReleaseSingleton, TurnReport } from '../turns/effects.ts'
import type { Singletons } from '../flow/singletons.ts'
import type { Drain } from './drain.ts'
import type { Registry } from './registry.ts'
import type { DeadLetters } from './runs/dead_letters.ts'
import type { FailureRoutes } from './runs/failure_routes.ts'
import type { DueTimes } from './upkeep/due_times.ts'
import type { Wakes } from './wakes.ts'

export interface AfterEffectsOptions {
  store: FullStore
  wakes: Pick<Wakes, 'handOff' | 'mayEnter' | 'newsOfWave'>
  singletons: Pick<Singletons, 'slotOf' | 'wakeWaiters'>
  lookup: Pick<Registry, 'find'>
  failures: Pick<FailureRoutes, 'start'>
  deadLetters: Pick<DeadLetters, 'start'>
  drain: Drain
  dueTimes: Pick<DueTimes, 'note'>
  clock: Clock
  /** Cancels the children of a cancelled run, then clears its mark. */
  tellChildren: (runId: string) => Promise<void>
  cancelRuns: (runIds: string[]) => Promise<void>
  report: (error: unknown, what: string) => void
}

export class AfterEffects {
  readonly #options: AfterEffectsOptions

  constructor(options: AfterEffectsOptions) {
    this.#options = options
  }

  run(report: TurnReport): void {
    if (report.dueAt !== undefined) this.#options.dueTimes.note(report.dueAt)
    for (const effect of report.effects) this.perform(effect)
  }

  perform(effect: Effect): void {
    const { drain, report } = this.#options
    const work = this.#work(effect)
    if (work) void drain.track(bestEffort('the store tells again', work, report))
  }

  #work(effect: Effect): Promise<void> | undefined {
    switch (effect.kind) {
      case 'wakeSuccessor':
      case 'startChild':
        return void this.#options.wakes.handOff(effect.run)
      case 'notifyParent':
        // Not buffered: a parent that waits later reads the child's row.
        return this.#complete(effect.childId, effect.completion, false)
      case 'offerRetry':
        return this.#offerRetry(effect.childId, effect.completion)
      case 'reportStartFailure':
        return this.#complete(effect.childId, effect.completion, true)
      case 'cancelRuns':
        return this.#options.cancelRuns(effect.runIds)
      case 'releaseSingleton':
        return this.#wakeWaiters(effect.run)
      case 'startHandler':
        return this.#options.failures.start(effect.run)
      case 'deadLetter':
        return this.#options.deadLetters.start(effect.run)
      case 'foldWaves':
        return this.#fold(effect)
      case 'tellChildren':
        return this.#options.tellChildren(effect.runId)
      case 'dropWaits':
        return this.#dropWaits(effect.runId)
    }
  }

  /** Only where a parent may come for it: nobody else would ever take it out of the buffer. */
  async #offerRetry(childId: string, completion: CompletionEnvelope): Promise<void> {
    const origin = await this.#options.store.getRun(childId)
    const awaited = origin?.awaited || parentRunIdOf(childId) !== undefined
    if (origin && awaited) await this.#complete(childId, completion, true)
  }

  async #wakeWaiters(run: ReleaseSingleton['run']): Promise<void> {
    const { singletons, lookup, wakes } = this.#options
    const workflow = lookup.find(run.workflow, run.workflowVersion)
    const slot = singletons.slotOf(run, workflow?.singleton)
    if (!slot) return
    const woken = await singletons.wakeWaiters(slot)
    await Promise.all(woken.map((runId) => wakes.mayEnter(runId)))
  }

  async #fold({ runId, folds }: Extract<Effect, { kind: 'foldWaves' }>): Promise<void> {
    for (const { folded, toSeq } of folds) {
      const range = { fromSeq: folded.seq, toSeq }
      await this.#options.store.compactCheckpoints(runId, range, folded)
    }
  }

  /** A wait for a child goes when the child ends; until then it tells of it. */
  async #dropWaits(runId: string): Promise<void> {
    const { store } = this.#options
    for (const waiter of await store.listSignalWaitersByRunIds([runId])) {
      if (!waiter.token.startsWith(childToken(''))) await store.removeSignalWaiter(waiter)
    }
  }

  async #complete(childId: string, payload: CompletionEnvelope, buffer: boolean): Promise<void> {
    const { store, wakes, clock } = this.#options
    const token = childToken(childId)
    const urgent = !payload.ok
    const outcome = await store.deliverSignal({ token, payload, nowMs: clock(), buffer, urgent })
    if (outcome.delivered) await wakes.newsOfWave(outcome.runId, outcome.wave)
  }
}
