/*
 * RunTurn: one turn of one run, from a claim to its release. It feeds the replay core, gives the core's
 * commands to performers, writes through the journal and settles. It owns nothing beyond the turn except
 * what it hands to the warm runs. How it holds together: docs/internals/turn.md.
 */
import { runInWorkflowScope } from '../authoring/ambient.ts'
import { validateStandard } from '../authoring/validate_standard.ts'
import { createCtx } from '../ctx/create_ctx.ts'
import {
  FatalError,
  NamespaceMismatch,
  PayloadCodecError,
  WorkflowNotRegisteredError,
} from '../errors.ts'
import { bestEffort, hasCode } from '../foundation/failure.ts'
import { nextLinkId } from '../foundation/ids.ts'
import { cloneJson } from '../foundation/json.ts'
import { debug } from '../foundation/debug.ts'
import { History } from '../replay/history.ts'
import type { ClaimedRun } from '../store/ports/run_claims.ts'
import type { WorkflowRun } from '../types/run.ts'
import type { TurnReport } from './effects.ts'
import type { LeaseHold, LeaseKeeper } from './lease_keeper.ts'
import type { RunnableWorkflow, TurnNeeds } from './needs.ts'
import { perform, waitsForNews } from './performer.ts'
import { endFan } from './perform/fan.ts'
import { awaitsVerdict, judgeReopened } from './reopen.ts'
import { unwindSaga } from './saga_unwind.ts'
import { failedWith, lostReport, type Outcome, outcomeOf, parkOf, settleTurn } from './settle.ts'
import { Turn, TurnLostError } from './turn.ts'
import type { WarmRun, WarmRuns } from './warm_runs.ts'

/** What others may do with a turn that executes. */
export interface TurnHandle {
  /** News of this run came. */
  ring(): void
  /** The process ends: what the turn awaits outside is left to a later one. */
  leave(): void
  leaving: boolean
  /** Nothing but the settling write is left. */
  parking: boolean
}

export interface RunTurnOptions {
  needs: TurnNeeds
  leases: LeaseKeeper
  warm: WarmRuns
  /** Scope of this process; undefined drives every namespace. */
  namespace?: string
}

const trace = debug('turns')

export class RunTurn {
  readonly #needs: TurnNeeds
  readonly #leases: LeaseKeeper
  readonly #warm: WarmRuns
  readonly #namespace?: string

  constructor(options: RunTurnOptions) {
    this.#needs = options.needs
    this.#leases = options.leases
    this.#warm = options.warm
    this.#namespace = options.namespace
  }

  /** Executes a claimed run. Never rejects: a turn that may not go on is reported as lost. */
  async execute(claimed: ClaimedRun, handle: TurnHandle, owner: string): Promise<TurnReport> {
    const { run } = claimed
    const hold = this.#leases.hold(run.id, owner)
    try {
      const refused = claimed.unreadable ?? this.#refusal(run)
      if (refused) return await this.#giveBack(claimed, hold, refused)
      const workflow = this.#needs.lookup.find(run.workflow, run.workflowVersion)!
      return await this.#drive(claimed, workflow, hold, handle)
    } catch (error) {
      return await this.#lose(run, hold, error)
    } finally {
      this.#leases.drop(hold)
    }
  }

  /** Why this process cannot run it. */
  #refusal(run: WorkflowRun): Error | undefined {
    const { namespace = 'default' } = run
    if (this.#namespace !== undefined && namespace !== this.#namespace) {
      return new NamespaceMismatch(run.id, namespace, this.#namespace)
    }
    const workflow = this.#needs.lookup.find(run.workflow, run.workflowVersion)
    if (workflow) return workflow.refuses?.(run.input)
    return new WorkflowNotRegisteredError(
      run.workflow,
      run.workflowVersion,
      `Run ${run.id} began on this version: keep it deployed until its runs have ended`
    )
  }

  async #drive(
    claimed: ClaimedRun,
    workflow: RunnableWorkflow,
    hold: LeaseHold,
    handle: TurnHandle
  ): Promise<TurnReport> {
    let { run } = claimed
    let kept = this.#warm.take(claimed)
    if (claimed.previousTurns === undefined) {
      const { id, namespace } = run
      this.#needs.emitter.emit({
        type: 'run.started',
        runId: id,
        workflow: run.workflow,
        namespace,
      })
    }
    const gated = await this.#gate(run, workflow, hold, handle)
    if (gated) return gated
    for (;;) {
      let turn: Turn
      try {
        turn = await this.#open(claimed, run, hold, kept)
      } catch (error) {
        // Nothing was written under this turn number yet. A process with the right key may read it.
        if (run !== claimed.run || !hasCode(error, PayloadCodecError.code)) throw error
        return await this.#giveBack(claimed, hold, error)
      }
      handle.ring = () => turn.hearOf()
      handle.leave = () => turn.live.leave()
      if (handle.leaving) handle.leave()
      try {
        const outcome = await this.#play(turn, workflow, kept)
        handle.parking = true
        const report = await settleTurn(turn, outcome)
        if (report?.lost) await this.#release(hold)
        turn.replay.onActivity = undefined
        if (report) return this.#finish(turn, outcome, report)
      } catch (error) {
        // Lost: the body gets to clean up, and can write nothing (invariant 8).
        void turn.replay.unwind()
        throw error
      } finally {
        turn.close()
      }
      // A cancel intent refused the settle: replay once more, and undo.
      handle.parking = false
      trace('run %s: cancel requested, undoing', run.id)
      await turn.replay.unwind()
      run = { ...run, cancelRequestedAt: turn.now() }
      kept = undefined
    }
  }

  /** How a turn ends that may not begin: the store has parked its run. */
  async #gate(
    run: WorkflowRun,
    { singleton }: RunnableWorkflow,
    hold: LeaseHold,
    handle: TurnHandle
  ): Promise<TurnReport | undefined> {
    // Who is to be cancelled has nothing to do inside.
    if (!singleton || run.cancelRequestedAt !== undefined) return undefined
    let again = false
    handle.ring = () => (again = true)
    const verdict = await this.#needs.singletons.admit(run, singleton)
    if (!verdict || verdict.admitted) return undefined
    handle.parking = true
    await this.#release(hold)
    const { id: runId, workflow, namespace } = run
    // News that came between the claim and the gate is on the row.
    const parked = again ? null : await this.#needs.store.getRun(runId)
    again ||= parked?.wakeRequestedAt !== undefined
    const report = { runId, status: verdict.status ?? 'cancelled', effects: [], again }
    if (verdict.status !== 'suspended') return { ...report, lost: true }
    this.#needs.emitter.emit({ type: 'run.suspended', runId, workflow, namespace })
    return report
  }

  /** A turn over kept or loaded history. */
  async #open(
    claimed: ClaimedRun,
    run: WorkflowRun,
    hold: LeaseHold,
    kept: WarmRun | undefined
  ): Promise<Turn> {
    const needs = this.#needs
    if (kept && run.cancelRequestedAt === undefined) {
      const rows = await needs.store.listCheckpointsAt(run.id, kept.openSeqs, kept.frontier)
      // A row past what this body took was written by somebody who does not count turns.
      if (rows.some((row) => row.seq >= kept.frontier))
        return this.#openCold(claimed, run, hold, kept)
      const changed = kept.history.merge(rows)
      const turn = new Turn({ run, needs, hold, history: kept.history, replay: kept.replay })
      if (kept.replay) {
        kept.replay.changed(changed)
        for (const entry of kept.replay.openAwaits()) {
          if (waitsForNews(entry)) kept.replay.attend(entry)
        }
      }
      return turn
    }
    return this.#openCold(claimed, run, hold, kept)
  }

  async #openCold(
    claimed: ClaimedRun,
    run: WorkflowRun,
    hold: LeaseHold,
    kept: WarmRun | undefined
  ): Promise<Turn> {
    const needs = this.#needs
    void kept?.replay?.unwind()
    // A turn that replays to undo has written rows of its own by now.
    const untouched = claimed.previousTurns === undefined && run.cancelRequestedAt === undefined
    const countsTurns = needs.store.capabilities.claimRun
    const rows = untouched && countsTurns ? [] : await needs.store.listCheckpointsForReplay(run.id)
    return new Turn({ run, needs, hold, history: new History(rows.filter((row) => row.seq >= 0)) })
  }

  async #play(turn: Turn, workflow: RunnableWorkflow, kept: WarmRun | undefined): Promise<Outcome> {
    if (!(kept?.replay && turn.replay === kept.replay)) {
      const invalid = await this.#begin(turn, workflow)
      if (invalid) return this.#unwound(turn, invalid)
    }
    turn.replay.onDelivered = (entry) => endFan(entry, turn)
    await this.#advance(turn)
    turn.live.stop()
    const { replay } = turn
    if (replay.broken) {
      await turn.quiesce()
      return failedWith(turn, replay.broken)
    }
    if (turn.intent) {
      await turn.drain()
      return this.#unwound(turn, CANCELLED)
    }
    if (!replay.end) {
      await turn.quiesce()
      const park = parkOf(turn)
      if (!this.#needs.settings.continuations) await replay.unwind()
      return park
    }
    const outcome = await this.#possible(turn, outcomeOf(turn, replay.end))
    if (outcome.kind === 'failed') {
      await turn.drain()
      return this.#unwound(turn, outcome)
    }
    await turn.quiesce()
    return outcome
  }

  /** A chain cannot go on under an id that some other run has: its next input would be lost. */
  async #possible(turn: Turn, outcome: Outcome): Promise<Outcome> {
    const { store } = this.#needs
    // Without a real commit the successor may be there since a hand-over that a crash cut short.
    if (outcome.kind !== 'continued' || !store.capabilities.commitTurn) return outcome
    const next = nextLinkId(turn.run.id)
    if (!(await store.getRun(next))) return outcome
    const problem = `run ${turn.run.id} cannot continue as new: another run has the id "${next}"`
    return failedWith(turn, new FatalError(problem, 'id_taken'))
  }

  /** Starts the body; answers a failure when its input is not valid any more. */
  async #begin(turn: Turn, workflow: RunnableWorkflow): Promise<Outcome | undefined> {
    let input = cloneJson(turn.run.input)
    if (workflow.inputSchema) {
      try {
        const label = `the input of workflow "${workflow.name}"`
        input = await validateStandard(workflow.inputSchema, input, label, 'invalid_input')
      } catch (error) {
        return failedWith(turn, error)
      }
    }
    if ([...turn.history.rows()].some(awaitsVerdict)) {
      await judgeReopened(turn, workflow, input)
    }
    const { settings, store } = this.#needs
    const ctx = createCtx({
      replay: turn.replay,
      maxPayloadBytes: settings.maxPayloadBytes,
      transactions: store.capabilities.transaction,
      webhookUrl: settings.webhookUrl,
    })
    turn.replay.start(() => runInWorkflowScope(ctx, () => workflow.fn(ctx, input)))
    return undefined
  }

  /** Runs the body until it ended, or waits for nothing that this turn can give. */
  async #advance(turn: Turn): Promise<void> {
    const { replay, journal } = turn
    for (;;) {
      turn.check()
      turn.finish()
      journal.flush()
      if (turn.news) await turn.reread()
      turn.live.review(turn.history)
      if (turn.intent) turn.live.stop()
      await replay.settle(turn.now)
      turn.stampNow()
      if (replay.broken || replay.end) return
      if (!turn.intent) {
        turn.reviewDenied()
        for (const entry of replay.takeAttention(turn.now())) perform(entry, turn)
      }
      journal.flush()
      if (turn.finished.length > 0 || turn.news || replay.deliverable(turn.now())) continue
      // A body that waits for something else than its ctx is waited for, under the lease.
      // What is to be undone has to come up first: with an intent, as far as the record goes.
      const wanted = !turn.intent || replay.position < turn.history.frontier
      const foreign = replay.openCount === 0 && wanted
      if (journal.idle && !turn.busy && !foreign) return
      // Work of ours may end at once and bring a commit that takes what is lazy along.
      if (foreign) journal.flush({ all: true })
      else journal.linger()
      await turn.bell(turn.nextDeadline)
    }
  }

  async #unwound(turn: Turn, outcome: Outcome): Promise<Outcome> {
    await unwindSaga(turn)
    return outcome
  }

  #finish(turn: Turn, outcome: Outcome, report: TurnReport): TurnReport {
    const { run, replay, history } = turn
    if (outcome.kind === 'suspended' && !report.lost) {
      this.#warm.keep(run.id, {
        turn: run.turns ?? 0,
        bornAt: run.createdAt.getTime(),
        history,
        openSeqs: outcome.openSeqs,
        frontier: outcome.frontier,
        replay: this.#needs.settings.continuations ? replay : undefined,
      })
      // It may have moved by itself while its run was being settled.
      if (replay.end || replay.position > outcome.frontier) replay.onActivity?.()
    } else {
      void replay.unwind()
    }
    trace('run %s turn %d: %s%s', run.id, run.turns, report.status, report.lost ? ' (lost)' : '')
    return report
  }

  /** This process cannot run it: the run goes back to where it was, due at once for those that can. */
  async #giveBack(claimed: ClaimedRun, hold: LeaseHold, refused: Error): Promise<TurnReport> {
    const { run, previousStatus, previousTurns } = claimed
    const { store, clock } = this.#needs
    const status = previousStatus === 'pending' ? 'pending' : 'suspended'
    const verdict = await store.commitTurn({
      runId: run.id,
      owner: hold.owner,
      turn: run.turns ?? 0,
      nowMs: clock(),
      settle: {
        status,
        evenIfCancelRequested: true,
        patch: {
          wakeAt: status === 'suspended' ? clock() : run.wakeAt,
          turns: previousTurns,
        },
      },
    })
    if (verdict.applied) return { runId: run.id, status, effects: [], again: false, refused }
    // Somebody else decided about it meanwhile.
    await this.#release(hold)
    return lostReport(run, verdict)
  }

  async #lose(run: WorkflowRun, hold: LeaseHold, error: unknown): Promise<TurnReport> {
    this.#warm.drop(run.id)
    if (!(error instanceof TurnLostError)) {
      this.#needs.report(error, `the turn of run ${run.id}`)
    }
    trace('run %s turn %d is lost: %s', run.id, run.turns, error)
    await this.#release(hold)
    const status = (error instanceof TurnLostError && error.status) || 'running'
    return { runId: run.id, status, effects: [], again: false, lost: true }
  }

  /** Lets go of a run that was not settled; a lease lost before may be a later turn's by now. */
  async #release({ runId, owner, lost }: LeaseHold): Promise<void> {
    if (lost) return
    const release = this.#needs.store.releaseRunLock(runId, owner)
    await bestEffort('recovery takes a run whose lease lapses', release)
  }
}

const CANCELLED: Outcome = { kind: 'cancelled', error: { message: 'cancelled' } }
