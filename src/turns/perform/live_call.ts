/*
 * A dispatched step with a liveness window: it is awaited under the lease. Until its worker shows up the
 * window is `pickupTimeoutMs`, then `timeoutMs`; every sign of life begins it anew. The result settles the
 * row on whichever instance receives it, so the row has the last word before a window counts as missed.
 */
import { RemoteStepTimeout } from '../../errors.ts'
import type { Cancel } from '../../foundation/clock.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus, type StepCheckpoint } from '../../types/checkpoint.ts'
import type { Turn } from '../turn.ts'

/** When a row that could not be read is looked at again, in ms. */
const RETRY_MS = 1000

type CallOptions = CommandOf<'call'>['options']

/** The window that a step is in, in ms, by whether its worker showed up. */
export function windowOf(
  { timeoutMs = 0, pickupTimeoutMs = timeoutMs }: CallOptions,
  alive: boolean
): number {
  return alive ? timeoutMs : pickupTimeoutMs
}

/** Listens from its making on; counts from `begin` on. Its position stays reserved until it stops. */
export class LiveCall {
  readonly #row: StepCheckpoint
  readonly #options: CallOptions
  readonly #turn: Turn
  readonly #silence: Cancel
  #alive = false
  #sinceMs = 0
  #timer?: Cancel
  #stopped = false

  constructor(command: CommandOf<'call'>, row: StepCheckpoint, turn: Turn) {
    this.#row = row
    this.#options = command.options
    this.#turn = turn
    this.#silence = turn.needs.sender.onBeat(row.stepId, () => this.#beat())
  }

  /** The task is out. */
  begin(): void {
    if (!this.#turn.goesOn) return this.stop()
    this.#turn.live.add(this.#row.seq, this)
    this.#count(this.#turn.now())
  }

  /** Awaits it no longer: it is answered, or somebody else will. */
  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#timer?.()
    this.#silence()
    this.#turn.live.remove(this.#row.seq)
    this.#turn.release(this.#row.seq)
  }

  /** When it counts as silent without another sign of life (epoch ms). */
  get dueAt(): number {
    return this.#sinceMs + this.#window
  }

  get #window(): number {
    return windowOf(this.#options, this.#alive)
  }

  #beat(): void {
    this.#alive = true
    if (this.#timer) this.#count(this.#turn.now())
  }

  #count(since: number): void {
    this.#sinceMs = since
    this.#wait(this.dueAt - this.#turn.now())
  }

  #wait(ms: number): void {
    this.#timer?.()
    this.#timer = this.#turn.needs.timers.after(Math.max(0, ms), () => void this.#review())
  }

  async #review(): Promise<void> {
    const { dueAt } = this
    // A timer is shorter than the longest windows.
    if (this.#turn.now() < dueAt) return this.#wait(dueAt - this.#turn.now())
    const row = await this.#stored()
    if (this.#stopped || this.dueAt > dueAt) return
    if (row === undefined) return this.#wait(RETRY_MS)
    if (!row || isSettledStatus(row.status)) {
      this.#turn.hearOf()
      return this.#wait(RETRY_MS)
    }
    const beatAt = this.#lastBeatOf(row)
    if (beatAt + windowOf(this.#options, true) > this.#turn.now()) {
      this.#alive = true
      return this.#count(beatAt)
    }
    this.#fail(row)
  }

  /** A beat that came to another instance. Where tasks stay in their process it came to this one. */
  #lastBeatOf(row: StepCheckpoint): number {
    const { sender } = this.#turn.needs
    return sender.isVolatile(this.#options.transport) ? 0 : (row.lastHeartbeatAt?.getTime() ?? 0)
  }

  #fail(row: StepCheckpoint): void {
    const turn = this.#turn
    const { message, code } = new RemoteStepTimeout(row.stepId, this.#window)
    const details = { timeoutMs: this.#window }
    turn.write(
      {
        ...row,
        status: 'failed',
        wakeAt: undefined,
        error: { message, code, details, retryable: true },
        finishedAt: new Date(turn.now()),
      },
      // A result may be first. A copy that came late would end the next attempt.
      { urgent: true, inFlight: true, once: true }
    )
    this.stop()
  }

  /** Null when it is gone, undefined when the store did not answer. */
  async #stored(): Promise<StepCheckpoint | null | undefined> {
    const { runId, seq } = this.#row
    try {
      return await this.#turn.needs.store.getCheckpoint(runId, seq)
    } catch (error) {
      this.#turn.needs.report(error, `a look at step ${this.#row.stepId}`)
      return undefined
    }
  }
}
