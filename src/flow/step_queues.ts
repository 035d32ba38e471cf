/*
 * Flow-control queues of dispatched steps: who asks, who holds a slot, and whom a freed one wakes. What is
 * decided is the backend's; what is durable is the run, which is due again when it may ask. A slot is given
 * back when its step settles here or its run is cancelled; one whose result went to another process is
 * found by a review, which looks only where somebody waits.
 */
import { type Clock, type Timers, within } from '../foundation/clock.ts'
import { DurableError } from '../foundation/failure.ts'
import { stepIdOf } from '../foundation/ids.ts'
import { mapBounded } from '../foundation/pool.ts'
import type { FullStore } from '../store/full_store.ts'
import type { SettleTarget } from '../store/ports/turn_commits.ts'
import { isSettledStatus } from '../types/checkpoint.ts'
import type { EngineEvent } from '../types/engine_event.ts'
import { isTerminalStatus } from '../types/run.ts'
import { isRemoteEvent } from '../wire/remote_events.ts'
import type { Admission, AdmissionBackend, QueueConfig } from './port.ts'
import { checkQueue } from './queue_config.ts'

/** When to ask again where the backend could not answer, in ms. */
const RETRY_MS = 1000
/** How long the backend may take to answer, in ms. */
const ANSWER_MS = 5000
/** How long after its retry a waiter that never asked again is remembered, in ms. */
const FORGET_MS = 60_000
const REVIEWED_AT_ONCE = 500

/** A dispatch of a step that names a queue. */
export interface QueuedCall {
  queue: string
  runId: string
  seq: number
  /** The waiter id: the same for every attempt. */
  stepId: string
  /** The attempt that is to be dispatched. */
  attempt: number
  /** What fairness counts. */
  key: string
  priority?: number
}

interface Entry {
  call: QueuedCall
  /** When its slot was taken, epoch ms; absent while it waits. */
  heldSince?: number
  /** While it waits: when it asks again. */
  retryAt: number
  /** A freed slot woke it; it has not asked since. */
  woken?: boolean
  /** Requests that the backend has not answered, and that are still waited for. */
  asking: number
}

export interface StepQueuesOptions {
  backend: AdmissionBackend
  store: Pick<FullStore, 'settleTargets'>
  clock: Clock
  timers: Timers
  /** Silence after which a step of a run that is over is taken for lost, in ms. */
  patienceMs: number
  /** The step's handler runs, or waits to run, in this process. */
  isRunning: (stepId: string) => boolean
  /** A run may ask again; losing it costs its retry. */
  wake: (runId: string) => void
  /** Tracks what nobody awaits. */
  inBackground: (work: Promise<void>) => void
  report: (error: unknown, what: string) => void
}

/** The backend took too long. */
class Unanswered extends DurableError {
  static override readonly code: string = 'admission_unanswered'

  constructor(readonly isNews: boolean) {
    super(`the admission backend did not answer within ${ANSWER_MS} ms`)
  }
}

export class StepQueues {
  readonly #options: StepQueuesOptions
  readonly #entries = new Map<string, Entry>()
  readonly #byRun = new Map<string, Set<Entry>>()
  /** What the backend did not answer in time, until it does: told of once. */
  readonly #silent = new Set<string>()

  constructor(options: StepQueuesOptions) {
    this.#options = options
    options.backend.onFreed((queue, next) => this.#freed(queue, next))
  }

  /** Adds or replaces a queue. Throws `InvalidArgumentError` for one that cannot be. */
  register(config: QueueConfig): void {
    checkQueue('registerQueue', config)
    this.#options.backend.registerQueue(config)
  }

  /** Steps that name this queue have to ask; also when the backend could not tell. */
  gates(queue: string): boolean {
    try {
      return this.#options.backend.handles(queue)
    } catch (error) {
      this.#options.report(error, `whether queue "${queue}" is a gate`)
      return true
    }
  }

  /** Asks for a slot. Never rejects: a backend that cannot answer, or not in time, denies for a second. */
  async enter(call: QueuedCall): Promise<Admission> {
    const { clock, report } = this.#options
    const { queue, stepId } = call
    const entry = this.#entryOf(call)
    let answer: Admission
    entry.asking += 1
    try {
      answer = await this.#ask(entry, call)
      if (typeof answer?.admitted !== 'boolean') throw new TypeError('the backend gave no answer')
    } catch (error) {
      const what = `the admission of step ${stepId} to queue "${queue}"`
      if (!(error instanceof Unanswered) || error.isNews) report(error, what)
      answer = { admitted: false, retryAt: clock() + RETRY_MS }
    } finally {
      entry.asking -= 1
    }
    const now = clock()
    if (answer.admitted) {
      entry.heldSince ??= now
      return answer
    }
    entry.heldSince = undefined
    entry.retryAt = answer.retryAt > now ? answer.retryAt : now + RETRY_MS
    return { admitted: false, retryAt: entry.retryAt }
  }

  #ask(entry: Entry, { queue, stepId: waiterId, priority, key }: QueuedCall): Promise<Admission> {
    return this.#answered(
      `admit ${queue}`,
      () => this.#options.backend.tryAdmit(queue, { waiterId, priority, key }),
      (answer) => {
        if (answer?.admitted !== true) return
        this.#options.inBackground(this.#decline(this.#entries.get(waiterId) ?? entry, queue))
      }
    )
  }

  /** Gives back a slot that was granted too late. */
  async #decline(entry: Entry, queue: string): Promise<void> {
    const { call, asking } = entry
    // Who asks again, or holds it by now, is the same waiter: it is its slot.
    if (call.queue === queue && (asking > 0 || isHeld(entry))) return
    try {
      const release = () => this.#options.backend.release(queue, call.stepId)
      await this.#answered(`release ${queue}`, release)
    } catch (error) {
      // A holder like any other then, which asks again or is found by a review.
      if (call.queue === queue) entry.heldSince ??= this.#options.clock()
      if (!this.#entries.has(call.stepId)) this.#remember(entry)
      if (!(error instanceof Unanswered) || error.isNews) throw error
    }
  }

  /** What the backend answers in time; rejects with `Unanswered` otherwise, news once per silence. */
  async #answered<T>(what: string, work: () => Promise<T>, late?: (answer: T) => void): Promise<T> {
    const silence = () => {
      const isNews = !this.#silent.has(what)
      this.#silent.add(what)
      return new Unanswered(isNews)
    }
    try {
      const answer = await within(this.#options.timers, ANSWER_MS, work, silence, late)
      this.#silent.delete(what)
      return answer
    } catch (error) {
      if (!(error instanceof Unanswered)) this.#silent.delete(what)
      throw error
    }
  }

  /** The step is over, or was not dispatched after all. A result of an earlier attempt frees nothing. */
  leave(stepId: string, attempt = Infinity): void {
    const entry = this.#entries.get(stepId)
    if (!entry || entry.call.attempt > attempt) return
    this.#options.inBackground(this.#release(entry))
  }

  /** What a run waits for in this process, for display. */
  waitsOf(runId: string): { queue: string; seq: number; retryAt: number }[] {
    const waiting = [...(this.#byRun.get(runId) ?? [])].filter((entry) => !isHeld(entry))
    return waiting.map(({ call: { queue, seq }, retryAt }) => ({ queue, seq, retryAt }))
  }

  /** Something ended, here or elsewhere. */
  heard(event: EngineEvent): void {
    const { type, runId, seq } = event
    if (type === 'run.completed' || type === 'run.failed') this.ended(runId)
    // Its result went to another process. Which attempt failed is not said: a review finds that out.
    else if (type === 'step.completed' && seq !== undefined && isRemoteEvent(event)) {
      this.leave(stepIdOf(runId, seq))
    }
  }

  /** A run ended: it waits for nothing, and holds what still executes. */
  ended(runId: string): void {
    const entries = [...(this.#byRun.get(runId) ?? [])]
    for (const entry of entries) {
      if (entry.heldSince === undefined) this.#options.inBackground(this.#release(entry))
    }
    const held = entries.filter(isHeld)
    if (held.length > 0) this.#options.inBackground(this.#examine(held))
  }

  /** Gives back slots of steps that are over, in queues where somebody waits. */
  async review(): Promise<void> {
    const now = this.#options.clock()
    const contested = new Set<string>()
    for (const entry of this.#entries.values()) {
      if (isHeld(entry)) continue
      if (entry.retryAt + FORGET_MS < now) this.#forget(entry)
      else contested.add(entry.call.queue)
    }
    if (contested.size === 0) return
    const held = [...this.#entries.values()].filter(
      (entry) => isHeld(entry) && contested.has(entry.call.queue)
    )
    for (let i = 0; i < held.length; i += REVIEWED_AT_ONCE) {
      await this.#examine(held.slice(i, i + REVIEWED_AT_ONCE))
    }
  }

  async #examine(entries: Entry[]): Promise<void> {
    const keys = entries.map(({ call: { runId, seq } }) => ({ runId, seq }))
    const found = await this.#options.store.settleTargets(keys)
    const targets = new Map(found.map((target) => [target.checkpoint.stepId, target]))
    const over = entries.filter((entry) => this.#isOver(entry, targets.get(entry.call.stepId)))
    // At once: one that the backend does not answer holds up no other.
    const outcomes = await mapBounded(over, over.length, (entry) => this.#release(entry))
    for (const outcome of outcomes) if (!outcome.ok) throw outcome.error
  }

  #isOver({ call, heldSince = 0 }: Entry, target: SettleTarget | undefined): boolean {
    const { clock, patienceMs, isRunning } = this.#options
    const silentSince = clock() - patienceMs
    // Its row may be on its way to the store.
    if (!target || target.checkpoint.attempts < call.attempt) return heldSince <= silentSince
    const { checkpoint, runStatus } = target
    if (isSettledStatus(checkpoint.status) || runStatus === 'cancelled') return true
    if (!isTerminalStatus(runStatus)) return false
    const { enqueuedAt, lastHeartbeatAt = enqueuedAt } = checkpoint
    return lastHeartbeatAt.getTime() <= silentSince && !isRunning(call.stepId)
  }

  async #release(entry: Entry): Promise<void> {
    const { call } = entry
    const { queue, stepId } = call
    // At once: another attempt may ask before the backend answers.
    this.#forget(entry)
    try {
      await this.#answered(
        `release ${queue}`,
        () => this.#options.backend.release(queue, stepId),
        () => void (entry.call === call && entry.asking === 0 && this.#forget(entry))
      )
    } catch (error) {
      // Still taken there: a review gives it back.
      if (isHeld(entry) && !this.#entries.has(stepId)) this.#remember(entry)
      if (!(error instanceof Unanswered) || error.isNews) throw error
    }
  }

  #freed(queue: string, next?: readonly string[]): void {
    const runs = new Set<string>()
    for (const stepId of next ?? this.#entries.keys()) {
      const entry = this.#entries.get(stepId)
      if (!entry || isHeld(entry) || entry.woken || entry.call.queue !== queue) continue
      entry.woken = true
      runs.add(entry.call.runId)
    }
    for (const runId of runs) this.#options.wake(runId)
  }

  #entryOf(call: QueuedCall): Entry {
    const known = this.#entries.get(call.stepId)
    if (known?.call.queue === call.queue) {
      known.call = call
      known.woken = undefined
      return known
    }
    // The body names another queue by now.
    if (known) this.leave(call.stepId)
    const entry: Entry = { call, retryAt: Infinity, asking: 0 }
    this.#remember(entry)
    return entry
  }

  #remember(entry: Entry): void {
    const { stepId, runId } = entry.call
    this.#entries.set(stepId, entry)
    const ofRun = this.#byRun.get(runId)
    if (ofRun) ofRun.add(entry)
    else this.#byRun.set(runId, new Set([entry]))
  }

  #forget(entry: Entry): void {
    const { stepId, runId } = entry.call
    if (this.#entries.get(stepId) === entry) this.#entries.delete(stepId)
    const ofRun = this.#byRun.get(runId)
    ofRun?.delete(entry)
    if (ofRun?.size === 0) this.#byRun.delete(runId)
  }
}

const isHeld = ({ heldSince }: Entry): boolean => heldSince !== undefined
