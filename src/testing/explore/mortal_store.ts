/*
 * What one process sees of the store: it numbers the writes of checkpoints, and dies at the one it is
 * told to, just before it reaches the data or just after. A dead process gets no answer ever again.
 */
import type { StoreTransaction } from '../../store/ports/transactions.ts'
import type { TurnCommit } from '../../store/ports/turn_commits.ts'
import type { StateStore } from '../../store/state_store.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { stepLabel } from './timeline.ts'

/** A write of checkpoints, counted from 0, and the side of it on which the process dies. */
export interface Boundary {
  write: number
  side: 'before' | 'after'
}

export interface MortalStoreOptions {
  base: StateStore
  /** Where to die; never, without it. */
  dieAt?: Boundary
  /** The process is dead; `where` says at which write. */
  onDeath(where: string): void
  /** A payload reached its waiter. */
  onDelivered(token: string): void
}

const SYNCHRONOUS = new Set(['withScope', 'onWake'])
const NEVER = new Promise<never>(() => {})

type Describe = (args: unknown[]) => string | undefined

const rowsOf = (rows: StepCheckpoint[]): string => rows.map(stepLabel).join(', ')

/** The members that write checkpoints, and what a call of them writes; undefined for nothing. */
const WRITES: Record<string, Describe> = {
  commitTurn: ([commit]) => describeCommit(commit as TurnCommit),
  saveCheckpoint: ([row]) => stepLabel(row as StepCheckpoint),
  saveCheckpointIfPending: ([row]) => stepLabel(row as StepCheckpoint),
  saveCheckpointsIfPending: ([rows]) => rowsOf(rows as StepCheckpoint[]),
  settleCheckpointsIfPending: ([settlements]) =>
    (settlements as { seq: number; status: string }[])
      .map(({ seq, status }) => `the result at position ${seq} (${status})`)
      .join(', '),
  deliverSignal: ([delivery]) => `the payload of signal "${(delivery as { token: string }).token}"`,
}

export class MortalStore {
  readonly store: StateStore
  /** Writes of checkpoints so far. */
  writes = 0
  /** Grows with every call and every answer. */
  activity = 0
  inFlight = 0
  #dead = false
  readonly #options: MortalStoreOptions

  constructor(options: MortalStoreOptions) {
    this.#options = options
    this.store = new Proxy(options.base, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function' || typeof name !== 'string') return member
        const call = (...args: unknown[]) => Reflect.apply(member, target, args) as unknown
        if (SYNCHRONOUS.has(name)) return call
        return (...args: unknown[]) => this.#call(name, args, call)
      },
    })
  }

  /** From now on no call returns, and none reaches the data. */
  die(): void {
    this.#dead = true
  }

  async #call(
    name: string,
    args: unknown[],
    call: (...args: unknown[]) => unknown
  ): Promise<unknown> {
    if (this.#dead) return NEVER
    this.activity += 1
    this.inFlight += 1
    try {
      if (name === 'transaction') return await this.#transact(args, call)
      const what = WRITES[name]?.(args)
      if (what === undefined) return await call(...args)
      const doomed = this.#next(what)
      if (doomed?.side === 'before') return await this.#perish(doomed)
      const answer = await call(...args)
      const delivered = (answer as { delivered?: boolean } | undefined)?.delivered
      if (delivered) this.#options.onDelivered((args[0] as { token: string }).token)
      return doomed ? await this.#perish(doomed) : answer
    } finally {
      this.activity += 1
      this.inFlight -= 1
    }
  }

  /** A transaction is one write: with its process it is rolled back, unless it had committed. */
  async #transact(args: unknown[], call: (...args: unknown[]) => unknown): Promise<unknown> {
    const work = args[0] as (tx: StoreTransaction) => Promise<unknown>
    let doomed: (Boundary & { what: string }) | undefined
    const rolledBack = new Error('the process of this transaction died')
    const watched = async (tx: StoreTransaction): Promise<unknown> => {
      let saved: StepCheckpoint | undefined
      const value = await work({
        raw: tx.raw,
        saveCheckpoint: (row, fence) => {
          saved = row
          return tx.saveCheckpoint(row, fence)
        },
      })
      if (this.#dead) throw rolledBack
      if (saved) doomed = this.#next(stepLabel(saved))
      if (doomed?.side === 'before') throw rolledBack
      return value
    }
    try {
      const answer = await call(watched)
      return doomed ? await this.#perish(doomed) : answer
    } catch (error) {
      if (error !== rolledBack) throw error
      return doomed ? this.#perish(doomed) : NEVER
    }
  }

  #next(what: string): (Boundary & { what: string }) | undefined {
    const { dieAt } = this.#options
    const write = this.writes++
    return dieAt?.write === write ? { ...dieAt, what } : undefined
  }

  #perish({ side, what }: Boundary & { what: string }): Promise<never> {
    this.inFlight -= 1
    this.#options.onDeath(`${side} the write of ${what}`)
    return NEVER
  }
}

function describeCommit(commit: TurnCommit): string | undefined {
  const { rows = [], waits = [], expiries = [], stamps = [], children = [], settle } = commit
  const parts = [
    ...rows.map(({ row }) => stepLabel(row)),
    ...children.map(({ id }) => `child run ${id}`),
    ...waits.map(({ waiter }) => `the wait for signal "${waiter.token}"`),
    ...expiries.map(({ row }) => stepLabel(row)),
    ...stamps.map(({ seq }) => `the order of position ${seq}`),
  ]
  if (settle) parts.push(`run ${commit.runId} as ${settle.status}`)
  return parts.length > 0 ? parts.join(', ') : undefined
}
