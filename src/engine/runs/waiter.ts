/*
 * Waiting for a run: subscribes first, then reads, so that a settle in between is not missed. A terminal
 * wait also polls: the settle may happen in another process. A wait keeps no process alive.
 */
import { InvalidArgumentError, WaitTimeoutError } from '../../errors.ts'
import type { Cancel, Timers } from '../../foundation/clock.ts'
import { isDurationMs } from '../../foundation/duration.ts'
import { linkOf, nextLinkId } from '../../foundation/ids.ts'
import { keyProblem } from '../../foundation/keys.ts'
import type { FullStore } from '../../store/full_store.ts'
import { isTerminalStatus, type RunResult, type WorkflowRun } from '../../types/run.ts'
import type { EventHub } from '../event_hub.ts'
import { resultOf } from './result.ts'

export interface WaitOptions {
  /** Reject after this many ms; default never. */
  timeoutMs?: number
  /** Wait past suspensions, and along continuations, for a terminal status. */
  terminal?: boolean
}

const POLL_MS = 250
const SETTLING = new Set(['run.completed', 'run.failed', 'run.suspended'])

export class RunWaiter {
  readonly #store: Pick<FullStore, 'getRun'>
  readonly #timers: Timers
  /** Who looks again when something of a chain settles here, by the id the chain began with. */
  readonly #looks = new Map<string, Set<() => void>>()

  constructor(options: { store: Pick<FullStore, 'getRun'>; hub: EventHub; timers: Timers }) {
    this.#store = options.store
    this.#timers = options.timers
    options.hub.subscribe(({ type, runId }) => {
      if (this.#looks.size === 0 || !SETTLING.has(type)) return
      for (const look of this.#looks.get(linkOf(runId).origin) ?? []) look()
    })
  }

  async waitFor(runId: string, options: WaitOptions = {}): Promise<RunResult> {
    // No run can ever have such an id: waiting for one would never end.
    const problem = keyProblem(runId)
    if (problem) throw new InvalidArgumentError('waitForRun: the run id', problem)
    if (options.timeoutMs !== undefined && !isDurationMs(options.timeoutMs)) {
      throw new InvalidArgumentError('waitForRun: timeoutMs', 'must be 0 or more milliseconds')
    }
    return this.#wait(runId, options)
  }

  #wait(runId: string, options: WaitOptions): Promise<RunResult> {
    return new Promise((resolve, reject) => {
      const stops: Cancel[] = []
      let over = false
      const end = (settle: () => void) => {
        if (over) return
        over = true
        for (const stop of stops) stop()
        settle()
      }
      let reading = false
      let stale = false
      const look = async (): Promise<void> => {
        if (over) return
        if (reading) {
          stale = true
          return
        }
        reading = true
        try {
          do {
            stale = false
            const run = await this.#frontier(runId, options.terminal === true)
            if (run && isSettled(run, options.terminal === true)) end(() => resolve(resultOf(run)))
          } while (stale && !over)
        } catch {
          // A failing read is answered by the next look.
        } finally {
          reading = false
        }
      }
      stops.push(
        this.#onSettled(linkOf(runId).origin, () => void look()),
        // Unknown ids and other processes have no event here.
        this.#timers.every(POLL_MS, () => void look())
      )
      if (options.timeoutMs !== undefined) {
        const { timeoutMs } = options
        stops.push(
          this.#timers.after(timeoutMs, () =>
            end(() =>
              reject(new WaitTimeoutError(`waitForRun(${runId}) timed out after ${timeoutMs}ms`))
            )
          )
        )
      }
      void look()
    })
  }

  #onSettled(origin: string, look: () => void): Cancel {
    const looks = this.#looks.get(origin) ?? new Set()
    this.#looks.set(origin, looks.add(look))
    return () => {
      looks.delete(look)
      if (looks.size === 0 && this.#looks.get(origin) === looks) this.#looks.delete(origin)
    }
  }

  /** The run, or the last link of its chain for whoever waits for the end. */
  async #frontier(runId: string, follow: boolean): Promise<WorkflowRun | null> {
    let run = await this.#store.getRun(runId)
    while (follow && run?.status === 'completed' && run.output === undefined) {
      const next: WorkflowRun | null = await this.#store.getRun(nextLinkId(run.id))
      if (!next) return run
      run = next
    }
    return run
  }
}

function isSettled(run: WorkflowRun, terminal: boolean): boolean {
  if (isTerminalStatus(run.status)) return true
  if (terminal || run.status === 'pending' || run.status === 'running') return false
  return run.awaitingDecisionTaskId === undefined
}
