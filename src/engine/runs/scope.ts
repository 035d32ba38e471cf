/*
 * Scopes of verbs that act on many runs: refused when their every predicate got lost on the way.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { RunFilter } from '../../types/query.ts'
import type { RunStatus } from '../../types/run.ts'

/** Throws for a scope that says something and selects by nothing: it would concern every run. */
export function checkScope(verb: string, scope: RunFilter): void {
  const given = Object.entries(scope ?? {})
  const says = given.some(([key, value]) => {
    if (value === undefined || (key === 'namespace' && value === '')) return false
    return !(key === 'attributes' && Array.isArray(value) && value.length === 0)
  })
  if (given.length === 0 || says) return
  const keys = given.map(([key]) => key).join(', ')
  throw new InvalidArgumentError(
    `${verb}: the scope`,
    `has no value for ${keys}. Pass {} if every run is meant`
  )
}

/** The filter, narrowed to runs in one of these statuses; its page is left out. */
export function withStatuses<Filter extends RunFilter>(
  filter: Filter,
  statuses: readonly RunStatus[]
): Filter & { statuses: RunStatus[] } {
  const wanted = filter.statuses ?? statuses
  return { ...filter, statuses: statuses.filter((status) => wanted.includes(status)) }
}
