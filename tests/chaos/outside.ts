/*
 * The callers of the fleet: they ask any member that lives, and ask another one until a call has succeeded.
 * A call whose outcome they did not learn is repeated, as a client of a real service does.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { MemberProcess } from './member_process.ts'
import type { Verb } from './protocol.ts'

const RETRY_MS = 150

export interface OutsideOptions {
  members: () => MemberProcess[]
  random: () => number
  /** Ends callers that would never succeed. */
  signal: AbortSignal
}

export class Outside {
  readonly #options: OutsideOptions
  /** First arguments of calls that were repeated after an unknown outcome: they may have arrived twice. */
  readonly repeated = new Set<string>()
  calls = 0
  refusals = 0

  constructor(options: OutsideOptions) {
    this.#options = options
  }

  /** Answers what the engine answered in the end. */
  async call(verb: Verb, args: unknown[]): Promise<unknown> {
    for (;;) {
      this.#options.signal.throwIfAborted()
      const members = this.#options.members().filter((member) => member.alive)
      const member = members[Math.floor(this.#options.random() * members.length)]
      if (member) {
        this.calls += 1
        try {
          return await member.call(verb, args)
        } catch (error) {
          if ((error as Error).name === 'ConcurrencyLimitError') this.refusals += 1
          else this.repeated.add(String(args[0]))
        }
      }
      await pause(RETRY_MS)
    }
  }

  async pause(ms: number): Promise<void> {
    await pause(ms)
    this.#options.signal.throwIfAborted()
  }
}
