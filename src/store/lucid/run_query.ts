/*
 * Listings: a `RunQuery` as a WHERE clause, so that the database filters, orders, pages and counts. The
 * text is put together from fixed parts; everything a caller gave is a parameter.
 *
 * Every index that finds runs by workflow, namespace or status has the start of the run behind the status,
 * so a page is put together from the first rows of each status. Otherwise a planner has to guess whether
 * walking all runs by age is shorter, and guesses wrong where what is asked for is old. The index of a search
 * attribute has the same order within a value, so it gives a page by itself.
 */
import type { AttributeFilter, AttributeOperator, RunQuery } from '../../types/query.ts'
import { LIVE_RUN_STATUSES, type RunStatus, TERMINAL_RUN_STATUSES } from '../../types/run.ts'
import { indexedAttribute } from '../ports/attribute_rules.ts'
import { isBlankOrigin, wantedNamespace } from '../ports/run_rules.ts'
import { type Binding, type Dialect, startsWith } from '../../sql/dialect.ts'
import { listed, numberOf } from './rows.ts'
import { DURABLE_TABLES as T, RUNS_BY_CHANGE } from './schema/tables.ts'
import type { Session } from '../../sql/session.ts'

export interface Predicate {
  text: string
  bindings: Binding[]
}

/** Holds for every run. */
export const EVERY_RUN = '1 = 1'

const NOTHING: Predicate = { text: '1 = 0', bindings: [] }

const OPERATORS: Record<AttributeOperator, string> = {
  eq: '=',
  ne: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
}

/** What says where in a list a run stands. */
export const PLACE = ['id', 'created_at']

export function orderOf({ oldestFirst }: RunQuery, from: string, id = 'id'): string {
  const direction = oldestFirst ? 'ASC' : 'DESC'
  return `ORDER BY ${from}.created_at ${direction}, ${from}.${id} ${direction}`
}

export async function countRuns(session: Session, query: RunQuery): Promise<number> {
  const wanted = query.statuses && byStatus(query)
  const parts = (wanted ?? [query]).map((each) => whereRuns(session.dialect, each))
  const counts = parts.map(({ text }) => `SELECT count(*) AS total FROM ${T.runs} r WHERE ${text}`)
  const [row] = await session.adhoc(
    `SELECT sum(total) AS total FROM (${counts.join(' UNION ALL ')}) AS counts`,
    parts.flatMap(({ bindings }) => bindings)
  )
  return numberOf(row.total) ?? 0
}

/** Columns of the runs of a page, in its order. */
export function selectRuns(
  dialect: Dialect,
  columns: readonly string[],
  query: RunQuery,
  { limit, offset }: { limit: number | undefined; offset: number }
): Predicate {
  const order = (from: string, id?: string) => orderOf(query, from, id)
  const page = limit === undefined ? '' : ' LIMIT ? OFFSET ?'
  const window = limit === undefined ? [] : [limit, offset]
  const ordered = limit === undefined ? undefined : valueOf(query)
  if (ordered) {
    const where = whereOfValue(dialect, query, ordered)
    return {
      text: `SELECT ${listed(columns, 'r')} FROM ${T.attributes} a
        ${dialect.joinAfter} ${T.runs} r ON r.id = a.run_id
        WHERE ${where.text} ${order('a', 'run_id')}${page}`,
      bindings: [...where.bindings, ...window],
    }
  }
  const parts = limit === undefined ? undefined : byStatus(query)
  if (limit === undefined || !parts) {
    const where = whereRuns(dialect, query)
    return {
      text: `SELECT ${listed(columns, 'r')} FROM ${T.runs} r${indexOf(dialect, query)}
        WHERE ${where.text} ${order('r')}${page}`,
      bindings: [...where.bindings, ...window],
    }
  }
  const firsts = parts.map((part) => {
    const where = whereRuns(dialect, part)
    return {
      text: `SELECT * FROM (SELECT r.id, r.created_at FROM ${T.runs} r WHERE ${where.text}
        ${order('r')} LIMIT ?) AS first`,
      bindings: [...where.bindings, offset + limit],
    }
  })
  const found = `SELECT id, created_at FROM (${firsts.map(({ text }) => text).join(' UNION ALL ')}) AS found
    ${order('found')} LIMIT ? OFFSET ?`
  const bindings = [...firsts.flatMap((first) => first.bindings), limit, offset]
  if (columns === PLACE) return { text: found, bindings }
  return { text: runsAt(dialect, columns, query, found), bindings }
}

/** What changed lately SQLite would look for among all runs of the status, which are in order. */
function indexOf(dialect: Dialect, query: RunQuery): string {
  const { status = query.statuses, updatedAfter, idPrefix, attributes = [] } = query
  const isLed = status !== undefined && updatedAfter !== undefined
  const isByOther = idPrefix !== undefined || attributes.length > 0
  return dialect.name === 'sqlite' && isLed && !isByOther ? ` INDEXED BY ${RUNS_BY_CHANGE}` : ''
}

/** Columns of the runs whose places a query finds, in its order. */
export function runsAt(
  dialect: Dialect,
  columns: readonly string[],
  query: RunQuery,
  found: string
): string {
  return `SELECT ${listed(columns, 'r')} FROM (${found}) AS page
    ${dialect.joinOne(T.runs, 'r', columns, 'r.id = page.id')} ${orderOf(query, 'page')}`
}

const STATUSES: readonly RunStatus[] = [...LIVE_RUN_STATUSES, ...TERMINAL_RUN_STATUSES]

/**
 * A query as one for each status it may find; undefined where another index leads to the runs, or there is
 * nothing to part.
 */
export function byStatus(query: RunQuery): RunQuery[] | undefined {
  const { workflow, namespace, status, statuses, attributes = [] } = query
  const isByStatus = [workflow, wantedNamespace(namespace), status, statuses].some(
    (one) => one !== undefined
  )
  // A walk from the oldest run is by age, whatever else bounds it: see run_lists.ts.
  const times = query.oldestFirst ? [] : [query.updatedBefore, query.wakeBefore]
  const bounds = [query.idPrefix, query.updatedAfter, ...times]
  const isByOther = bounds.some((one) => one !== undefined) || attributes.length > 0
  if (!isByStatus || isByOther) return undefined
  const wanted = STATUSES.filter(
    (one) => (status ?? one) === one && (statuses?.includes(one) ?? true)
  )
  if (wanted.length === 0) return undefined
  return wanted.map((one) => ({ ...query, status: one, statuses: undefined }))
}

/** The predicates of a query over runs under the alias `r`, its page left out. */
export function whereRuns(dialect: Dialect, query: RunQuery): Predicate {
  // SQLite walks the runs and looks for the attribute of each, however few have the value: there the first
  // attribute leads to the runs, and nothing else does.
  const leads = dialect.name === 'sqlite' ? leading(query.attributes) : undefined
  const others = (query.attributes ?? []).filter((filter) => filter !== leads)
  return all([
    ...(leads ? [withAttribute(leads, 'IN')] : []),
    ...exact(dialect, query, leads ? dialect.unindexed : (column) => column),
    ...began(query, 'r'),
    ...ranges(query),
    ...others.map((filter) => withAttribute(filter, 'EXISTS')),
  ])
}

/** The attribute whose index holds the runs of a query in their order. */
export const valueOf = ({ attributes = [] }: RunQuery): AttributeFilter | undefined =>
  attributes.find(({ op, value }) => op === 'eq' && indexedAttribute(value) !== undefined)

/** The same predicates where the rows of one value, under the alias `a`, lead to the runs. */
function whereOfValue(dialect: Dialect, query: RunQuery, value: AttributeFilter): Predicate {
  const others = query.attributes!.filter((filter) => filter !== value)
  return all([
    holding(value, 'a'),
    ...began(query, 'a', 'run_id'),
    ...exact(dialect, query, dialect.unindexed),
    ...ranges(query),
    ...others.map((filter) => withAttribute(filter, 'EXISTS')),
  ])
}

function all(predicates: Predicate[]): Predicate {
  if (predicates.length === 0) return { text: EVERY_RUN, bindings: [] }
  return {
    text: predicates.map((predicate) => predicate.text).join(' AND '),
    bindings: predicates.flatMap((predicate) => predicate.bindings),
  }
}

function* exact(
  dialect: Dialect,
  query: RunQuery,
  column: (name: string) => string
): Generator<Predicate> {
  const { workflow, status, statuses, tag, origin, idPrefix } = query
  const namespace = wantedNamespace(query.namespace)
  if (workflow !== undefined) yield equal(column('r.workflow'), workflow)
  if (status !== undefined) yield equal(column('r.status'), status)
  if (statuses !== undefined) {
    yield { text: dialect.isIn(column('r.status'), 'text'), bindings: [dialect.list(statuses)] }
  }
  if (namespace !== undefined) yield equal(column('r.namespace'), namespace)
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

export function* ranges(query: RunQuery): Generator<Predicate> {
  yield* whereSet([
    ['r.updated_at < ?', query.updatedBefore],
    ['r.updated_at > ?', query.updatedAfter],
    ['r.wake_at <= ?', query.wakeBefore],
  ])
}

/** When a run began, and where in the list it stands. */
function* began(query: RunQuery, from: string, id = 'id'): Generator<Predicate> {
  const at = `${from}.created_at`
  const { before, createdBefore = Infinity, createdAfter } = query
  // SQLite reads from the first of two bounds, though the other be far behind.
  const isWithin = before !== undefined && before.createdAt < createdBefore
  yield* whereSet([
    [`${at} < ?`, isWithin ? undefined : query.createdBefore],
    [`${at} > ?`, createdAfter],
  ])
  if (before) {
    const { createdAt, id: last } = before
    // Not as a comparison of rows: on MySQL no index serves that.
    yield {
      text: `${at} <= ? AND (${at} < ? OR ${from}.${id} < ?)`,
      bindings: [createdAt, createdAt, last.toWellFormed()],
    }
  }
}

function* whereSet(given: [string, number | undefined][]): Generator<Predicate> {
  for (const [text, bound] of given) {
    if (bound !== undefined) yield { text, bindings: [bound] }
  }
}

/** The attribute that should find the fewest runs. */
export const leading = (filters: AttributeFilter[] = []): AttributeFilter | undefined =>
  filters.find(({ op }) => op === 'eq') ?? filters.find(({ op }) => op !== 'ne')

function withAttribute(filter: AttributeFilter, how: 'IN' | 'EXISTS'): Predicate {
  const { text, bindings } = holding(filter, 'o')
  const found =
    how === 'IN'
      ? `r.id IN (SELECT o.run_id FROM ${T.attributes} o WHERE ${text})`
      : `EXISTS (SELECT 1 FROM ${T.attributes} o WHERE o.run_id = r.id AND ${text})`
  return { text: found, bindings }
}

/** Looked up in the row of the run, whatever else a planner would make of it. */
export function valueMatches({ key, op, value }: AttributeFilter, run: string): Predicate {
  const wanted = indexedAttribute(value)!
  const column = typeof wanted === 'number' ? 'num_value' : 'str_value'
  return {
    text: `(SELECT o.${column} FROM ${T.attributes} o WHERE o.run_id = ${run} AND o."key" = ?)
      ${OPERATORS[op]} ?`,
    bindings: [key.toWellFormed(), typeof wanted === 'number' ? wanted : wanted.toWellFormed()],
  }
}

export function holding({ key, op, value }: AttributeFilter, alias: string): Predicate {
  const wanted = indexedAttribute(value)
  if (wanted === undefined) return NOTHING
  const column = typeof wanted === 'number' ? 'num_value' : 'str_value'
  return {
    text: `${alias}."key" = ? AND ${alias}.${column} ${OPERATORS[op]} ?`,
    bindings: [key.toWellFormed(), typeof wanted === 'number' ? wanted : wanted.toWellFormed()],
  }
}
