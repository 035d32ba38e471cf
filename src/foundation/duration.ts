/*
 * Durations: '30s', '2h', '7 days' or milliseconds. The one parser behind every option that takes one.
 */
import { DurableError } from './failure.ts'

/** Thrown for a duration that cannot be read. */
export class InvalidDurationError extends DurableError {
  static override readonly code: string = 'invalid_duration'
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** 100 000 years: from any now on it ends within what a Date can hold. */
const LONGEST_MS = 36_525_000 * DAY

/** A number of milliseconds that a deadline can be made of. */
export const isDurationMs = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= LONGEST_MS

const UNITS: Record<string, number> = {
  ms: 1,
  s: SECOND,
  sec: SECOND,
  second: SECOND,
  seconds: SECOND,
  m: MINUTE,
  min: MINUTE,
  minute: MINUTE,
  minutes: MINUTE,
  h: HOUR,
  hr: HOUR,
  hour: HOUR,
  hours: HOUR,
  d: DAY,
  day: DAY,
  days: DAY,
  w: 7 * DAY,
  week: 7 * DAY,
  weeks: 7 * DAY,
}

/**
 * Milliseconds of a duration. Numbers are milliseconds; text is a non-negative decimal and a unit:
 * ms, s, sec, second(s), m, min, minute(s), h, hr, hour(s), d, day(s), w, week(s).
 * Throws `InvalidDurationError` for anything else, negative and non-finite numbers included.
 */
export function parseDuration(duration: string | number): number {
  if (typeof duration === 'number') {
    if (isDurationMs(duration)) return duration
    throw new InvalidDurationError(
      `invalid duration ${duration}: give a finite number of milliseconds, 0 or more`
    )
  }
  const match =
    typeof duration === 'string' ? /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(duration) : null
  if (!match) {
    throw new InvalidDurationError(
      `invalid duration ${JSON.stringify(duration)}: use milliseconds or text such as '30s', '2h', '7 days'`
    )
  }
  const unit = UNITS[match[2].toLowerCase()]
  if (unit === undefined) {
    throw new InvalidDurationError(
      `unknown duration unit "${match[2]}" in ${JSON.stringify(duration)}: ` +
        'use ms, s, m, h, d, w or their long names'
    )
  }
  const ms = Number(match[1]) * unit
  if (isDurationMs(ms)) return ms
  throw new InvalidDurationError(
    `invalid duration ${JSON.stringify(duration)}: longer than 100 000 years`
  )
}
