/*
 * Payloads: what the world's clients sent, how often, and where it is in the end. A payload that was
 * accepted is in one place; one that was sent again, in no more places than it was sent.
 */
import { storableToken } from '../../src/foundation/ids.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { EventPayload } from './effects.ts'
import { EVENTS } from './programs.ts'
import type { Operation, Shadow } from './shadow.ts'
import type { StateStore } from '../../src/store/state_store.ts'

export interface SentPayload {
  token: string
  attempts: number
  /** Calls that resolved: each left a copy somewhere. */
  accepted: number
}

interface Published {
  event: string
  accepted: boolean
  /** Copies put into the buffer, taken from it, and handed to whoever waited. */
  buffered: number
  claimed: number
  delivered: number
}

export interface PayloadsWorld {
  shadow: Shadow
  store: StateStore
  fail(kind: string, text: string): void
}

export class Payloads {
  readonly #sent = new Map<string, SentPayload>()
  readonly #published: Published[] = []

  get count(): number {
    return this.#sent.size
  }

  /** The books of one payload. */
  sent(payload: string, token: string): SentPayload {
    const known = this.#sent.get(payload)
    if (known) return known
    const entry: SentPayload = { token, attempts: 0, accepted: 0 }
    this.#sent.set(payload, entry)
    return entry
  }

  /** Something was accepted for this token. */
  hasAccepted(token: string): boolean {
    return [...this.#sent.values()].some((entry) => entry.token === token && entry.accepted > 0)
  }

  publishing(event: string): number {
    const none = { accepted: false, buffered: 0, claimed: 0, delivered: 0 }
    return this.#published.push({ event, ...none }) - 1
  }

  published(nr: number): void {
    this.#published[nr].accepted = true
  }

  /** An operation took effect. */
  after({ name, args }: Operation, answer: unknown): void {
    if (name !== 'bufferEvent' || answer instanceof Error) return
    const [{ payload }] = args as [{ payload: EventPayload }]
    this.#published[payload.nr].buffered += 1
  }

  /** A row was completed. */
  completed({ name, output }: StepCheckpoint, by: Operation): void {
    if (!name.startsWith('signal:event:')) return
    const published = this.#published[(output as EventPayload).nr]
    if (by.name === 'deliverSignal') published.delivered += 1
    else published.claimed += 1
  }

  async verify(world: PayloadsWorld): Promise<void> {
    await this.#verifySent(world)
    await this.#verifyPublished(world)
  }

  async #verifySent({ shadow, store, fail }: PayloadsWorld): Promise<void> {
    const places = new Map<string, string[]>()
    const put = (key: string, where: string) => {
      places.set(key, [...(places.get(key) ?? []), where])
    }
    const tokens = new Set([...this.#sent.values()].map(({ token }) => storableToken(token)))
    for (const token of tokens) {
      for (;;) {
        const taken = await store.takeBufferedSignal(token)
        if (!taken) break
        put(keyOf(taken.payload), 'the buffer')
      }
    }
    for (const run of shadow.runs()) {
      for (const row of shadow.rows(run.id)) {
        if (row.kind === 'signal' && row.status === 'completed') {
          put(keyOf(row.output), `${run.id}#${row.seq}`)
        }
      }
    }
    for (const [payload, { attempts, accepted }] of this.#sent) {
      const found = places.get(payload) ?? []
      if (found.length > attempts) fail('payload', `${payload}, sent ${attempts} ×, is in ${found}`)
      if (found.length < accepted) fail('payload', `${payload} is lost`)
    }
  }

  /** A copy in the buffer goes to one wait or stays; an event that met nobody has such a copy. */
  async #verifyPublished({ store, fail }: PayloadsWorld): Promise<void> {
    const left = new Map<number, number>()
    for (const event of EVENTS) {
      for (const { payload } of await store.listBufferedEvents(event, 1000)) {
        const { nr } = payload as EventPayload
        left.set(nr, (left.get(nr) ?? 0) + 1)
      }
    }
    for (const [
      nr,
      { event, accepted, buffered, claimed, delivered },
    ] of this.#published.entries()) {
      const kept = left.get(nr) ?? 0
      if (claimed + kept !== buffered) {
        fail('event', `${event} ${nr}: buffered ${buffered} ×, ${claimed} taken, ${kept} left`)
      }
      if (accepted && buffered + delivered === 0) fail('event', `${event} ${nr} is lost`)
    }
  }
}

/** A report's payload is what it tells. */
function keyOf(payload: unknown): string {
  if (typeof payload !== 'object' || payload === null) return String(payload)
  const { ok, ...end } = payload as CompletionEnvelope
  if (ok === undefined) return ''
  return String('value' in end ? end.value : end.error)
}
