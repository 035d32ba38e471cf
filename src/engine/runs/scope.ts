/*
 * Scopes of verbs that act on many runs: refused when a predicate got lost on the way.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { RunFilter } from '../../types/query.ts'
import type { RunStatus } from '../../types/run.ts'

/** Whether a predicate is a list. */
const PREDICATES: Record<keyof RunFilter | 'before', boolean> = {
  workflow: false,
  status: false,
  statuses: true,
  namespace: false,
  tag: false,
  origin: false,
  attributes: true,
  createdBefore: false,
  createdAfter: false,
  updatedBefore: false,
  updatedAfter: false,
  wakeBefore: false,
  idPrefix: false,
  before: false,
}

/**
 * Throws for a scope that says something and selects by nothing, or by less than it says: it would
 * concern runs that nobody meant.
 */
export function checkScope(verb: string, scope: RunFilter): void {
  const problem = problemOf(scope)
  if (problem) throw new InvalidArgumentError(`${verb}: the scope`, problem)
}

function problemOf(scope: unknown): string | undefined {
  // A promise or a map has no keys, as {} has none.
  if (Object.prototype.toString.call(scope) !== '[object Object]') {
    return 'must be an object. Pass {} if every run is meant'
  }
  const given = Object.entries(scope as object)
  for (const [key, value] of given) {
    const problem = predicateProblem(key, value)
    if (problem) return problem
  }
  const says = given.some(([key, value]) => {
    if (value === undefined || (key === 'namespace' && value === '')) return false
    return !(key === 'attributes' && (value as unknown[]).length === 0)
  })
  if (given.length === 0 || says) return undefined
  const keys = given.map(([key]) => key).join(', ')
  return `has no value for ${keys}. Pass {} if every run is meant`
}

function predicateProblem(key: string, value: unknown): string | undefined {
  if (!Object.hasOwn(PREDICATES, key)) {
    return `has no predicate "${key}"; there are ${Object.keys(PREDICATES).join(', ')}`
  }
  if (value === undefined) return undefined
  if (value === null) return key === 'origin' ? undefined : `has null for ${key}`
  if (PREDICATES[key as keyof typeof PREDICATES] && !Array.isArray(value)) {
    return `has no list for ${key}`
  }
  return undefined
}

/** The filter, narrowed to runs in one of these statuses; its page is left out. */
export function withStatuses<Filter extends RunFilter>(
  filter: Filter,
  statuses: readonly RunStatus[]
): Filter & { statuses: RunStatus[] } {
  const wanted = filter.statuses ?? statuses
  return { ...filter, statuses: statuses.filter((status) => wanted.includes(status)) }
}
