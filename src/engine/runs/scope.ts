/*
 * Scopes of verbs that act on many runs: refused when a predicate got lost on the way.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { AttributeFilter, RunFilter } from '../../types/query.ts'
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
  // Compared with a column of numbers, text may select every run.
  if (isBound(key) && !isEpochMs(value)) return `needs epoch ms for ${key}, got ${describe(value)}`
  if (TEXTS.includes(key) && typeof value !== 'string') {
    return `needs text for ${key}, got ${describe(value)}`
  }
  return key === 'attributes' ? attributesProblem(value as AttributeFilter[]) : undefined
}

function attributesProblem(attributes: readonly AttributeFilter[]): string | undefined {
  for (const filter of attributes) {
    const key: unknown = filter?.key
    if (typeof key !== 'string') return `needs a key for attributes, got ${describe(key)}`
    if (!OPERATORS.includes(filter.op)) {
      return `has no operator for attribute "${key}": use ${OPERATORS.join(', ')}`
    }
  }
  return undefined
}

const TEXTS: readonly string[] = ['workflow', 'status', 'namespace', 'tag', 'origin', 'idPrefix']

const OPERATORS: readonly string[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte']

const BOUNDS = [
  'createdBefore',
  'createdAfter',
  'updatedBefore',
  'updatedAfter',
  'wakeBefore',
] as const

const isBound = (key: string): boolean => (BOUNDS as readonly string[]).includes(key)

const isEpochMs = (value: unknown): value is number =>
  typeof value === 'number' && !Number.isNaN(value)

/** Throws for a listing whose values no store could compare. */
export function checkQuery(verb: string, query: RunFilter): void {
  const refuse = (what: string, problem: string) => {
    throw new InvalidArgumentError(`${verb}: ${what}`, problem)
  }
  for (const bound of BOUNDS) {
    const value: unknown = query[bound]
    if (value === undefined || isEpochMs(value)) continue
    refuse(bound, `must be epoch ms, got ${describe(value)}`)
  }
  for (const { key, op } of query.attributes ?? []) {
    if (typeof key !== 'string') refuse('attributes', `need a key, got ${describe(key)}`)
    if (OPERATORS.includes(op)) continue
    refuse(`the operator of attribute "${key}"`, `is one of ${OPERATORS.join(', ')}`)
  }
}

const describe = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 50)) : String(value)

/** The filter, narrowed to runs in one of these statuses; its page is left out. */
export function withStatuses<Filter extends RunFilter>(
  filter: Filter,
  statuses: readonly RunStatus[]
): Filter & { statuses: RunStatus[] } {
  const wanted = filter.statuses ?? statuses
  return { ...filter, statuses: statuses.filter((status) => wanted.includes(status)) }
}
