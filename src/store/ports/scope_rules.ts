/*
 * What a view of a store sees, as a decision. Pure: every store with `withScope` reads it from here.
 */
import { wantedNamespace } from './run_rules.ts'

/** Every run, one namespace, or (when views or queries disagree) none. */
export interface Scope {
  namespace?: string
  nothing?: true
}

/** What is left of a scope for a view inside it, or for a query that names a namespace. */
export function narrowed(scope: Scope, inner: { namespace?: string }): Scope {
  const namespace = wantedNamespace(inner.namespace)
  if (scope.nothing || namespace === undefined) return scope
  const agrees = scope.namespace === undefined || scope.namespace === namespace
  return agrees ? { namespace } : { nothing: true }
}

/** A query as a view asks it; undefined when it can find nothing. */
export function scopedQuery<Query extends { namespace?: string }>(
  scope: Scope,
  query: Query
): Query | undefined {
  const { namespace, nothing } = narrowed(scope, query)
  if (nothing) return undefined
  return namespace === undefined ? query : { ...query, namespace }
}
