/*
 * Pages of runs. One statement where an index has the runs in the order of the list. Otherwise the runs that
 * come first are looked at before all those that match, so that a page costs what is on it.
 */
import { type AttributeFilter, runPageWindow, type RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { indexedAttribute } from '../ports/attribute_rules.ts'
import { listed, numberOf, readRun, RUN_COLUMNS } from './rows.ts'
import {
  byStatus,
  holding,
  leading,
  orderOf,
  PLACE,
  type Predicate,
  ranges,
  runsAt,
  selectRuns,
  valueMatches,
  valueOf,
  whereRuns,
} from './run_query.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session } from '../../sql/session.ts'

interface Window {
  limit: number
  offset: number
}

export async function listRuns(session: Session, query: RunQuery): Promise<WorkflowRun[]> {
  const { limit, offset } = runPageWindow(query)
  if (limit === 0) return []
  const rows = limit === undefined ? undefined : await pageOf(session, query, { limit, offset })
  if (rows) return rows.map(readRun)
  const { text, bindings } = selectRuns(session.dialect, RUN_COLUMNS, query, { limit, offset })
  const found = await session.adhoc(text, bindings)
  return found.map(readRun)
}

/** Undefined where one statement is the shortest way. */
async function pageOf(session: Session, query: RunQuery, window: Window) {
  if (query.attributes?.length) return byAttributes(session, query, window)
  return byTime(session, query, window)
}

/** From so many rows on an attribute has many values that a filter takes. */
const MANY = 1000
/** So many runs are looked at before all that match. */
const FIRST = 5000

/**
 * The page of a query by attributes that no index has in the order of lists (ranges, `ne`), when many runs
 * have such values and those that come first fill it: reading all of them to find the first is spared.
 */
async function byAttributes(
  session: Session,
  query: RunQuery,
  window: Window
): Promise<Row[] | undefined> {
  const { attributes = [], ...others } = query
  const comparable = attributes.every(({ value }) => indexedAttribute(value) !== undefined)
  if (!comparable || valueOf(query) || window.offset + window.limit > FIRST) return undefined
  const leads = leading(attributes)
  if (leads && (await isRare(session, leads))) return undefined
  const filters = attributes.map((filter) => valueMatches(filter, 'first.id'))
  const first = selectRuns(session.dialect, PLACE, others, { limit: FIRST, offset: 0 })
  const rows = await amongFirst(session, query, first, filters, window)
  return rows.length === window.limit ? rows : undefined
}

async function isRare(session: Session, filter: AttributeFilter): Promise<boolean> {
  const { text, bindings } = holding(filter, 'a')
  const some = `SELECT a.run_id FROM ${T.attributes} a WHERE ${text} LIMIT ?`
  return (await counted(session, { text: some, bindings: [...bindings, MANY] })) < MANY
}

/** Those on the page whose place is among the first. */
async function amongFirst(
  session: Session,
  query: RunQuery,
  first: Predicate,
  filters: Predicate[],
  { limit, offset }: Window
): Promise<Row[]> {
  const { dialect } = session
  return session.adhoc(
    `SELECT ${listed(RUN_COLUMNS, 'r')} FROM (${first.text}) AS first
     ${dialect.joinOne(T.runs, 'r', RUN_COLUMNS, 'r.id = first.id')}
     WHERE ${filters.map(({ text }) => text).join(' AND ')} ${orderOf(query, 'first')} LIMIT ? OFFSET ?`,
    [...first.bindings, ...filters.flatMap(({ bindings }) => bindings), limit, offset]
  )
}

/** In pages: how many of the runs that come first are looked at, and how many matches are few. */
const TRIES = [
  { first: 2, few: 2 },
  { first: 10, few: 50 },
]

/**
 * The page of a walk from the oldest run that is bounded by another time than that of its order, which is
 * how passes over all runs ask. Each time has an index, and the order has one: by the first, all that match
 * are read and put in order; by the second, all that do not match are passed over. Which of them is short
 * depends on the data. So some that come first are looked at, and whether only few match, then more of both;
 * what is neither is left to the walk.
 */
async function byTime(
  session: Session,
  query: RunQuery,
  window: Window
): Promise<Row[] | undefined> {
  const { updatedBefore, wakeBefore, ...others } = query
  const times = [...ranges({ updatedBefore, wakeBefore })]
  const parts = byStatus(query)
  if (!query.oldestFirst || !parts || times.length !== 1) return undefined
  const column = updatedBefore === undefined ? 'wake_at' : 'updated_at'
  const { limit, offset } = window
  for (const pages of TRIES) {
    const size = pages.first * (offset + limit)
    const first = selectRuns(session.dialect, PLACE, others, { limit: size, offset: 0 })
    const rows = await amongFirst(session, query, first, times, window)
    const isPage = rows.length === limit || (await counted(session, first)) < size
    if (isPage) return rows
    const most = pages.few * (offset + limit)
    const matching = earliest(column, parts, times[0], most)
    if ((await counted(session, matching)) < most) return among(session, query, matching, window)
  }
  return undefined
}

/** Runs of each status that match by a time, the earliest of them. */
function earliest(
  column: string,
  parts: RunQuery[],
  { text, bindings }: Predicate,
  limit: number
): Predicate {
  const ofEach = parts.map(
    ({ status }) => `SELECT * FROM (SELECT r.id FROM ${T.runs} r
      WHERE r.status = '${status}' AND ${text} ORDER BY r.${column} LIMIT ?) AS part`
  )
  return { text: ofEach.join(' UNION ALL '), bindings: parts.flatMap(() => [...bindings, limit]) }
}

/** The page of those among some runs that match. */
function among(
  session: Session,
  query: RunQuery,
  some: Predicate,
  { limit, offset }: Window
): Promise<Row[]> {
  const { dialect } = session
  const where = whereRuns(dialect, query)
  const found = `SELECT r.id, r.created_at FROM (${some.text}) AS some_runs
    ${dialect.joinOne(T.runs, 'r', RUN_COLUMNS, 'r.id = some_runs.id')}
    WHERE ${where.text} ${orderOf(query, 'r')} LIMIT ? OFFSET ?`
  const bindings = [...some.bindings, ...where.bindings, limit, offset]
  return session.adhoc(runsAt(dialect, RUN_COLUMNS, query, found), bindings)
}

async function counted(session: Session, { text, bindings }: Predicate): Promise<number> {
  const [row] = await session.adhoc(
    `SELECT count(*) AS total FROM (${text}) AS some_rows`,
    bindings
  )
  return numberOf(row.total) ?? 0
}
