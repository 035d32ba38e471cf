/*
 * Listings: a `RunQuery` as a WHERE clause, so that the database filters, orders, pages and counts. The
 * text is put together from fixed parts; everything a caller gave is a parameter.
 */
import { runPageWindow, type AttributeOperator, type RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { indexedAttribute } from '../ports/attribute_rules.ts'
import { isBlankOrigin, wantedNamespace } from '../ports/run_rules.ts'
import { type Binding, type Dialect, startsWith } from './dialect.ts'
import { listed, numberOf, readRun, RUN_COLUMNS } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session } from './session.ts'

interface Predicate {
  text: string
  bindings: Binding[]
}

const NOTHING: Predicate = { text: '1 = 0', bindings: [] }

const OPERATORS: Record<AttributeOperator, string> = {
  eq: '=',
  ne: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
}

export async function listRuns(session: Session, query: RunQuery): Promise<WorkflowRun[]> {
  const { limit, offset } = runPageWindow(query)
  if (limit === 0) return []
  const where = whereRuns(session.dialect, query)
  const bindings = [...where.bindings]
  let text = `SELECT ${listed(RUN_COLUMNS, 'r')} FROM ${T.runs} r WHERE ${where.text}
    ORDER BY r.created_at ${query.oldestFirst ? 'ASC' : 'DESC'}, r.id ${query.oldestFirst ? 'ASC' : 'DESC'}`
  if (limit !== undefined) {
    text += ' LIMIT ? OFFSET ?'
    bindings.push(limit, offset)
  }
  const rows = await session.adhoc(text, bindings)
  return rows.map(readRun)
}

export async function countRuns(session: Session, query: RunQuery): Promise<number> {
  const where = whereRuns(session.dialect, query)
  const text = `SELECT count(*) AS total FROM ${T.runs} r WHERE ${where.text}`
  const [row] = await session.adhoc(text, where.bindings)
  return numberOf(row.total) ?? 0
}

/** The predicates of a query over runs under the alias `r`, its page left out. */
export function whereRuns(dialect: Dialect, query: RunQuery): Predicate {
  const predicates = [
    ...exact(dialect, query),
    ...ranges(query),
    ...(query.attributes ?? []).map((filter) => attribute(filter)),
  ]
  if (predicates.length === 0) return { text: '1 = 1', bindings: [] }
  return {
    text: predicates.map((predicate) => predicate.text).join(' AND '),
    bindings: predicates.flatMap((predicate) => predicate.bindings),
  }
}

function* exact(dialect: Dialect, query: RunQuery): Generator<Predicate> {
  const { workflow, status, statuses, tag, origin, idPrefix } = query
  const namespace = wantedNamespace(query.namespace)
  if (workflow !== undefined) yield equal('r.workflow', workflow)
  if (status !== undefined) yield equal('r.status', status)
  if (statuses !== undefined) {
    yield { text: dialect.isIn('r.status', 'text'), bindings: [dialect.list(statuses)] }
  }
  if (namespace !== undefined) yield equal('r.namespace', namespace)
  if (tag !== undefined) yield hasTag(dialect, tag)
  if (origin === null) yield { text: `(r.origin IS NULL OR trim(r.origin) = '')`, bindings: [] }
  else if (origin !== undefined) yield isBlankOrigin(origin) ? NOTHING : equal('r.origin', origin)
  if (idPrefix !== undefined)
    yield idPrefix === '' ? NOTHING : startsWith('r.id', idPrefix.toWellFormed())
}

const equal = (column: string, value: string): Predicate => ({
  text: `${column} = ?`,
  bindings: [value.toWellFormed()],
})

/**
 * Of a run under the alias `r`. A tag is an element of the JSON array: its text in quotes, after the opening bracket or a comma. Inside
 * another tag a quote is escaped, so only a tag that itself begins with a comma could be mistaken; the
 * quote that ends the element before it is asked for as well.
 */
export function hasTag(dialect: Dialect, tag: string): Predicate {
  const element = JSON.stringify(tag)
  const later = tag.startsWith(',') ? `",${element}` : `,${element}`
  return {
    text: `(${dialect.position('r.tags', '?')} = 1 OR ${dialect.position('r.tags', '?')} > 0)`,
    bindings: [`[${element}`, later],
  }
}

function* ranges(query: RunQuery): Generator<Predicate> {
  const bounds: [string, number | undefined][] = [
    ['r.created_at < ?', query.createdBefore],
    ['r.created_at > ?', query.createdAfter],
    ['r.updated_at < ?', query.updatedBefore],
    ['r.updated_at > ?', query.updatedAfter],
    ['r.wake_at <= ?', query.wakeBefore],
  ]
  for (const [text, bound] of bounds) {
    if (bound !== undefined) yield { text, bindings: [bound] }
  }
  if (query.before) {
    const { createdAt, id } = query.before
    yield { text: '(r.created_at, r.id) < (?, ?)', bindings: [createdAt, id.toWellFormed()] }
  }
}

function attribute({ key, op, value }: NonNullable<RunQuery['attributes']>[number]): Predicate {
  const wanted = indexedAttribute(value)
  if (wanted === undefined) return NOTHING
  const column = typeof wanted === 'number' ? 'num_value' : 'str_value'
  return {
    text: `EXISTS (SELECT 1 FROM ${T.attributes} a
      WHERE a.run_id = r.id AND a."key" = ? AND a.${column} ${OPERATORS[op]} ?)`,
    bindings: [key.toWellFormed(), typeof wanted === 'number' ? wanted : wanted.toWellFormed()],
  }
}
