/*
 * What a schedule may say. Every mistake is found when the schedule becomes known, by one sentence that
 * names its key, and not by the tick that would have fired it.
 */
import { InvalidArgumentError } from '../errors.ts'
import { parseDuration } from '../foundation/duration.ts'
import { messageOf } from '../foundation/failure.ts'
import { keyProblem, MAX_SCHEDULE_KEY_BYTES } from '../foundation/keys.ts'
import type { ScheduleOptions } from '../types/schedule.ts'
import { CronCadence, cronParser } from './cron.ts'
import { type Cadence, IntervalCadence } from './cadence.ts'

const OPTIONS = new Set<string>([
  'everyMs',
  'cron',
  'timezone',
  'input',
  'overlap',
  'jitter',
  'backfill',
  'paused',
  'tags',
  'namespace',
] satisfies (keyof ScheduleOptions)[])

/** Names that a schedule has besides its options. */
const NAMES = new Set(['key', 'id', 'workflow'])

/** Most windows a schedule may catch up with; each costs a read whenever it is due. */
const MOST_CATCHUP = 1000

/** Throws `InvalidArgumentError`, whose argument names the schedule. Patterns are read by `cadenceOf`. */
export function checkSchedule(key: unknown, given: unknown): void {
  const problem = keyProblem(key, MAX_SCHEDULE_KEY_BYTES)
  if (problem) throw new InvalidArgumentError(`schedule ${show(key)}: the key`, problem)
  const wrong = optionsProblem(given)
  if (wrong) throw new InvalidArgumentError(`schedule ${show(key)}`, wrong)
}

/** What is wrong with the options of a schedule, as the end of a sentence; undefined when nothing is. */
export function optionsProblem(given: unknown): string | undefined {
  if (!isObject(given)) return `must be an object { key, workflow, cron }, got ${show(given)}`
  const unknown = Object.keys(given).find((name) => !OPTIONS.has(name) && !NAMES.has(name))
  if (unknown !== undefined) return `has no option "${unknown}": check its spelling, or remove it`
  const { everyMs, cron, timezone, overlap, backfill, paused, tags, namespace } = given
  if ((everyMs === undefined) === (cron === undefined)) {
    return 'needs exactly one of everyMs and cron'
  }
  if (everyMs !== undefined && !(Number.isSafeInteger(everyMs) && (everyMs as number) >= 1)) {
    return `everyMs must be a whole number of milliseconds of at least 1, got ${show(everyMs)}`
  }
  if (cron !== undefined && !isPattern(cron)) {
    return `cron must be a pattern of five fields, or six with seconds, got ${show(cron)}`
  }
  if (timezone !== undefined) {
    if (cron === undefined) return 'timezone belongs to cron: windows of everyMs have no zone'
    if (typeof timezone !== 'string') return `timezone must be a zone, got ${show(timezone)}`
  }
  if (overlap !== undefined && overlap !== 'allow' && overlap !== 'skip') {
    return `overlap must be "allow" or "skip", got ${show(overlap)}`
  }
  if (backfill !== undefined && !isBackfill(backfill)) {
    return `backfill must be { maxCatchup } with a whole number from 0 to ${MOST_CATCHUP}`
  }
  if (paused !== undefined && typeof paused !== 'boolean') {
    return `paused must be true or false, got ${show(paused)}`
  }
  return jitterProblem(given.jitter) ?? tagsProblem(tags) ?? namespaceProblem(namespace)
}

/** The windows of a checked schedule. Rejects with `InvalidArgumentError` for a pattern or zone that is none. */
export async function cadenceOf(key: string, options: ScheduleOptions): Promise<Cadence> {
  const { everyMs, cron, timezone = 'UTC' } = options
  if (cron === undefined) return new IntervalCadence(everyMs!)
  const parse = await cronParser()
  try {
    return new CronCadence(parse, cron, timezone)
  } catch (error) {
    const what = error instanceof RangeError ? `timezone ${show(timezone)}` : `cron ${show(cron)}`
    throw new InvalidArgumentError(
      `schedule ${show(key)}: ${what}`,
      `cannot be used: ${messageOf(error)}`
    )
  }
}

export const jitterOf = ({ jitter }: ScheduleOptions): number =>
  jitter === undefined ? 0 : parseDuration(jitter)

function isPattern(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const pattern = value.trim()
  if (/^@[a-z]+$/.test(pattern)) return true
  const fields = pattern.split(/\s+/).length
  return fields === 5 || fields === 6
}

function isBackfill(value: unknown): boolean {
  if (!isObject(value) || Object.keys(value).some((key) => key !== 'maxCatchup')) return false
  const most = value.maxCatchup
  return Number.isInteger(most) && (most as number) >= 0 && (most as number) <= MOST_CATCHUP
}

function jitterProblem(jitter: unknown): string | undefined {
  if (jitter === undefined) return undefined
  try {
    parseDuration(jitter as string)
    return undefined
  } catch (error) {
    return `jitter cannot be used: ${messageOf(error)}`
  }
}

function tagsProblem(tags: unknown): string | undefined {
  if (tags === undefined) return undefined
  if (!Array.isArray(tags)) return `tags must be a list, got ${show(tags)}`
  for (const tag of tags as unknown[]) {
    const problem = keyProblem(tag)
    if (problem) return `tag ${show(tag)} ${problem}`
  }
  return undefined
}

function namespaceProblem(namespace: unknown): string | undefined {
  const problem = namespace === undefined ? undefined : keyProblem(namespace)
  return problem && `namespace ${problem}`
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
