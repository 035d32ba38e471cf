/*
 * The engine of a `db` transport: hands out tasks, and takes results and heartbeats in. A result is
 * deleted after its handler took it, together with the next look for results, and at the latest when its
 * claim would be renewed; one that was refused is free again a poll interval later.
 */
import { type Cancel, sleepOn } from '../../foundation/clock.ts'
import { isolate } from '../../foundation/failure.ts'
import type { Heartbeat, RemoteTask, StepResult, WorkflowTask } from '../../wire/messages.ts'
import { tokenWithin } from '../../wire/names.ts'
import { PollLoop } from '../poll_loop.ts'
import { type Batch, ClaimLane, type LiveClaim, type Taken } from './claim_lane.ts'
import { topics } from './nudges.ts'
import { claimResults, deleteResults, dropOldBeats, takeBeats } from './results.ts'
import { pace, type Shared } from './shared.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'
import { resultOf } from './task_rows.ts'
import { freeLapsed, type Held, releaseClaims, renewClaims } from './claims.ts'
import { insertStep, insertTurn } from './tasks.ts'

/** A beat that waits longer than this tells nobody anything. */
const BEAT_LIVES_MS = 60_000

export class EngineSide {
  readonly #shared: Shared
  readonly #lane: ClaimLane
  readonly #beatLoop: PollLoop
  #results?: (result: StepResult) => Promise<void>
  #beats?: (beat: Heartbeat) => Promise<void>
  /** Taken by their handler and still in the table. */
  #delivered: Held[] = []
  #flushing?: Cancel
  #listening?: string

  constructor(shared: Shared) {
    this.#shared = shared
    const { session, timers, onError, tuning } = shared
    this.#lane = new ClaimLane({
      ...pace(shared),
      what: 'results',
      slots: () => tuning.resultConcurrency,
      // A result is what somebody waits for.
      idleBackoffMax: 1,
      take: (claim) => this.#take(claim),
      renew: (held, nowMs) => renewClaims(session, T.results, 'step_id', held, nowMs),
      freeLapsed: async (beforeMs) => {
        await shared.ready()
        const namespace = shared.namespace()
        await freeLapsed(session, T.results, { namespace, beforeMs, counted: false })
        await dropOldBeats(session, namespace, shared.clock() - BEAT_LIVES_MS)
      },
      release: (held) => releaseClaims(session, T.results, 'step_id', held),
    })
    this.#beatLoop = new PollLoop({
      poll: () => this.#takeBeats(),
      intervalMs: tuning.pollIntervalMs,
      idleBackoffMax: tuning.idleBackoffMax,
      timers,
      onError,
    })
  }

  async dispatch(task: RemoteTask): Promise<void> {
    const { session, nudges, clock, namespace, ready } = this.#shared
    await ready()
    const group = tokenWithin(namespace(), task.group)
    await insertStep(session, { ...task, group }, { namespace: namespace(), nowMs: clock() })
    nudges.tell(topics.tasks(namespace(), group))
  }

  async dispatchTurn(task: WorkflowTask): Promise<void> {
    const { session, nudges, clock, namespace, ready } = this.#shared
    await ready()
    const group = tokenWithin(namespace(), task.group)
    await insertTurn(session, { ...task, group }, { namespace: namespace(), nowMs: clock() })
    nudges.tell(topics.tasks(namespace(), group))
  }

  onResult(handler: (result: StepResult) => Promise<void>): void {
    const first = this.#results === undefined
    this.#results = handler
    if (!first) return
    this.#shared.gate.whenOpen(() => {
      this.#lane.kick()
      this.listen()
    })
  }

  onHeartbeat(handler: (beat: Heartbeat) => Promise<void>): void {
    const first = this.#beats === undefined
    this.#beats = handler
    if (first) this.#shared.gate.whenOpen(() => this.#beatLoop.kick())
  }

  /** The namespace is another one from now on. */
  listen(): void {
    const { nudges, namespace } = this.#shared
    if (this.#listening !== undefined) nudges.forget(this.#listening, this.#lane.kick)
    if (!this.#lane.started) return
    this.#listening = topics.results(namespace())
    nudges.listen(this.#listening, this.#lane.kick)
  }

  async stop(): Promise<void> {
    await Promise.all([this.#lane.stop(), this.#beatLoop.stop()])
  }

  idle(): Promise<void> {
    return this.#lane.idle()
  }

  async close(): Promise<void> {
    this.#flushing?.()
    await this.#flush()
    await this.#lane.close()
  }

  async #take(claim: { token: string; nowMs: number; limit: number }): Promise<Batch> {
    const { session, namespace, ready } = this.#shared
    await ready()
    const delivered = this.#delivered.splice(0)
    try {
      const own = { ...claim, namespace: namespace() }
      const { rows, more } = await claimResults(session, own, delivered)
      const taken = rows.map((row): Taken => ({
        id: String(row.step_id),
        token: claim.token,
        handle: (live) => this.#deliver(() => resultOf(row), live),
      }))
      return { taken, more }
    } catch (error) {
      // They may be gone: deleting them again does no harm.
      this.#delivered.push(...delivered)
      throw error
    }
  }

  async #deliver(read: () => StepResult, claim: LiveClaim): Promise<void> {
    const { onError, timers, tuning, session } = this.#shared
    const held = { id: claim.id, token: claim.token }
    try {
      const result = read()
      await this.#results!(result)
    } catch (error) {
      isolate(() => onError(error))
      await sleepOn(timers, tuning.pollIntervalMs)
      if (!claim.lost) isolate(() => releaseClaims(session, T.results, 'step_id', [held]), onError)
      return
    }
    this.#delivered.push(held)
    this.#flushing ??= timers.after(tuning.pollIntervalMs, () => {
      this.#flushing = undefined
      isolate(() => this.#flush(), onError)
    })
  }

  async #flush(): Promise<void> {
    const delivered = this.#delivered.splice(0)
    if (delivered.length > 0) await deleteResults(this.#shared.session, delivered)
  }

  async #takeBeats(): Promise<boolean> {
    const { session, namespace, ready, onError, tuning } = this.#shared
    await ready()
    const beats = await takeBeats(session, namespace(), tuning.batchSize)
    for (const beat of beats) isolate(() => this.#beats!(beat), onError)
    if (beats.length >= tuning.batchSize) this.#beatLoop.kick()
    return beats.length > 0
  }
}
