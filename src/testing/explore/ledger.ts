/*
 * The ledger of one exploration run: which step bodies began, in which life of the process, what they
 * answered, and which effects they called. It answers for the first run what every later one must give
 * again, and counts against it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'

/** A step body: where it runs and what it is. Undos have negative positions. */
export interface StepPlace {
  runId: string
  seq: number
  name: string
}

/** One thing that happened `life` times before a crash, or after. */
interface Entry extends StepPlace {
  /** What happened: the step body itself, or an effect that it called. */
  what: string
  life: number
}

/** More than at-least-once allows. */
export interface Excess {
  runId: string
  what: string
  step: string
  times: number
  allowed: number
}

const places = new AsyncLocalStorage<StepPlace & { life: number }>()

/** The step body on this async path. */
export const currentPlace = (): (StepPlace & { life: number }) | undefined => places.getStore()

export class Ledger {
  readonly #entries: Entry[] = []
  readonly #answers = new Map<string, unknown>()
  readonly #pinned: ReadonlyMap<string, unknown>
  /** Positions that were settled when the process died. */
  #durable = new Set<string>()
  /** The life of the process that executes now. */
  life = 1
  /** Bodies that run in this life. */
  running = 0
  /** Grows with everything that begins or ends. */
  activity = 0

  /** `first`: the ledger of the first run, whose answers are given again. */
  constructor(first?: Ledger) {
    this.#pinned = first ? first.#answers : new Map()
  }

  /** Runs a step body and answers what the first run answered at this place, if it did. */
  async execute(place: StepPlace, body: () => unknown): Promise<unknown> {
    const { life } = this
    this.#entries.push({ ...place, life, what: BODY })
    this.running += 1
    this.activity += 1
    try {
      const value = await places.run({ ...place, life }, async () => body())
      const key = keyOf(place)
      const answer = this.#pinned.has(key) ? this.#pinned.get(key) : value
      this.#answers.set(key, answer)
      return answer
    } finally {
      this.activity += 1
      if (life === this.life) this.running -= 1
    }
  }

  /** A step body called an effect. */
  called(place: StepPlace & { life: number }, effect: string): void {
    this.#entries.push({ ...place, what: effect })
  }

  /** The process died while these rows were stored. */
  died(rows: readonly StepCheckpoint[]): void {
    this.life += 1
    this.running = 0
    const settled = rows.filter(({ status }) => isSettledStatus(status))
    this.#durable = new Set(settled.map(({ runId, seq }) => `${runId} ${seq}`))
  }

  /** How often each body and effect happened. */
  #counts(entries: Entry[]): Map<string, { entry: Entry; times: number }> {
    const counts = new Map<string, { entry: Entry; times: number }>()
    for (const entry of entries) {
      const key = JSON.stringify([entry.runId, entry.name, entry.what])
      const count = counts.get(key) ?? { entry, times: 0 }
      count.times += 1
      counts.set(key, count)
    }
    return counts
  }

  /**
   * What happened more often than in `first`, less what the crash interrupted: an execution whose result
   * was not durable when the process died may be repeated, no other.
   */
  excessOver(first: Ledger): Excess[] {
    const usual = first.#counts(first.#entries)
    const cutShort = this.#counts(
      this.#entries.filter(
        ({ life, runId, seq }) => life < this.life && !this.#durable.has(`${runId} ${seq}`)
      )
    )
    return [...this.#counts(this.#entries)].flatMap(([key, { entry, times }]) => {
      const expected = usual.get(key)?.times
      // A step that the first run never took is another difference.
      if (expected === undefined) return []
      const allowed = expected + (cutShort.get(key)?.times ?? 0)
      if (times <= allowed) return []
      const { runId, what, name } = entry
      return [{ runId, what, step: name, times, allowed }]
    })
  }
}

/** What an entry says of the step body itself. */
export const BODY = 'body'

const keyOf = ({ runId, seq, name }: StepPlace): string => JSON.stringify([runId, seq, name])
