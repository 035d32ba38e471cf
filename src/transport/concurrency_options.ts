/*
 * The option `concurrency` of a worker's transport: a number, or limits between which it moves.
 */
import { InvalidArgumentError } from '../errors.ts'

/** Lets a worker size its own concurrency. A number that is out of range counts as its default. */
export interface AdaptiveConcurrencyOptions {
  mode: 'adaptive'
  /** Never below; default 1. */
  min?: number
  /** Never above; default 32, or `min` when that is higher. */
  max?: number
  /** To begin with; default `min`, and kept between `min` and `max`. */
  start?: number
  /** How often the limit is reconsidered, in ms; default 2000. */
  tickMs?: number
  /** Percent of the container's (else the host's) memory from which the limit falls; default 85. */
  ramCeilingPct?: number
  /** Percent of all cores from which the limit falls; default off. */
  cpuCeilingPct?: number
}

/** Tasks that run at once: a whole number, or `'adaptive'` with the defaults or with limits. */
export type Concurrency = number | 'adaptive' | AdaptiveConcurrencyOptions

/** An adaptive setting with every default filled in. */
export interface AdaptiveSettings {
  mode: 'adaptive'
  min: number
  max: number
  start: number
  tickMs: number
  ramCeilingPct: number
  cpuCeilingPct?: number
}

export type ConcurrencySettings = { mode: 'fixed'; limit: number } | AdaptiveSettings

const MAX = 32
const TICK_MS = 2000
const RAM_CEILING_PCT = 85
const LONGEST_TICK_MS = 2 ** 31 - 1

/**
 * Reads a `concurrency` option; `undefined` is 1. Throws `InvalidArgumentError` under the name `what`
 * for what is neither a whole number from 1 nor an adaptive setting, and for a field that is no number.
 */
export function readConcurrency(
  given: Concurrency | undefined,
  what = 'concurrency'
): ConcurrencySettings {
  if (given === undefined) return { mode: 'fixed', limit: 1 }
  if (typeof given === 'number') return { mode: 'fixed', limit: atLeastOne(given, what) }
  if (given === 'adaptive') return adaptive({ mode: 'adaptive' }, what)
  if (typeof given === 'object' && given !== null && given.mode === 'adaptive') {
    return adaptive(given, what)
  }
  throw new InvalidArgumentError(
    what,
    "must be a whole number of at least 1, 'adaptive', or { mode: 'adaptive', min, max, … }"
  )
}

/** Reads an option like `resultConcurrency`; `undefined` is 1. Throws `InvalidArgumentError`. */
export function readResultConcurrency(given: number | undefined, what: string): number {
  return given === undefined ? 1 : atLeastOne(given, what)
}

function atLeastOne(given: number, what: string): number {
  if (Number.isSafeInteger(given) && given >= 1) return given
  throw new InvalidArgumentError(what, 'must be a whole number of at least 1')
}

function adaptive(given: AdaptiveConcurrencyOptions, what: string): AdaptiveSettings {
  const field = (key: keyof AdaptiveConcurrencyOptions, least: number, most: number) => {
    const value: unknown = given[key]
    if (value === undefined) return undefined
    if (typeof value !== 'number') {
      throw new InvalidArgumentError(`${what}.${key}`, 'must be a number')
    }
    return value >= least && value <= most ? value : undefined
  }
  const whole = (key: 'min' | 'max' | 'start', least: number) => {
    const value = field(key, least, Number.MAX_SAFE_INTEGER)
    return value === undefined ? undefined : Math.floor(value)
  }
  const min = whole('min', 1) ?? 1
  const max = whole('max', min) ?? Math.max(MAX, min)
  const start = Math.min(whole('start', min) ?? min, max)
  const settings: AdaptiveSettings = {
    mode: 'adaptive',
    min,
    max,
    start,
    tickMs: field('tickMs', 1, LONGEST_TICK_MS) ?? TICK_MS,
    ramCeilingPct: field('ramCeilingPct', Number.MIN_VALUE, 100) ?? RAM_CEILING_PCT,
  }
  const cpuCeilingPct = field('cpuCeilingPct', Number.MIN_VALUE, 100)
  if (cpuCeilingPct !== undefined) settings.cpuCeilingPct = cpuCeilingPct
  return settings
}
