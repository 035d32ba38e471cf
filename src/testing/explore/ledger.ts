/*
 * The ledger of one exploration run: which step bodies began, in which life of the process, what they
 * answered, and which effects they called. It answers for the first run what every later one must give
 * again, and counts against it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { jsonEqual } from '../../foundation/json.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import { shown } from '../difference.ts'

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
  readonly #answers = new Map<string, { place: StepPlace; answer: unknown }>()
  /** What each run was started as. */
  readonly #starts = new Map<string, string>()
  readonly #first?: Ledger
  /**
   * Answers that the first run did not give, at places that it did not have: where branches run side by
   * side, a crash may give their steps other positions.
   */
  novel = 0
  /** Positions that were settled when the process died. */
  #durable = new Set<string>()
  /** The life of the process that executes now. */
  life = 1
  /** Step bodies that run in this life. */
  readonly running = new Set<StepPlace>()
  /** Grows with everything that begins or ends. */
  activity = 0

  /** `first`: the ledger of the first run, whose answers are given again. */
  constructor(first?: Ledger) {
    this.#first = first
  }

  /** Runs a step body and answers what the first run answered at this place, if it did. */
  async execute(place: StepPlace, body: () => unknown): Promise<unknown> {
    const { life } = this
    this.#entries.push({ ...place, life, what: BODY })
    this.running.add(place)
    this.activity += 1
    try {
      const value = await places.run({ ...place, life }, async () => body())
      const answer = this.#first ? this.#repeated(this.#first, place, value) : value
      this.#answers.set(keyOf(place), { place, answer })
      return answer
    } finally {
      this.activity += 1
      this.running.delete(place)
    }
  }

  /** A body begins: what its run was started as. */
  started(runId: string, start: unknown): void {
    this.#starts.set(runId, shown(start, Infinity))
  }

  /**
   * The answer of the first run: at this place, of the only step of the run with this name, or at this
   * place of a run that was started alike and has another id.
   */
  #repeated(first: Ledger, place: StepPlace, value: unknown): unknown {
    const { runId, seq, name } = place
    const start = this.#starts.get(runId)
    const given = [...first.#answers.values()].filter((one) => one.place.name === name)
    if (start === first.#starts.get(runId)) {
      const known = first.#answers.get(keyOf(place))
      if (known) return known.answer
      const own = given.filter((one) => one.place.runId === runId)
      if (own.length === 1) return own[0].answer
    }
    const twin = given.find(
      (one) => one.place.seq === seq && start === first.#starts.get(one.place.runId)
    )
    if (twin && twin.place.runId !== runId) return twin.answer
    if (!given.some(({ answer }) => jsonEqual(answer ?? null, value ?? null))) this.novel += 1
    return value
  }

  /** A step body called an effect. */
  called(place: StepPlace & { life: number }, effect: string): void {
    this.#entries.push({ ...place, what: effect })
  }

  /** The process died while these rows were stored. */
  died(rows: readonly StepCheckpoint[]): void {
    this.life += 1
    this.running.clear()
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
