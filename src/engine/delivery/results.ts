/*
 * Results of dispatched steps, from any instance's task. Batches settle in one read and one write; only
 * rows that changed emit events; several results of one run wake it once. A result is acknowledged when
 * its row is durable and its run's wake handed over, so the last copy is never in memory alone.
 */
import type { Clock } from '../../foundation/clock.ts'
import { Batcher } from '../../foundation/batcher.ts'
import { DurableError, toStepError } from '../../foundation/failure.ts'
import { encodePayload } from '../../foundation/json.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { CheckpointSettlement } from '../../store/ports/pending_settles.ts'
import { heldByWave, type SettleTarget } from '../../store/ports/turn_commits.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import { isTerminalStatus } from '../../types/run.ts'
import type { StepResult } from '../../wire/messages.ts'
import type { EventHub } from '../event_hub.ts'
import type { Wakes } from '../wakes.ts'

export interface ResultsOptions {
  store: FullStore
  hub: EventHub
  wakes: Pick<Wakes, 'newsOfWave'>
  clock: Clock
  maxPayloadBytes: number
  /** The step was heard of for the last time. */
  onSettled: (result: StepResult) => void
}

/** What follows from one result: its run is to be woken, or nothing. */
type Consequence = { wake?: () => Promise<void> }

export class Results {
  readonly #options: ResultsOptions
  readonly #batcher: Batcher<StepResult, Consequence>

  constructor(options: ResultsOptions) {
    this.#options = options
    this.#batcher = new Batcher((batch) => this.#settle(batch), { max: 500, parallel: 2 })
  }

  /** Resolves when the result may be acknowledged. */
  async onResult(result: StepResult): Promise<void> {
    const { wake } = await this.#batcher.add(result)
    await wake?.()
  }

  async #settle(batch: StepResult[]): Promise<Consequence[]> {
    const { store, onSettled } = this.#options
    const found = await store.settleTargets(batch.map(({ runId, seq }) => ({ runId, seq })))
    const targets = new Map(found.map((target) => [keyOf(target.checkpoint), target]))
    const judged = batch.map((result) => {
      const target = targets.get(keyOf(result))
      return judge(target ? this.#fitting(result, target) : result, target)
    })
    const landing = judged.filter((one) => one.verdict === 'settle')
    const now = this.#options.clock()
    const settlements = landing.map(({ result }) => settlementOf(result, now))
    const verdicts =
      settlements.length > 0 ? await store.settleCheckpointsIfPending(settlements) : []
    landing.forEach((one, i) => {
      if (verdicts[i]) this.#announce(one.result, one.target!, now)
    })
    for (const one of judged) if (one.verdict === 'note') await this.#note(one.result)
    for (const { result, target } of judged) if (target) onSettled(result)
    return this.#consequences(judged)
  }

  /** A worker may allow more than this engine keeps: such a result is a failure of its step. */
  #fitting(result: StepResult, { checkpoint }: SettleTarget): StepResult {
    if (result.status !== 'completed') return result
    try {
      const what = `the output of step "${checkpoint.name}"`
      encodePayload(result.output, what, this.#options.maxPayloadBytes)
      return result
    } catch (thrown) {
      const { output, ...rest } = result
      const error = { ...toStepError(thrown), retryable: false }
      return { ...rest, status: 'failed', error }
    }
  }

  /** One wake for all results of a run in this batch, also for those that were settled before. */
  #consequences(judged: Judged[]): Consequence[] {
    const wakes = new Map<string, () => Promise<void>>()
    return judged.map(({ result, target, verdict }) => {
      if (!target || verdict === 'drop' || isTerminalStatus(target.runStatus)) return {}
      const { runId } = result
      const wave = heldByWave(target.waitSeqs, target.checkpoint, result.status === 'failed')
      let wake = wakes.get(runId)
      if (!wake) {
        let handedOver: Promise<void> | undefined
        wake = () => (handedOver ??= this.#options.wakes.newsOfWave(runId, wave))
        wakes.set(runId, wake)
      }
      return { wake }
    })
  }

  #announce(result: StepResult, target: SettleTarget, now: number): void {
    const { runId, seq } = result
    const { checkpoint, workflow } = target
    const startedAt = result.startedAt ?? checkpoint.startedAt.getTime()
    const about = {
      runId,
      workflow,
      seq,
      name: checkpoint.name,
      kind: checkpoint.kind,
      durationMs: Math.max(0, now - startedAt),
      queueMs: Math.max(0, startedAt - checkpoint.enqueuedAt.getTime()),
    }
    this.#options.hub.emit(
      result.status === 'completed'
        ? { type: 'step.completed', ...about, output: result.output }
        : { type: 'step.failed', ...about, error: result.error }
    )
  }

  /** A failure for a run that is over: kept on the open row, so that a retry knows it was answered. */
  async #note(result: StepResult): Promise<void> {
    const { store } = this.#options
    const row = await store.getCheckpoint(result.runId, result.seq)
    if (row?.status !== 'pending' || row.stepId !== result.stepId) return
    await store.saveCheckpointIfPending({ ...row, error: result.error ?? { message: 'failed' } })
    const run = await store.getRun(result.runId)
    if (!run || isTerminalStatus(run.status)) return
    throw new DurableError(`run ${run.id} was re-opened meanwhile: the failure is to come again`)
  }
}

interface Judged {
  result: StepResult
  target?: SettleTarget
  verdict: 'settle' | 'wake' | 'note' | 'drop'
}

function judge(result: StepResult, target: SettleTarget | undefined): Judged {
  // No row, or the position is somebody else's by now (an earlier attempt of an undo).
  if (!target || target.checkpoint.stepId !== result.stepId) return { result, verdict: 'drop' }
  const { checkpoint, runStatus } = target
  // Settled: its receiver may have died before the wake.
  if (isSettledStatus(checkpoint.status)) return { result, target, verdict: 'wake' }
  if (runStatus === 'completed' || runStatus === 'cancelled') {
    return { result, target, verdict: 'drop' }
  }
  if (result.status === 'failed' && (result.attempt ?? Infinity) < checkpoint.attempts) {
    // Told again although its retry is out: that attempt is another one's to end.
    return { result, verdict: 'drop' }
  }
  const over = runStatus === 'failed' || runStatus === 'dead'
  if (over && result.status === 'failed') return { result, target, verdict: 'note' }
  return { result, target, verdict: 'settle' }
}

function settlementOf(result: StepResult, now: number): CheckpointSettlement {
  const settlement: CheckpointSettlement = {
    runId: result.runId,
    seq: result.seq,
    status: result.status,
    finishedAt: new Date(now),
    // A re-dispatch deadline must not be read as a retry deadline.
    wakeAt: null,
  }
  if (result.startedAt !== undefined) settlement.startedAt = new Date(result.startedAt)
  if (result.events && result.events.length > 0) settlement.events = result.events
  if (result.status === 'completed') settlement.output = result.output
  else settlement.error = result.error ?? { message: 'failed' }
  if (result.status === 'failed') settlement.upToAttempt = result.attempt
  return settlement
}

const keyOf = ({ runId, seq }: { runId: string; seq: number }): string => `${seq}:${runId}`
