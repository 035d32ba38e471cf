/*
 * Answers from outside: tasks that ended, breakpoints that are over.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { signalName, storableToken } from '../../foundation/ids.ts'
import { keyProblem } from '../../foundation/keys.ts'
import { breakpointToken, taskToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import { type CompletionEnvelope, isSettledStatus } from '../../types/checkpoint.ts'
import { isTerminalStatus, type RunResult } from '../../types/run.ts'
import { resultOf } from '../runs/result.ts'
import type { Signals } from './signals.ts'

export interface ExternalOptions {
  store: Pick<FullStore, 'getRun' | 'getLatestCheckpointByName' | 'listSignalWaitersByRunIds'>
  signals: Signals
}

export class External {
  readonly #options: ExternalOptions

  constructor(options: ExternalOptions) {
    this.#options = options
  }

  completeTask(runId: string, name: string, value: unknown): Promise<RunResult | null> {
    return this.#reportTask('completeTask', runId, name, { ok: true, value })
  }

  failTask(runId: string, name: string, error: string): Promise<RunResult | null> {
    return this.#reportTask('failTask', runId, name, { ok: false, error: String(error) })
  }

  /** Lets a run that stands at a breakpoint go on; null when it stands at none. */
  async continue(runId: string): Promise<RunResult | null> {
    const { store, signals } = this.#options
    const waiters = await store.listSignalWaitersByRunIds([runId])
    const [first] = waiters
      .filter(({ token, seq }) => token === storableToken(breakpointToken(runId, seq)))
      .sort((a, b) => a.seq - b.seq)
    // Not kept when it is over meanwhile: nobody would ever take it.
    return first ? signals.prepare(first.token, undefined, { buffer: false })() : null
  }

  /** One that nobody can be waiting for any more is answered with the run's state, and not kept. */
  async #reportTask(
    verb: string,
    runId: string,
    name: string,
    completion: CompletionEnvelope
  ): Promise<RunResult | null> {
    for (const [what, value] of [
      ['the run id', runId],
      ['the name', name],
    ]) {
      const problem = keyProblem(value)
      if (problem) throw new InvalidArgumentError(`${verb}: ${what}`, problem)
    }
    const { store, signals } = this.#options
    const token = storableToken(taskToken(runId, name))
    const send = signals.prepare(token, completion)
    const run = await store.getRun(runId)
    if (!run) return null
    if (isTerminalStatus(run.status) && run.status !== 'failed') return resultOf(run)
    const row = await store.getLatestCheckpointByName(runId, signalName(token))
    return row && isSettledStatus(row.status) ? resultOf(run) : send()
  }
}
