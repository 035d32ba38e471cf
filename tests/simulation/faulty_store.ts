/*
 * The store as one process sees it: an operation is sent, takes effect at one instant and is answered
 * later. It may fail before it applies, apply and lose its answer, or be answered with an error and
 * apply afterwards. Where SQL decides by a statement's snapshot (is somebody waiting? is something
 * buffered?) the decision is made earlier than the effect.
 */
import { deferred } from '../../src/foundation/deferred.ts'
import { OPTIONAL_MEMBERS, REQUIRED_MEMBERS } from '../../src/store/ports/members.ts'
import type { StoreTransaction } from '../../src/store/ports/transactions.ts'
import type {
  SignalDelivery,
  SignalOutcome,
  TurnCommit,
} from '../../src/store/ports/turn_commits.ts'
import type { ClaimedRun } from '../../src/store/ports/run_claims.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { BufferedEvent, StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { Backend } from './backend.ts'
import type { Effects, TransactionHandle } from './effects.ts'
import type { Random } from './random.ts'
import type { Operation, Shadow } from './shadow.ts'
import type { ProcessTime, VirtualTime } from './virtual_time.ts'

/** A store call whose outcome the caller does not know. */
export class StoreError extends Error {}

export interface StoreFaults {
  /** Share of operations for each kind of fault. */
  rate: number
  /** Share of operations that take very long. */
  slow: number
  slowMs: number
  /** False once the faults of a world are over. */
  active(): boolean
}

export interface StoreWorld {
  time: VirtualTime
  random: Random
  backend: Backend
  shadow: Shadow
  effects: Effects
  /** Absent: operations take effect and are answered at once. */
  faults?: StoreFaults
  note(text: () => string): void
  /** Told of every operation at its instant, before and after it. */
  before(by: Operation): void
  after(by: Operation, answer: unknown): void
  /** An effect that takes real time: the world waits for it. */
  wait(work: Promise<unknown>): void
}

/** A process as its store client sees it. */
export interface StoreClient {
  id: string
  time: ProcessTime
  claimed(run: ClaimedRun): void
}

type Fault = 'none' | 'before' | 'lost' | 'late'
type Apply = () => unknown

export function faultyStore(world: StoreWorld, client: StoreClient): StateStore {
  const store = new FaultyStore(world, client)
  const members: Record<string, unknown> = {}
  for (const name of [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS]) {
    if (typeof world.backend.store[name] !== 'function' || UNUSED.has(name)) continue
    members[name] = (...args: unknown[]) => store.call(name, args)
  }
  const special: Record<string, (...args: never[]) => unknown> = {
    transaction: (work: never) => store.transaction(work),
    bufferEvent: (event: BufferedEvent & { name: string }) => store.bufferEvent(event),
    commitTurn: (commit: TurnCommit) => store.commitTurn(commit),
    deliverSignal: (delivery: SignalDelivery) => store.deliverSignal(delivery),
    claimRun: async (claim: unknown) => {
      const claimed = (await store.call('claimRun', [claim])) as ClaimedRun | null
      if (claimed) client.claimed(claimed)
      return claimed
    },
    claimDueRuns: async (claim: unknown) => {
      const claimed = (await store.call('claimDueRuns', [claim])) as ClaimedRun[]
      for (const one of claimed) client.claimed(one)
      return claimed
    },
  }
  for (const [name, call] of Object.entries(special)) if (name in members) members[name] = call
  return members as unknown as StateStore
}

/** Members that this simulation does not exercise. */
const UNUSED = new Set(['withScope', 'ensureSchema', 'close', 'notifyWake', 'onWake'])

class FaultyStore {
  readonly #world: StoreWorld
  readonly #client: StoreClient

  constructor(world: StoreWorld, client: StoreClient) {
    this.#world = world
    this.#client = client
  }

  call(name: string, given: unknown[]): Promise<unknown> {
    const args = copied(given)
    const { backend } = this.#world
    return this.#send({ name, args }, () => backend.call(name, args))
  }

  /** Ids are random, and decide between events of one millisecond: here they only count. */
  bufferEvent(event: BufferedEvent & { name: string }): Promise<unknown> {
    const id = `ev${this.#world.time.nextId()}`
    return this.call('bufferEvent', [{ ...event, id }])
  }

  /** What is buffered for the waits of a commit is decided by its snapshot. */
  commitTurn(given: TurnCommit): Promise<unknown> {
    const commit = copied(given)
    const { backend, faults } = this.#world
    const tokens = [...(commit.waits ?? []), ...(commit.settle?.looks ?? [])].map(
      ({ waiter }) => waiter.token
    )
    const operation = { name: 'commitTurn', args: [commit] }
    if (!faults || tokens.length === 0 || !backend.hideBuffered) {
      return this.#send(operation, () => backend.call('commitTurn', [commit]))
    }
    let unseen: string[] = []
    return this.#send(
      operation,
      () => {
        const show = backend.hideBuffered!(unseen)
        const verdict = backend.call('commitTurn', [commit])
        show()
        return verdict
      },
      {
        snapshot: () => {
          unseen = tokens.filter((token) => !backend.hasBuffered!(token))
        },
      }
    )
  }

  /** Whether somebody waits is decided by the snapshot. */
  deliverSignal(given: SignalDelivery): Promise<unknown> {
    const delivery = copied(given)
    const { backend, faults } = this.#world
    const operation = { name: 'deliverSignal', args: [delivery] }
    if (!faults || !backend.hasWaiter) {
      return this.#send(operation, () => backend.call('deliverSignal', [delivery]))
    }
    let waited = false
    return this.#send(
      operation,
      () => {
        if (waited) return backend.call('deliverSignal', [delivery])
        if (!delivery.buffer) return Promise.resolve({ delivered: false, buffered: false })
        const buffered = backend.call('bufferSignal', [delivery.token, delivery.payload])
        const missed: SignalOutcome = { delivered: false, buffered: true }
        return buffered.then(() => missed)
      },
      {
        snapshot: () => {
          waited = backend.hasWaiter!(delivery.token)
        },
      }
    )
  }

  /** User code runs between the begin and the commit, which is an operation of its own. */
  async transaction(work: (tx: StoreTransaction) => Promise<unknown>): Promise<unknown> {
    const { backend } = this.#world
    const handle: TransactionHandle = { effects: [] }
    if (!backend.synchronous) return this.#transactAtOnce(work, handle)
    await this.#send({ name: 'begin', args: [] }, () => undefined)
    return new Promise((resolve, reject) => this.#transact(work, handle, resolve, reject))
  }

  /** One connection: nothing else may wait for a transaction that waits for virtual time. */
  #transactAtOnce(
    work: (tx: StoreTransaction) => Promise<unknown>,
    handle: TransactionHandle
  ): Promise<unknown> {
    const { backend, effects } = this.#world
    const rows: StepCheckpoint[] = []
    const args: unknown[] = [rows]
    return this.#send({ name: 'commit', args }, async () => {
      const value = await backend.store.transaction!((tx) =>
        work({
          raw: handle,
          saveCheckpoint: (row, fence) => {
            rows.push(row)
            args[1] = fence
            return tx.saveCheckpoint(row, fence)
          },
        })
      )
      effects.committed(handle)
      return value
    })
  }

  #transact(
    work: (tx: StoreTransaction) => Promise<unknown>,
    handle: TransactionHandle,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void
  ): void {
    const { backend, effects } = this.#world
    const rows: StepCheckpoint[] = []
    const commit: Operation = { process: this.#client.id, name: 'commit', args: [rows] }
    let sent = false
    const ended: Promise<void> = backend.store.transaction!(async (tx) => {
      const value = await work({
        raw: handle,
        saveCheckpoint: (given, fence) => {
          const row = copied(given)
          rows.push(row)
          commit.args = [rows, fence]
          const saving = { name: 'tx.saveCheckpoint', args: [row, fence] }
          return this.#send(saving, () => tx.saveCheckpoint(row, fence)) as Promise<void>
        },
      })
      const gate = deferred<void>()
      const take = () => {
        this.#world.before(commit)
        gate.resolve()
        return ended.then(() => value)
      }
      const refused = () => gate.reject(new StoreError('the transaction is rolled back'))
      sent = true
      this.#send(commit, take, { refused, unseen: true }).then(resolve, reject)
      await gate.promise
    })
    ended.then(
      () => {
        effects.committed(handle)
        void this.#seen(commit, undefined)
      },
      (error: unknown) => {
        if (!sent && this.#client.time.alive) reject(error)
      }
    )
  }

  /**
   * Sends an operation. `snapshot` runs half-way to its instant; `refused` when it never takes effect;
   * `unseen`: the caller looks at what it changed.
   */
  #send(
    { name, args }: { name: string; args: unknown[] },
    apply: Apply,
    options: { snapshot?: () => void; refused?: () => void; unseen?: boolean } = {}
  ): Promise<unknown> {
    const { time, random, faults, note } = this.#world
    const { snapshot, refused } = options
    const by: Operation = { process: this.#client.id, name, args }
    const effect = options.unseen ? apply : () => this.#effect(by, apply)
    time.activity++
    if (!this.#client.time.alive) return new Promise(() => {})
    if (!faults) {
      snapshot?.()
      return Promise.resolve(effect())
    }
    const slow = random() < faults.slow ? faults.slowMs * random() : 0
    const at = 2 + 20 * random() + slow
    const back = 2 + 10 * random()
    const fault = this.#fault()
    if (fault !== 'none') note(() => `${by.process} ${name} fault: ${fault}`)
    if (snapshot) time.after(at / 2, snapshot)
    return new Promise((resolve, reject) => {
      const say = (answer: () => void) =>
        time.after(back, () => {
          time.activity++
          if (this.#client.time.alive) answer()
        })
      if (fault === 'before') {
        time.after(at, () => {
          refused?.()
          say(() => reject(new StoreError(`${name}: nothing was done`)))
        })
        return
      }
      if (fault === 'late') {
        time.after(at, () => say(() => reject(new StoreError(`${name}: it comes late`))))
      }
      time.after(fault === 'late' ? at + 400 * random() : at, () => {
        // A process that died may have died before the packet left.
        if (!this.#client.time.alive && random() < 0.3) return refused?.()
        const done = Promise.resolve(effect())
        if (fault === 'lost') {
          done.catch(() => {})
          say(() => reject(new StoreError(`${name}: the answer is lost`)))
        } else if (fault === 'none') {
          done.then(
            (value) => say(() => resolve(value)),
            (error: unknown) => say(() => reject(error as Error))
          )
        } else done.catch(() => {})
      })
    })
  }

  /** The instant of an operation: its effect, and a look at what it changed. */
  #effect(by: Operation, apply: Apply): unknown {
    this.#world.before(by)
    const answer = apply()
    if (!this.#world.backend.synchronous && answer instanceof Promise) {
      const seen = answer.then(
        async (value) => {
          await this.#seen(by, value)
          return value
        },
        async (error) => {
          await this.#seen(by, error)
          throw error
        }
      )
      this.#world.wait(seen)
      return seen
    }
    void this.#seen(by, answer)
    return answer
  }

  #seen(by: Operation, answer: unknown): void | Promise<void> {
    if (READ.test(by.name) || (REFUSABLE.test(by.name) && isRefusal(answer)))
      return this.#world.after(by, answer)
    const looking = this.#world.shadow.look(by)
    if (looking instanceof Promise) return looking.then(() => this.#world.after(by, answer))
    this.#world.after(by, answer)
  }

  #fault(): Fault {
    const { random, faults } = this.#world
    if (!faults?.active()) return 'none'
    const k = random() / faults.rate
    return k < 1 ? 'before' : k < 2 ? 'lost' : k < 3 ? 'late' : 'none'
  }
}

/** Operations that change nothing. */
const READ = /^(get|list|has|count|query|settleTargets)/

/** Operations whose answer tells that they changed nothing, where it is known at once. */
const REFUSABLE = /^(claimDueRuns|claimRun|tryLockRun|updateRunIf)$/

const isRefusal = (answer: unknown): boolean =>
  answer === null || answer === false || (Array.isArray(answer) && answer.length === 0)

/** What was sent, whatever the sender does with it afterwards. */
function copied<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value
  if (value instanceof Date) return new Date(value) as T
  if (Array.isArray(value)) return value.map(copied) as T
  const copy: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) copy[key] = copied(member)
  return copy as T
}
