/*
 * Children. The child's row is inserted by the very commit that records the wait, so neither a crash nor a
 * cancel leaves an orphan or a gap. A child that exists is marked as awaited under its row lock: either
 * its end sees the mark and notifies, or this commit sees its end. Asking again only reads.
 */
import { messageOf, toStepError } from '../../foundation/failure.ts'
import { childOfRow, childToken, nextLinkId, signalName } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { completionOf } from '../../replay/completion.ts'
import type { ChildState, TurnVerdict } from '../../store/ports/turn_commits.ts'
import {
  type CheckpointStatus,
  type CompletionEnvelope,
  isSettledStatus,
  type SignalWaiter,
  type StepCheckpoint,
} from '../../types/checkpoint.ts'
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../types/run.ts'
import type { Turn } from '../turn.ts'

export function performChild(command: CommandOf<'child'>, turn: Turn): void {
  const { seq } = command
  if (turn.isWorking(seq)) return
  const row = turn.history.at(seq)
  if (row && isSettledStatus(row.status)) return
  const rejoins = row?.attempts === 0
  // Registered before: only a notification can have been lost, and one look a turn finds it.
  if (row && !rejoins && !turn.looksFirst(seq)) return
  turn.reserve(seq)
  const wait = new ChildWait(command, turn)
  if (!row) turn.send(() => wait.register())
  else turn.send(() => (rejoins ? wait.rejoin(row) : wait.lookAgain(row)))
}

/** One child's wait at one position. It releases the position when nothing is left to answer. */
class ChildWait {
  readonly #command: CommandOf<'child'>
  readonly #turn: Turn

  constructor(command: CommandOf<'child'>, turn: Turn) {
    this.#command = command
    this.#turn = turn
  }

  /** First time: the child's row, the wait and its placeholder, in one commit. */
  async register(): Promise<void> {
    const { workflow, childId } = this.#command
    const turn = this.#turn
    let child: WorkflowRun
    try {
      child = await turn.needs.children.prepare(this.#command, turn.run)
    } catch (error) {
      const output = startFailure(workflow, error)
      turn.write(this.#row(childId, 'completed', output), { urgent: false })
      return this.#release()
    }
    this.#await({ ...child, awaited: true })
  }

  /**
   * An operator brought the parent back: the child is waited for anew. The success of a retry that was
   * started in its place comes with the commit; a child that is still failed is brought back too.
   */
  async rejoin(row: StepCheckpoint): Promise<void> {
    const child = await this.#turn.lookUp(childOfRow(row.name) ?? this.#command.childId)
    if (!child) return this.register()
    this.#await({ ...child, awaited: true }, { retry: true })
  }

  async lookAgain(row: StepCheckpoint): Promise<void> {
    const child = await this.#turn.lookUp(childOfRow(row.name) ?? this.#command.childId)
    if (!child) return this.register()
    if (isTerminalStatus(child.status)) return this.#follow(child)
    this.#release()
  }

  /** Puts the wait for a child; the child's state comes back with the commit. */
  #await(child: WorkflowRun, { retry = false } = {}): void {
    const { journal } = this.#turn
    const placeholder = this.#row(child.id, 'running')
    this.#turn.looksFirst(placeholder.seq)
    this.#turn.write(placeholder, { urgent: true })
    journal.append({ child }, { urgent: true })
    journal.append(
      {
        wait: {
          waiter: this.#waiter(child.id),
          row: { ...placeholder, status: 'completed' },
        },
        then: (verdict) => this.#registered(child, verdict, retry),
      },
      { urgent: true }
    )
  }

  #registered(child: WorkflowRun, verdict: TurnVerdict, retry: boolean): void {
    const turn = this.#turn
    const state = verdict.children?.find(({ id }) => id === child.id)
    if (!state) turn.needs.effect({ kind: 'startChild', run: child })
    if (this.#isSettled() || !state || !isTerminalStatus(state.status)) this.#release()
    else if (retry && isFailure(state.status)) turn.send(() => this.#retry(state))
    else turn.send(() => this.#follow(state))
  }

  async #retry({ id }: ChildState): Promise<void> {
    const status = await this.#turn.needs.children.retry(id)
    const ended = status && isTerminalStatus(status) && !isFailure(status)
    const child = ended ? await this.#turn.lookUp(id) : undefined
    if (child && isTerminalStatus(child.status)) return this.#follow(child)
    // It runs, or another operator holds it: its end tells, or the next look of a later turn.
    this.#release()
  }

  /** A child that ended: its outcome, or the run it continued as. */
  async #follow(ended: ChildState): Promise<void> {
    if (ended.status === 'completed' && ended.output === undefined) {
      const next = await this.#turn.lookUp(nextLinkId(ended.id))
      if (next && isTerminalStatus(next.status)) return this.#follow(next)
      if (next) return this.#await({ ...next, awaited: true })
    }
    const row = this.#row(ended.id, 'completed', completionOf(ended))
    this.#turn.journal.append(
      {
        expiry: { waiter: this.#waiter(ended.id), row },
        then: () => {
          // A notification that was faster came back with the commit and stands already.
          if (!this.#isSettled()) {
            this.#turn.history.put(row)
            this.#turn.replay.changed([row.seq])
          }
          this.#release()
        },
      },
      { urgent: true }
    )
  }

  #isSettled(): boolean {
    const row = this.#turn.history.at(this.#command.seq)
    return row !== undefined && isSettledStatus(row.status)
  }

  #release(): void {
    this.#turn.release(this.#command.seq)
  }

  #waiter(childId: string): SignalWaiter {
    const { seq, group } = this.#command
    const waiter: SignalWaiter = {
      token: childToken(childId),
      runId: this.#turn.run.id,
      seq,
      createdAt: new Date(this.#turn.now()),
    }
    if (group !== undefined) waiter.parallelGroup = group
    return waiter
  }

  #row(childId: string, status: CheckpointStatus, output?: CompletionEnvelope): StepCheckpoint {
    const { seq, group } = this.#command
    const name = signalName(childToken(childId))
    const row = this.#turn.newRow({ seq, name, kind: 'signal', status })
    if (output !== undefined) row.output = output
    if (group !== undefined) row.parallelGroup = group
    return row
  }
}

const isFailure = (status: RunStatus): boolean => status === 'failed' || status === 'dead'

/** Why a child never came to be, as its completion. */
export function startFailure(workflow: string, thrown: unknown): CompletionEnvelope {
  const { code, details } = toStepError(thrown)
  const error = `child workflow "${workflow}" failed to start: ${messageOf(thrown)}`
  const completion: CompletionEnvelope = { ok: false, error }
  if (code !== undefined) completion.code = code
  if (details !== undefined) completion.details = details
  return completion
}
