/*
 * A store between an engine and its data that a test controls: it dies with the engine that is crashed,
 * refuses connections, holds or watches single calls. The data below it lives on.
 */
import { deferred } from '../../src/foundation/deferred.ts'
import type { StoreTransaction } from '../../src/store/ports/transactions.ts'
import type { StateStore } from '../../src/store/state_store.ts'

export type Member = Exclude<keyof StateStore, 'withScope'>
type Call = (...args: never[]) => unknown
/** Stands around one call of a member; `proceed` makes the call. */
export type Hook = (proceed: () => Promise<unknown>, args: unknown[]) => Promise<unknown>

/** Just before or just after a call, the `index`-th since the watch began (counting moments, from 0). */
export interface Moment {
  index: number
  member: string
  when: 'before' | 'after'
}

const NEVER = new Promise<never>(() => {})

export class StoreGate {
  readonly store: StateStore
  /** Calls that reached the data and have not returned. */
  inFlight = 0
  /** Calls of each member so far. */
  readonly calls = new Map<string, number>()
  readonly #hooks = new Map<string, Hook>()
  readonly #death = deferred<never>()
  #crashed = false
  #refusal?: Error
  #watcher?: (moment: Moment) => Promise<void>

  constructor(base: StateStore) {
    this.store = new Proxy(base, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function' || typeof name !== 'string') return member
        if (name === 'withScope') return member.bind(target)
        return (...args: never[]) => this.#call(name, args, member.bind(target) as Call)
      },
    })
  }

  /** From now on nothing that is called returns, and nothing called reaches the data. */
  crash(): void {
    this.#crashed = true
    this.#death.reject(new Error('the process of this transaction died'))
  }

  get crashed(): boolean {
    return this.#crashed
  }

  /** Every call rejects with this until `up()`. */
  down(error: Error = new Error('connect ECONNREFUSED 127.0.0.1:5432')): void {
    this.#refusal = error
  }

  up(): void {
    this.#refusal = undefined
  }

  /** Stands around the calls of a member; the answer takes it away. */
  around(member: Member, hook: Hook): () => void {
    this.#hooks.set(member, hook)
    return () => void (this.#hooks.get(member) === hook && this.#hooks.delete(member))
  }

  /** The same for the next call only. */
  once(member: Member, hook: Hook): void {
    const remove = this.around(member, (proceed, args) => {
      remove()
      return hook(proceed, args)
    })
  }

  /** Calls back before and after every call and waits for the answer; returns how to stop. */
  watch(act: (moment: Moment) => Promise<void>): () => void {
    let index = 0
    const watcher = async (moment: Moment) => act({ ...moment, index: index++ })
    this.#watcher = watcher
    return () => {
      if (this.#watcher === watcher) this.#watcher = undefined
    }
  }

  async #call(name: string, args: never[], member: Call): Promise<unknown> {
    if (this.#crashed) return NEVER
    if (this.#refusal) throw this.#refusal
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1)
    const hook = this.#hooks.get(name)
    const proceed = () => this.#reach(name, args, member)
    try {
      await this.#watcher?.({ index: 0, member: name, when: 'before' })
      const answer = await (hook ? hook(proceed, args) : proceed())
      await this.#watcher?.({ index: 0, member: name, when: 'after' })
      return this.#crashed ? await NEVER : answer
    } catch (error) {
      if (this.#crashed) return NEVER
      throw error
    }
  }

  async #reach(name: string, args: never[], member: Call): Promise<unknown> {
    if (this.#crashed) return NEVER
    this.inFlight += 1
    try {
      return await (name === 'transaction' ? this.#transact(args[0], member) : member(...args))
    } finally {
      this.inFlight -= 1
    }
  }

  /** A transaction whose process dies is rolled back. */
  #transact(work: (tx: StoreTransaction) => Promise<unknown>, member: Call): unknown {
    const dying = (tx: StoreTransaction) =>
      Promise.race([work(tx), this.#death.promise]).then((answer) =>
        this.#crashed ? this.#death.promise : answer
      )
    return member(dying as never)
  }
}
