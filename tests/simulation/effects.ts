/*
 * Effects: what user code does outside the store, and the checks on it. A finished effect never runs
 * again; an unfinished one runs again only in another turn, and on the same facts.
 */
import type { FanLeaf, Leaf } from './programs.ts'
import { nameOf, rowNameOf } from './programs.ts'
import { acceptsEvent, type EventMatch } from '../../src/foundation/event_match.ts'
import { isReplyTo } from './entities.ts'
import type { Shadow } from './shadow.ts'
import type { ProcessTime } from './virtual_time.ts'

/** Where a body runs: a process, the run, and the turn that this process last claimed of it. */
export interface EffectScope {
  runId: string
  processId: string
  time: ProcessTime
  turnOf(): number | undefined
}

export interface EffectsOptions {
  shadow: Shadow
  fail(kind: string, text: string): void
  note(text: () => string): void
  asked(): void
  /** Transactions take no virtual time: the store has one connection. */
  hastyTransactions?: boolean
  /** A task is somebody's now; a callback address exists. Told again by every replay and attempt. */
  handedOver?(runId: string, leaf: TaskLeaf): void
  minted?(token: string): void
  /** A number in [0, 1): by chance, or by `text` alone. */
  roll(text: string): number
}

type LocalLeaf = Extract<Leaf, { t: 'local' }>
export type TaskLeaf = Extract<Leaf, { t: 'task' }>
type TransactionLeaf = Extract<Leaf, { t: 'transaction' }>

/** What a transaction did: counted once it commits. */
export interface TransactionHandle {
  effects: string[]
}

export class Effects {
  readonly #options: EffectsOptions
  readonly #basis = new Map<string, string>()
  readonly #starts = new Map<string, { count: number; done: boolean }>()
  readonly #committed = new Map<string, number>()
  readonly #undone = new Map<string, number>()

  constructor(options: EffectsOptions) {
    this.#options = options
  }

  /** The body asked for something. */
  asked(): void {
    this.#options.asked()
  }

  roll(text: string): number {
    return Math.floor(this.#options.roll(text) * 1000)
  }

  /** The body was answered: by its own node's result. */
  received(scope: EffectScope, leaf: Leaf, value: unknown): void {
    const expected = ANSWERS[leaf.t](leaf, scope.runId)
    const fits =
      typeof expected === 'function'
        ? expected(value)
        : expected instanceof RegExp
          ? expected.test(String(value))
          : value === expected
    if (!fits)
      this.#options.fail('mixed', `${scope.runId} ${nameOf(leaf)} was answered ${String(value)}`)
  }

  async local(scope: EffectScope, leaf: LocalLeaf, basis: string): Promise<string> {
    const start = this.#started(scope, leaf, basis, leaf.tries)
    if (leaf.ms > 0) await scope.time.sleep(leaf.ms)
    const key = `local ${leaf.id} ${start.count}`
    if (this.#options.roll(key) < (leaf.bad ? 0.6 : 0.01)) throw new Error(`local ${leaf.id}`)
    // An attempt that timed out is over, whatever its closure still does.
    if (scope.time.alive && leaf.timeoutMs === undefined) start.done = true
    return `L${leaf.id}.${this.roll(key)}`
  }

  /** The closure of a task. Somebody may answer before it returns. */
  async handOver(scope: EffectScope, leaf: TaskLeaf, basis: string): Promise<void> {
    const { handedOver, roll } = this.#options
    const start = this.#started(scope, leaf, basis, leaf.tries)
    const key = `hand over ${leaf.id} ${start.count}`
    const fails = roll(key) < (leaf.bad ? 0.6 : 0.01)
    // What throws afterwards may have reached somebody all the same.
    if (scope.time.alive && (!fails || roll(`told ${key}`) < 0.5)) handedOver?.(scope.runId, leaf)
    if (leaf.ms > 0) await scope.time.sleep(leaf.ms)
    if (fails) throw new Error(`task ${leaf.id}`)
    if (scope.time.alive) start.done = true
  }

  minted(scope: EffectScope, token: string): void {
    if (scope.time.alive) this.#options.minted?.(token)
  }

  async transaction(
    scope: EffectScope,
    leaf: TransactionLeaf,
    basis: string,
    tx: unknown
  ): Promise<string> {
    const start = this.#started(scope, leaf, basis, 1)
    if (leaf.ms > 0 && !this.#options.hastyTransactions) await scope.time.sleep(leaf.ms)
    ;(tx as TransactionHandle).effects.push(`${scope.runId} ${nameOf(leaf)}`)
    const key = `transaction ${leaf.id} ${start.count}`
    if (leaf.bad && this.#options.roll(key) < 0.6) throw new Error(`transaction ${leaf.id}`)
    return `T${leaf.id}.${this.roll(key)}`
  }

  /** The store committed what a transaction did. */
  committed(handle: TransactionHandle): void {
    for (const key of handle.effects) {
      const count = (this.#committed.get(key) ?? 0) + 1
      this.#committed.set(key, count)
      if (count > 1) this.#options.fail('txtwice', key)
    }
  }

  commits(runId: string, name: string): number {
    return this.#committed.get(`${runId} ${name}`) ?? 0
  }

  /** The undo of work done here. */
  async undo(scope: EffectScope, leaf: LocalLeaf | TaskLeaf): Promise<void> {
    const { runId } = scope
    const row = this.#options.shadow.named(runId, `compensate:${rowNameOf(leaf)}`)
    if (this.#isCurrent(scope) && row?.status === 'completed') {
      this.#options.fail('undorerun', `${runId} ${nameOf(leaf)}`)
    }
    await scope.time.sleep(5 + 30 * this.#options.roll(`undo ms ${leaf.id}`))
    const fails = leaf.undo === 'bad' && this.#options.roll(`undo ${leaf.id}`) < 0.5
    if (fails) throw new Error(`undo ${leaf.id}`)
    if (scope.time.alive) this.undone(runId, nameOf(leaf))
  }

  /** A step was undone, here or by a worker. */
  undone(runId: string, name: string): void {
    this.#options.note(() => `undone ${runId} ${name}`)
    const key = `${runId} ${name}`
    this.#undone.set(key, (this.#undone.get(key) ?? 0) + 1)
  }

  undoings(runId: string, name: string): number {
    return this.#undone.get(`${runId} ${name}`) ?? 0
  }

  #started(
    scope: EffectScope,
    leaf: LocalLeaf | TaskLeaf | TransactionLeaf,
    basis: string,
    tries: number
  ): { count: number; done: boolean } {
    const { shadow, fail, note } = this.#options
    const { runId } = scope
    const key = `${runId} ${nameOf(leaf)}`
    if (!scope.time.alive) return { count: 0, done: false }
    note(() => `${scope.processId} runs ${key}`)
    const turn = scope.turnOf()
    const current = this.#isCurrent(scope)
    const row = shadow.named(runId, rowNameOf(leaf))
    if (current && row?.status === 'completed') fail('rerun', `${key} is completed`)
    if (current && row?.status === 'failed' && row.attempts > 0) fail('rerun', `${key} has failed`)
    const known = this.#basis.get(key)
    if (current && known !== undefined && known !== basis) {
      fail('basis', `${key} ran again on other facts: ${known} · ${basis}`)
    }
    if (current) this.#basis.set(key, basis)
    const startKey = `${key} turn ${turn} by ${scope.processId}`
    const start = this.#starts.get(startKey) ?? { count: 0, done: false }
    this.#starts.set(startKey, start)
    start.count += 1
    if (start.done) fail('twice', `${startKey} ran after it succeeded`)
    if (start.count > tries) fail('twice', `${startKey} ran ${start.count} times of ${tries}`)
    return start
  }

  /** The process holds the run, and its last claim is the run's last one. */
  #isCurrent(scope: EffectScope): boolean {
    const run = this.#options.shadow.run(scope.runId)
    return run?.lockedBy === scope.processId && run.turns === scope.turnOf()
  }
}

/** What may answer a leaf: a pattern, a test, or the value itself. */
const ANSWERS: Record<Leaf['t'], (leaf: Leaf, runId: string) => unknown> = {
  step: (leaf) => new RegExp(`^S${leaf.id}\\.`),
  local: (leaf) => new RegExp(`^L${leaf.id}\\.`),
  transaction: (leaf) => new RegExp(`^T${leaf.id}\\.`),
  now: () => /^\d{13}$/,
  sideEffect: (leaf) => new RegExp(`^side:${leaf.id}\\.`),
  sleep: () => undefined,
  signal: (leaf) => (leaf.t === 'signal' ? new RegExp(`^${leaf.token}/`) : undefined),
  setEvent: () => undefined,
  patched: () => true,
  child: () => isBodyOutput,
  spawn: (leaf, runId) => `${runId}.x${leaf.id}`,
  join: () => isBodyOutput,
  event: (leaf) => (value: unknown) => leaf.t === 'event' && isEvent(leaf.event, leaf.match, value),
  update: (leaf, runId) => leaf.t === 'update' && startsWith(`update:${runId}:${leaf.update}/`),
  task: (leaf, runId) => startsWith(`K${runId} ${leaf.id}.`),
  webhook: (_leaf, runId) => startsWith(`wh:${runId}:`),
  breakpoint: () => undefined,
  attributes: () => undefined,
  callEntity: (leaf, runId) => (value: unknown) => isReplyTo(runId, leaf, value),
  signalEntity: () => undefined,
  fan: (leaf) => (value: unknown) => leaf.t === 'fan' && isJoined(leaf, value),
  pause: () => undefined,
}

const isBodyOutput = (value: unknown): boolean => Array.isArray((value as { log?: unknown })?.log)

const startsWith = (text: string) => (value: unknown) => String(value).startsWith(text)

/** What a published event of the world holds. */
export interface EventPayload {
  event: string
  nr: number
  k: number
  pad: string
}

const isEvent = (event: string, match: EventMatch | undefined, value: unknown): boolean =>
  (value as EventPayload).event === event && acceptsEvent(match, value)

/** One answer a member, in input order, each of its own. */
function isJoined({ id, size, program, mode }: FanLeaf, value: unknown): boolean {
  if (!Array.isArray(value) || value.length !== size) return false
  return value.every((member: unknown, index) => {
    if (mode === 'settled') {
      const end = member as { status: string; value?: unknown }
      if (end.status === 'rejected') return true
      return program ? isBodyOutput(end.value) : isMember(id, index, end.value)
    }
    return program ? isBodyOutput(member) : isMember(id, index, member)
  })
}

const isMember = (id: number, index: number, value: unknown): boolean =>
  String(value).startsWith(`S${id}.${index}.`)
