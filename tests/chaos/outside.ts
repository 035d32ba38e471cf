/*
 * The callers of the fleet: they ask any member that lives, and ask another one until a call has succeeded.
 * A call whose outcome they did not learn is repeated, as a client of a real service does.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { MemberProcess } from './member_process.ts'
import type { Verb } from './protocol.ts'

const RETRY_MS = 150
/** Longer than any outage lasts. */
const ANSWER_MS = 60_000

/** What a call is about: an event is known by its id, everything else by its first argument. */
const idOf = (verb: Verb, args: unknown[]): string =>
  verb === 'publishEvent' ? (args[2] as { id: string }).id : String(args[0])

export interface OutsideOptions {
  members: () => MemberProcess[]
  random: () => number
  /** Ends callers that would never succeed. */
  signal: AbortSignal
}

export class Outside {
  readonly #options: OutsideOptions
  /** What calls were about that were repeated after an unknown outcome: they may have arrived twice. */
  readonly repeated = new Set<string>()
  calls = 0
  refusals = 0
  /** Calls that a living member left without an answer. */
  readonly problems: string[] = []

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
          return await this.#answered(member, verb, args)
        } catch (error) {
          if ((error as Error).name === 'ConcurrencyLimitError') this.refusals += 1
          else this.repeated.add(idOf(verb, args))
        }
      }
      await pause(RETRY_MS)
    }
  }

  /** Rejects as a call of unknown outcome does when no answer comes. */
  async #answered(member: MemberProcess, verb: Verb, args: unknown[]): Promise<unknown> {
    const heard = new AbortController()
    const late = pause(ANSWER_MS, undefined, { signal: heard.signal }).then(() => {
      const call = `${verb} ${JSON.stringify(args)}`
      this.problems.push(`${member.options.name} did not answer ${call}: ${member.output}`)
      throw new Error('no answer')
    })
    try {
      return await Promise.race([member.call(verb, args), late])
    } finally {
      heard.abort()
      late.catch(() => {})
    }
  }

  async pause(ms: number): Promise<void> {
    await pause(ms)
    this.#options.signal.throwIfAborted()
  }
}
