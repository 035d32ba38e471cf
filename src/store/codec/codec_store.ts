/*
 * The codec store: any store, with payloads encoded before they reach it and decoded after. It decides
 * nothing itself, so that every conditional write stays the one of the store behind it; payloads are encoded
 * before such a write begins.
 */
import { bestEffort } from '../../foundation/failure.ts'
import type { ClaimedRun } from '../ports/run_claims.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import {
  OPTIONAL_MEMBERS,
  REQUIRED_MEMBERS,
  SCHEDULE_MEMBERS,
  type OptionalMember,
  type RequiredMember,
} from '../ports/members.ts'
import { isStandIn, markStandIn } from '../ports/stand_in.ts'
import type { LeaseFence, StoreTransaction } from '../ports/transactions.ts'
import type { OptionalRoles, RequiredRoles, StateStore } from '../state_store.ts'
import { convert } from './convert.ts'
import { type CodecStoreOptions, Payloads, type PayloadCodec, type Place } from './payload_codec.ts'
import { CHECKPOINT, type Shape } from './shapes.ts'
import { standIns, type StandIns } from './stand_ins.ts'
import { TREATMENTS, type Treatment } from './treatments.ts'

export type { CodecStoreOptions, PayloadCodec } from './payload_codec.ts'

type Member = RequiredMember | OptionalMember
type Call = (...args: unknown[]) => unknown
type Members = RequiredRoles & StandIns & Partial<Omit<OptionalRoles, keyof StandIns>>

/** Groups that are there together or not at all. */
const GROUPS: OptionalMember[][] = [
  [...SCHEDULE_MEMBERS],
  ['checkpointStats', 'queryCheckpoints'],
  ['notifyWake', 'onWake'],
]

/** Members are assigned when the inner store is known, so none is declared in the class. */
const Declared = class {} as new () => Members

/**
 * Wraps a store: payloads are encoded on their way in and decoded on their way out. Ids, statuses, names,
 * tags, search attributes, tokens and times stay readable. Optional members are there when `inner` has
 * them; a few are always there and do without. A payload that cannot be encoded or decoded rejects the call
 * with `PayloadCodecError`.
 *
 * @example
 * new CodecStateStore(new InMemoryStateStore(), aesCodec, { coverage: 'extended' })
 */
export class CodecStateStore extends Declared {
  readonly #inner: StateStore
  readonly #payloads: Payloads
  readonly #again: (inner: StateStore) => CodecStateStore

  constructor(inner: StateStore, codec: PayloadCodec, options: CodecStoreOptions = {}) {
    super()
    this.#inner = inner
    this.#payloads = new Payloads(codec, options)
    this.#again = (view) => new CodecStateStore(view, codec, options)
    const own = this as unknown as Record<string, Call>
    const without = standIns(inner) as unknown as Record<string, Call>
    for (const name of REQUIRED_MEMBERS) own[name] ??= this.#bind(name, forward(inner, name))
    for (const name of OPTIONAL_MEMBERS) {
      if (name in own) continue
      if (has(inner, name)) own[name] = this.#bind(name, forward(inner, name))
      else if (name in without) own[name] = markStandIn(this.#bind(name, without[name]))
    }
  }

  #bind(name: Member, call: Call): Call {
    const treatment = TREATMENTS[name]
    switch (treatment.special) {
      case 'transaction':
        return (work) => this.#transaction(call, work as (tx: StoreTransaction) => Promise<unknown>)
      case 'scope':
        return (scope) => this.#again(call(scope) as StateStore)
      case 'take':
        return (token) => this.#take(call, token as string)
      case 'work':
        return async (...args) => this.#decode(treatment.answer, await call(...args), {}, () => {})
      case 'claim':
        return async (...args) => this.#claimed(await call(...args))
    }
    const { args: shapes, answer } = treatment
    if (!shapes && !answer) return call
    return async (...args) => {
      const place = placeOf(args, treatment)
      const given = shapes ? await this.#encode(shapes, args, place) : args
      const answered = await call(...given)
      return answer ? this.#decode(answer, answered, place) : answered
    }
  }

  async #encode(shapes: Shape[], args: unknown[], place: Place): Promise<unknown[]> {
    const conversion = { payloads: this.#payloads, act: 'encode' } as const
    const encoded = args.map((arg, i) => convert(shapes[i] ?? 'clear', arg, conversion, place))
    return Promise.all(encoded)
  }

  #decode(
    shape: Shape = 'clear',
    value: unknown,
    place: Place = {},
    onFailure?: (error: unknown) => void
  ): Promise<unknown> {
    return convert(shape, value, { payloads: this.#payloads, act: 'decode', onFailure }, place)
  }

  /** The claim stands: the run is held, and what cannot be read is for its holder to judge. */
  async #claimed(answered: unknown): Promise<unknown> {
    if (Array.isArray(answered)) return Promise.all(answered.map((one) => this.#claimed(one)))
    let unreadable: unknown
    const claimed = await this.#decode(TREATMENTS.claimRun.answer, answered, {}, (error) => {
      unreadable ??= error
    })
    return unreadable ? { ...(claimed as ClaimedRun), unreadable } : claimed
  }

  async #take(call: Call, token: string): Promise<unknown> {
    const taken = (await call(token)) as { payload: unknown } | null
    try {
      const place = { of: `signal "${token}"` }
      return await this.#decode(TREATMENTS.takeBufferedSignal.answer, taken, place)
    } catch (error) {
      await bestEffort(
        'the store is failing; the payload may be lost with it',
        this.#inner.bufferSignal(token, taken!.payload)
      )
      throw error
    }
  }

  #transaction(call: Call, work: (tx: StoreTransaction) => Promise<unknown>): unknown {
    return call((tx: StoreTransaction) =>
      work({
        raw: tx.raw,
        saveCheckpoint: async (checkpoint: StepCheckpoint, fence?: LeaseFence) => {
          const [encoded] = await this.#encode([CHECKPOINT], [checkpoint], {})
          return tx.saveCheckpoint(encoded as StepCheckpoint, fence)
        },
      })
    )
  }
}

/** Calls the member of the inner store as it is when it is called. */
const forward =
  (inner: StateStore, name: Member): Call =>
  (...args) =>
    Reflect.apply(inner[name] as Call, inner, args)

function has(inner: StateStore, name: OptionalMember): boolean {
  const group = GROUPS.find((each) => each.includes(name)) ?? [name]
  return group.every((one) => typeof inner[one] === 'function' && !isStandIn(inner[one]))
}

/** Whose payloads a call is about, as far as its plain arguments tell. */
function placeOf([first]: unknown[], { args, answer }: Treatment): Place {
  if (typeof first !== 'string') return {}
  const isToken = args?.includes('payload') && !answer
  return isToken ? { of: `signal "${first}"` } : { runId: first }
}
