/*
 * Boundaries: the moments before and after every write that an engine makes. A store wrapped here says
 * each of them aloud and, when one is the target, stops there for good: nothing called from then on
 * reaches the data, nothing returns. The parent then kills the process, so the crash lands exactly there.
 */
import type { StoreTransaction } from '../../src/store/ports/transactions.ts'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { Target } from './target.ts'

type Call = (...args: never[]) => Promise<unknown>

interface Write {
  /** Names the write, alike in every execution of the same workflow. */
  label(args: never[]): string
  /** False for a call that turned out to write nothing. */
  happened?(answer: unknown): boolean
  /** Only known to be a write when it has happened. */
  silentBefore?: boolean
}

const some = (answer: unknown): boolean => Array.isArray(answer) && answer.length > 0
const said = (answer: unknown): boolean => answer !== false && answer !== null

const WRITES: Record<string, Write> = {
  createRun: { label: () => 'insert of the run' },
  updateRunIf: {
    label: (args) => `update of the run: ${Object.keys(args[2]).sort().join(' ')}`,
    happened: said,
  },
  claimRun: { label: () => 'claim', happened: said },
  claimDueRuns: {
    label: ([claim]) => `claim of what is ${(claim as { kind: string }).kind}`,
    happened: some,
    silentBefore: true,
  },
  tryLockRun: { label: () => 'lock for recovery', happened: said },
  commitTurn: { label: ([commit]) => labelOfCommit(commit) },
  settleCheckpointsIfPending: {
    label: ([settlements]) =>
      `results of ${(settlements as { seq: number }[]).map(({ seq }) => seq).join(' ')}`,
  },
  deliverSignal: { label: () => 'delivery of the signal' },
  saveCheckpointIfPending: { label: () => 'save of a pending row' },
}

/** One commit in words: rows as `position:status`, waits, stamps and the status it settles. */
function labelOfCommit({ owner, rows, waits, expiries, stamps, settle }: TurnCommit): string {
  const parts = [owner.endsWith('/recovery') ? 'commit of recovery' : 'commit']
  for (const { row } of rows ?? []) parts.push(`${row.seq}:${row.status}`)
  for (const { row } of waits ?? []) parts.push(`${row.seq}:waits`)
  for (const { row } of expiries ?? []) parts.push(`${row.seq}:expires`)
  for (const { seq } of stamps ?? []) parts.push(`${seq}:stamp`)
  if (settle) parts.push(`→ ${settle.status}`)
  return parts.join(' ')
}

const NEVER = new Promise<never>(() => {})

export interface BoundariesOptions {
  base: StateStore
  target?: string
  /** What amounts to the target will do, this far off; see `target.ts`. */
  slack?: number
  announce: (label: string) => void
  onHeld: () => void
  /** A commit that registers waits has landed. */
  onWaits: (runId: string) => void
}

export class Boundaries {
  readonly store: StateStore
  readonly #options: BoundariesOptions
  readonly #target: Target
  readonly #seen = new Map<string, number>()
  #held = false
  /** Calls that reached the data and have not returned. */
  inFlight = 0

  constructor(options: BoundariesOptions) {
    this.#options = options
    this.#target = new Target(options.target, options.slack ?? 0)
    this.store = new Proxy(options.base, {
      get: (base, name) => {
        const member = Reflect.get(base, name) as unknown
        if (typeof member !== 'function' || typeof name !== 'string') return member
        const counted: Call = async (...args) => {
          this.inFlight += 1
          try {
            return await (member.bind(base) as Call)(...args)
          } finally {
            this.inFlight -= 1
          }
        }
        return (...args: never[]) => this.#call(name, counted, args)
      },
    })
  }

  /** The target was reached: for the data this engine is dead. */
  get held(): boolean {
    return this.#held
  }

  async #call(name: string, member: Call, args: never[]): Promise<unknown> {
    if (this.#held) return NEVER
    if (name === 'transaction') return this.#transact(member, args)
    const write = WRITES[name]
    let label = write && !write.silentBefore ? this.#numbered(write.label(args)) : undefined
    if (label) await this.#cross(`before ${label}`)
    const answer = await member(...args)
    if (this.#held) return NEVER
    if (write && (write.happened?.(answer) ?? true)) {
      label ??= this.#numbered(write.label(args))
      await this.#cross(`after ${label}`)
    }
    if (name === 'commitTurn') this.#tellWaits(args[0])
    return answer
  }

  /** A transaction has two more boundaries inside: what is written there is gone with the process. */
  async #transact(member: Call, [work]: never[]): Promise<unknown> {
    const label = this.#numbered('transaction')
    await this.#cross(`before ${label}`)
    const answer = await member((async (tx: StoreTransaction) => {
      const watched: StoreTransaction = {
        raw: tx.raw,
        saveCheckpoint: async (...args) => {
          await this.#cross(`before the record inside ${label}`)
          await tx.saveCheckpoint(...args)
          await this.#cross(`after the record inside ${label}`)
        },
      }
      return (work as (tx: StoreTransaction) => Promise<unknown>)(watched)
    }) as never)
    await this.#cross(`after ${label}`)
    return answer
  }

  #numbered(label: string): string {
    const nth = (this.#seen.get(label) ?? 0) + 1
    this.#seen.set(label, nth)
    return nth === 1 ? label : `${label} (${nth})`
  }

  async #cross(label: string): Promise<void> {
    if (this.#held) return NEVER
    this.#options.announce(label)
    if (!this.#target.isAt(label)) return
    this.#held = true
    this.#options.onHeld()
    return NEVER
  }

  #tellWaits(commit: TurnCommit): void {
    if (commit.waits && commit.waits.length > 0) this.#options.onWaits(commit.runId)
  }
}
