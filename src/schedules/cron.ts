/*
 * Windows of a cron pattern. `cron-parser` reads the pattern and iterates it forward, on local time without
 * changes; which instants its local times are is decided here. Its own iteration through a zone depends on
 * where it begins, and fails where clocks move by half an hour.
 */
import { DurableError, hasCode } from '../foundation/failure.ts'
import type { Cadence, Window } from './cadence.ts'
import { Zone } from './local_time.ts'

interface Iterator {
  next(): { getTime(): number }
  fields: { hour: readonly unknown[] | { values: readonly unknown[] } }
}

type Parse = (pattern: string, options: { currentDate: Date; tz: string }) => Iterator

interface CronParserModule {
  CronExpressionParser?: { parse: Parse }
  parseExpression?: Parse
  default?: CronParserModule
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** How far windows are looked for; 29 February is the rarest, and not in 1900 or 2100. */
const SPANS = [2 * MINUTE, 2 * HOUR, 3 * DAY, 63 * DAY, 400 * DAY, 3000 * DAY]
const HOURS_A_DAY = 24
/** Exclusive, so that a window at the epoch is one. */
const BEFORE_THE_EPOCH = -1

let loading: Promise<Parse> | undefined

/**
 * The parser, of either major. Rejects with `DurableError` (`missing_peer`) when it is not installed; what
 * is passed in is loaded in its place.
 */
export function loadCronParser(
  load: () => Promise<unknown> = () => import('cron-parser')
): Promise<Parse> {
  const parser = load().then(parseOf, (cause: unknown) => {
    if (!hasCode(cause, 'ERR_MODULE_NOT_FOUND')) throw cause
    throw new DurableError(
      'cron schedules need the optional peer "cron-parser". Install it with: npm i cron-parser',
      { code: 'missing_peer', cause }
    )
  })
  return parser
}

/** The parser that was loaded once. */
export function cronParser(): Promise<Parse> {
  const attempt = (loading ??= loadCronParser())
  attempt.catch(() => (loading = undefined))
  return attempt
}

function parseOf(loaded: unknown): Parse {
  const module = loaded as CronParserModule
  for (const one of [module, module.default, module.default?.default]) {
    const parser = one?.CronExpressionParser
    if (parser) return (pattern, options) => parser.parse(pattern, options)
    if (one?.parseExpression) return one.parseExpression
  }
  throw new DurableError('cron schedules need cron-parser 4 or 5: this one has no parser', {
    code: 'missing_peer',
  })
}

export class CronCadence implements Cadence {
  readonly #parse: Parse
  readonly #pattern: string
  readonly #zone: Zone
  /** Fires at every hour there is: real time passes through changes of the clocks. */
  readonly #everyHour: boolean
  /** The fires around the last time that was asked for. */
  #around?: { at: number; nextAt: number }
  /** The fires before the window that was asked about last, latest first. */
  #earlier?: { of: number; fires: number[] }

  /** Throws whatever the parser says of a pattern, and `RangeError` for a zone that is none. */
  constructor(parse: Parse, pattern: string, timezone: string) {
    this.#parse = parse
    this.#pattern = pattern
    this.#zone = new Zone(timezone)
    const iterator = this.#iterate(0)
    const { hour } = iterator.fields
    // A list in major 4, an object in 5; every list has a method of that name.
    const hours = Array.isArray(hour) ? hour : (hour as { values: readonly unknown[] }).values
    this.#everyHour = hours.length === HOURS_A_DAY
    iterator.next()
  }

  current(now: number): Window | undefined {
    const known = this.#around
    if (known && known.at <= now && now < known.nextAt) return windowAt(known.at)
    const at = this.#latestUntil(now).at(-1)
    if (at === undefined) return undefined
    const nextAt = this.nextAt(now)
    if (nextAt !== undefined) this.#around = { at, nextAt }
    return windowAt(at)
  }

  before({ at: of }: Window, count: number): Window[] {
    if (this.#earlier?.of !== of) this.#earlier = { of, fires: [] }
    const { fires } = this.#earlier
    while (fires.length < count) {
      const more = this.#latestUntil((fires.at(-1) ?? of) - 1)
      if (more.length === 0) break
      fires.push(...more.reverse())
    }
    return fires.slice(0, count).reverse().map(windowAt)
  }

  nextAt(now: number): number | undefined {
    for (const span of SPANS) {
      const next = this.#fires(now, now + span)[0]
      if (next !== undefined) return next
    }
    return undefined
  }

  /** The last fires until a time, ascending: all of the shortest span that has one. None is before the epoch. */
  #latestUntil(now: number): number[] {
    for (const span of SPANS) {
      const from = Math.max(BEFORE_THE_EPOCH, now - span)
      const fires = from < now ? this.#fires(from, now) : []
      if (fires.length > 0) return fires
      if (from === BEFORE_THE_EPOCH) break
    }
    return []
  }

  /** Every fire in `(from, to]`, ascending. */
  #fires(from: number, to: number): number[] {
    const [least] = this.#zone.offsetsAround(from)
    const [, greatest] = this.#zone.offsetsAround(to)
    const last = to + greatest
    // The parser answers what is after a second, in whole seconds.
    const iterator = this.#iterate(from + least - 1000)
    const fires = new Set<number>()
    for (let local = after(iterator); local !== undefined; local = after(iterator)) {
      if (local > last) break
      for (const at of this.#instantsOf(local)) if (at > from && at <= to) fires.add(at)
    }
    return [...fires].sort((a, b) => a - b)
  }

  #instantsOf(local: number): number[] {
    const { instants, moved } = this.#zone.instantsOf(local)
    if (this.#everyHour) return instants
    return [instants[0] ?? moved]
  }

  #iterate(local: number): Iterator {
    return this.#parse(this.#pattern, { currentDate: new Date(local), tz: 'UTC' })
  }
}

const windowAt = (at: number): Window => ({ at, name: String(at) })

/** The next local time; undefined when the parser finds none. */
function after(iterator: Iterator): number | undefined {
  try {
    return iterator.next().getTime()
  } catch {
    return undefined
  }
}
