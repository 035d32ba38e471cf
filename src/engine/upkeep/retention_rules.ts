/*
 * The retention config as rules, each of which names the runs it may delete.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { parseDuration } from '../../foundation/duration.ts'
import { messageOf } from '../../foundation/failure.ts'
import type { RetentionConfig, RetentionPolicy } from '../../types/housekeeping.ts'
import type { RunFilter } from '../../types/query.ts'
import { isTerminalStatus, TERMINAL_RUN_STATUSES, type RunStatus } from '../../types/run.ts'
import { checkScope } from '../runs/scope.ts'

/** Runs of a scope that are over and did not change for `ageMs`, or are behind the `keep` newest. */
export type RetentionRule = { filter: RunFilter & { statuses: RunStatus[] } } & (
  { ageMs: number } | { keep: number }
)

const KNOWN = [...TERMINAL_RUN_STATUSES, 'policies']
const POLICY_KEYS = ['statuses', 'maxAge', 'maxCount', 'scope']

/** Throws `InvalidArgumentError` that begins with the key, under `path`, that cannot be used. */
export function retentionRules(
  config: RetentionConfig | undefined,
  path = 'retention'
): RetentionRule[] {
  if (config === undefined) return []
  requireObject(config, path)
  requireKeys(config, KNOWN, path)
  const rules: RetentionRule[] = []
  for (const status of TERMINAL_RUN_STATUSES) {
    const age = config[status]
    if (age === undefined) continue
    rules.push({ filter: { statuses: [status] }, ageMs: ageOf(age, `${path}.${status}`) })
  }
  const { policies = [] } = config
  if (!Array.isArray(policies)) fail(`${path}.policies`, 'must be a list of policies')
  policies.forEach((policy, index) => rules.push(...rulesOf(policy, `${path}.policies[${index}]`)))
  return rules
}

function rulesOf(policy: RetentionPolicy, path: string): RetentionRule[] {
  requireObject(policy, path)
  requireKeys(policy, POLICY_KEYS, path)
  const { statuses, maxAge, maxCount, scope } = policy
  checkStatuses(statuses, `${path}.statuses`)
  if (scope === undefined) fail(`${path}.scope`, 'is missing: write {} if every run is meant')
  checkPolicyScope(scope, `${path}.scope`)
  if (maxAge === undefined && maxCount === undefined) {
    fail(path, 'bounds nothing: give it maxAge, maxCount or both')
  }
  const filter = { ...scope, statuses: [...statuses] }
  const rules: RetentionRule[] = []
  if (maxAge !== undefined) rules.push({ filter, ageMs: ageOf(maxAge, `${path}.maxAge`) })
  if (maxCount !== undefined) {
    if (!Number.isSafeInteger(maxCount) || maxCount < 0) {
      fail(`${path}.maxCount`, `must be a whole number of at least 0, got ${String(maxCount)}`)
    }
    rules.push({ filter, keep: maxCount })
  }
  return rules
}

function checkStatuses(statuses: unknown, key: string): void {
  const listed = TERMINAL_RUN_STATUSES.join(', ')
  if (!Array.isArray(statuses) || statuses.length === 0) {
    fail(key, `must list at least one of ${listed}`)
  }
  const wrong = (statuses as RunStatus[]).find((status) => !isTerminalStatus(status))
  if (wrong !== undefined) {
    fail(key, `has ${JSON.stringify(wrong)}, which no run ends with: use ${listed}`)
  }
}

function checkPolicyScope(scope: RunFilter, key: string): void {
  const clash = (['status', 'statuses'] as const).find((name) => scope?.[name] !== undefined)
  if (clash) fail(`${key}.${clash}`, 'belongs into the statuses of the policy: move it there')
  try {
    checkScope(key, scope)
  } catch (error) {
    fail(key, messageOf(error).replace(`${key}: the scope `, ''))
  }
}

function ageOf(age: unknown, key: string): number {
  try {
    return Math.ceil(parseDuration(age as string | number))
  } catch (error) {
    fail(key, `cannot be used: ${messageOf(error)}`)
  }
}

function requireObject(value: unknown, key: string): void {
  if (Object.prototype.toString.call(value) !== '[object Object]') fail(key, 'must be an object')
}

function requireKeys(value: object, known: readonly string[], path: string): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined) fail(`${path}.${unknown}`, `is unknown: use ${known.join(', ')}`)
}

function fail(key: string, problem: string): never {
  throw new InvalidArgumentError(key, problem)
}
