/*
 * The worker of a `db` transport: takes tasks of the names it serves, runs them, and records their answers
 * under its claim.
 */
import type { Cancel } from '../../foundation/clock.ts'
import { DurableError, isolate, messageOf } from '../../foundation/failure.ts'
import { randomId } from '../../foundation/ids.ts'
import type { Row } from '../../sql/session.ts'
import type { StepHandler } from '../../types/step.ts'
import type { Heartbeat, StepResult, WorkflowDecision } from '../../wire/messages.ts'
import { routingToken, tokenWithin } from '../../wire/names.ts'
import { beforeAgain } from '../again.ts'
import { BeatBatch } from '../beat_batch.ts'
import type { WorkflowTurnHandler } from '../ports.ts'
import { runStepHandler } from '../run_step_handler.ts'
import { runTurn } from '../run_turn.ts'
import { WorkerKeys } from '../worker_keys.ts'
import { type Batch, ClaimLane, type LiveClaim, type Taken } from './claim_lane.ts'
import { topics } from './nudges.ts'
import { insertBeats } from './results.ts'
import { pace, type Shared } from './shared.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'
import { type ClaimedTask, claimedTask } from './task_rows.ts'
import { freeLapsed, type Held, releaseClaims, renewClaims } from './claims.ts'
import { claimTasks, depthOf, dropTask, recordDecision, recordResult } from './tasks.ts'
import type { TableKeys } from './keys.ts'

/** A turn whose handler threw comes again after half its age, at most so late, in ms. */
const TURN_AGAIN_MS = 10_000

export class WorkerSide {
  readonly #shared: Shared
  readonly #steps = new Map<string, Map<string, StepHandler>>()
  readonly #turns = new Map<string, Map<string, WorkflowTurnHandler>>()
  readonly #lane: ClaimLane
  readonly #keys: WorkerKeys
  readonly #beats: BeatBatch
  #listening: string[] = []
  /** Turns that come again later. They are still claimed, and take no slot. */
  readonly #postponed = new Map<Held, Cancel>()

  constructor(shared: Shared, keys: TableKeys) {
    this.#shared = shared
    const { session, clock, timers, onError, concurrency, instanceId, tuning } = shared
    this.#keys = new WorkerKeys({
      store: keys,
      names: shared.keyNames,
      instanceId,
      status: () => concurrency.status(),
      clock,
      timers,
      onError,
    })
    this.#beats = new BeatBatch({
      timers,
      intervalMs: tuning.pollIntervalMs,
      onError,
      send: (beats) => this.#sendBeats(beats),
    })
    this.#lane = new ClaimLane({
      ...pace(shared),
      what: 'tasks',
      slots: () => concurrency.limit,
      idleBackoffMax: tuning.idleBackoffMax,
      take: (claim) => this.#take(claim),
      renew: (held, nowMs) => renewClaims(session, T.tasks, 'step_id', held, nowMs),
      freeLapsed: async (beforeMs) => {
        await shared.ready()
        const namespace = shared.namespace()
        await freeLapsed(session, T.tasks, { namespace, beforeMs, counted: true })
      },
      release: (held) => releaseClaims(session, T.tasks, 'step_id', held),
    })
    concurrency.onChange(() => void (this.#lane.started && this.#lane.kick()))
  }

  handle(name: string, fn: StepHandler, partition?: string): void {
    this.#serve(this.#steps, name, fn, partition)
  }

  handleWorkflow(name: string, turn: WorkflowTurnHandler, partition?: string): void {
    this.#serve(this.#turns, name, turn, partition)
  }

  heartbeat(beat: Heartbeat): void {
    this.#beats.add(beat)
  }

  /** The namespace is another one from now on. */
  listen(): void {
    const { nudges, namespace } = this.#shared
    for (const topic of this.#listening) nudges.forget(topic, this.#lane.kick)
    this.#listening = []
    if (!this.#lane.started) return
    this.#listening = this.#groups.map((group) => topics.tasks(namespace(), group))
    for (const topic of this.#listening) nudges.listen(topic, this.#lane.kick)
  }

  async depth(group: string): Promise<number> {
    const own = tokenWithin(this.#shared.namespace(), group)
    return depthOf(this.#shared.session, this.#shared.namespace(), own)
  }

  get keys(): WorkerKeys {
    return this.#keys
  }

  stop(): Promise<void> {
    return this.#lane.stop()
  }

  idle(): Promise<void> {
    return this.#lane.idle()
  }

  async close(): Promise<void> {
    this.#beats.stop()
    this.#shared.concurrency.stop()
    await this.#lane.close()
    await this.#giveBack([...this.#postponed.keys()])
    await this.#keys.close()
    const { nudges, namespace } = this.#shared
    for (const topic of this.#listening) nudges.forget(topic, this.#lane.kick)
    for (const group of this.#groups) nudges.tell(topics.tasks(namespace(), group))
  }

  get #groups(): string[] {
    return [...new Set([...this.#steps.keys(), ...this.#turns.keys()])]
  }

  #serve<Fn>(table: Map<string, Map<string, Fn>>, name: string, fn: Fn, partition?: string): void {
    const token = tokenWithin(this.#shared.namespace(), routingToken(name, partition))
    const known = table.get(token)
    if (known?.has(name)) return void known.set(name, fn)
    this.#shared.gate.whenOpen(() => {
      if (this.#shared.closed) return
      const names = table.get(token) ?? new Map<string, Fn>()
      table.set(token, names.set(name, fn))
      this.#shared.concurrency.start(this.#shared.timers)
      this.#lane.kick()
      this.#keys.serve(token)
      this.listen()
    })
  }

  async #take(claim: { token: string; nowMs: number; limit: number }): Promise<Batch> {
    const { session, namespace, ready } = this.#shared
    await ready()
    const own = { ...claim, namespace: namespace() }
    const { rows, more } = await claimTasks(session, own, this.#groups)
    const taken = rows.map((row): Taken => ({
      id: String(row.step_id),
      token: claim.token,
      handle: (live) => this.#run(row, live),
    }))
    return { taken, more }
  }

  async #run(row: Row, claim: LiveClaim): Promise<void> {
    const { concurrency, clock, onError } = this.#shared
    const startedAt = clock()
    concurrency.started()
    let ok = false
    let isStep = true
    try {
      const claimed = claimedTask(row, claim.token)
      isStep = claimed.kind === 'step'
      ok = await this.#answer(claimed, claim)
    } catch (error) {
      isolate(() => onError(error))
      await this.#record(claim, () => this.#recordFailure(row, claim, messageOf(error), false))
    }
    concurrency.finished({ ok, durationMs: clock() - startedAt, isStep })
  }

  /** True: the body went well. */
  async #answer(claimed: ClaimedTask, claim: LiveClaim): Promise<boolean> {
    const { maxStalledCount } = this.#shared.tuning
    if (claimed.kind === 'workflow') return this.#answerTurn(claimed, claim)
    const { task } = claimed
    if (claimed.reclaims > maxStalledCount) {
      const message = `remote step worker failed: claim lapsed more than ${maxStalledCount} times`
      const { runId, seq, stepId, attempt } = task
      const error = { message, code: 'claim_lapsed', retryable: true }
      const result: StepResult = { runId, seq, stepId, status: 'failed', error, attempt }
      await this.#record(claim, () => this.#recordStep(claim, result))
      return false
    }
    const { clock, timers } = this.#shared
    const result = await runStepHandler(task, this.#steps.get(task.group)?.get(task.name), {
      clock,
      timers,
      emitBeat: (beat) => this.heartbeat(beat),
    })
    this.#beats.drop(task.stepId)
    await this.#record(claim, () => this.#recordStep(claim, result))
    return result.status === 'completed'
  }

  async #answerTurn(
    { task, reclaims, createdAt }: ClaimedTask & { kind: 'workflow' },
    claim: LiveClaim
  ): Promise<boolean> {
    const { onError, session, clock, timers, tuning } = this.#shared
    const { maxStalledCount } = tuning
    if (reclaims > maxStalledCount) {
      // Whoever waits for its decision sends another turn.
      const what = `a turn of ${task.runId} was dropped: its claim lapsed more than ${maxStalledCount} times`
      isolate(() => onError(new DurableError(what, { code: 'claim_lapsed' })))
      isolate(() => dropTask(session, claim), onError)
      return false
    }
    let decision: WorkflowDecision
    try {
      decision = await runTurn(task, this.#turns.get(task.group)?.get(task.workflow), {
        clock,
        timers,
        silenced: () => claim.lost,
        beat: (beat) => this.heartbeat(beat),
      })
    } catch (error) {
      isolate(() => onError(error))
      if (!claim.lost) this.#postpone(claim, (clock() - createdAt) / 2)
      return false
    }
    await this.#record(claim, () => this.#recordTurn(claim, decision))
    return decision.status !== 'failed'
  }

  #postpone({ id, token }: Held, ms: number): void {
    const { timers, tuning, onError } = this.#shared
    const held = { id, token }
    // Before the claim lapses, which would count.
    const latest = Math.min(TURN_AGAIN_MS, tuning.leaseMs / 2)
    const delay = Math.min(latest, Math.max(tuning.pollIntervalMs, ms))
    const cancel = timers.after(delay, () => isolate(() => this.#giveBack([held]), onError))
    this.#postponed.set(held, cancel)
  }

  async #giveBack(held: Held[]): Promise<void> {
    if (held.length === 0) return
    for (const each of held) {
      this.#postponed.get(each)?.()
      this.#postponed.delete(each)
    }
    await releaseClaims(this.#shared.session, T.tasks, 'step_id', held)
    this.#lane.kick()
  }

  /** Writes the answer, again while the database cannot be reached and the claim stands. */
  async #record(claim: LiveClaim, write: () => Promise<boolean>): Promise<void> {
    const { onError, timers } = this.#shared
    for (let failures = 0; !claim.lost; failures++) {
      claim.ending = true
      try {
        if (await write()) return
        // After a failed write the answer may be there already.
        if (failures === 0) {
          onError(
            new DurableError(`the claim on task ${claim.id} was lost: its answer is dropped`, {
              code: 'claims_lost',
            })
          )
        }
        return
      } catch (error) {
        claim.ending = false
        isolate(() => onError(error))
        await beforeAgain(failures + 1, timers)
      }
    }
  }

  async #recordStep(claim: LiveClaim, result: StepResult): Promise<boolean> {
    const { session, nudges, clock } = this.#shared
    const namespace = this.#shared.namespace()
    const recorded = await recordResult(session, claim, result, { namespace, nowMs: clock() })
    if (recorded) nudges.tell(topics.results(namespace))
    return recorded
  }

  async #recordTurn(claim: LiveClaim, decision: WorkflowDecision): Promise<boolean> {
    const { session, nudges, clock } = this.#shared
    const namespace = this.#shared.namespace()
    const message = { id: randomId(), namespace, nowMs: clock() }
    const recorded = await recordDecision(session, claim, decision, message)
    if (recorded) nudges.tell(topics.messages(namespace, 'decision'))
    return recorded
  }

  #recordFailure(
    row: Row,
    claim: LiveClaim,
    message: string,
    retryable: boolean
  ): Promise<boolean> {
    return this.#recordStep(claim, {
      runId: String(row.run_id),
      seq: Number(row.seq),
      stepId: String(row.step_id),
      status: 'failed',
      error: { message, code: 'unreadable_task', retryable },
    })
  }

  async #sendBeats(beats: Heartbeat[]): Promise<void> {
    if (this.#shared.closed) return
    const { session, namespace, clock } = this.#shared
    await insertBeats(session, beats, { namespace: namespace(), nowMs: clock() })
  }
}
