/*
 * Aggregates: facets over runs, and one run's timeline in numbers and in slices. The database counts
 * wherever a column can be grouped; tags are JSON text and are counted here, over a bounded page. Payloads
 * are never looked at (invariant 12).
 */
import type { CheckpointStatus, StepCheckpoint } from '../../types/checkpoint.ts'
import type {
  CheckpointGroupStats,
  CheckpointQuery,
  CheckpointStats,
  RunFacetQuery,
  RunFacetRow,
  RunValueAxis,
  RunValueFacetOptions,
  RunValueFacetRow,
} from '../../types/query.ts'
import type { RunStatus } from '../../types/run.ts'
import { RUN_VALUE_FACET_SCAN } from '../ports/aggregates.ts'
import { countEach, rankValues, tagValues, wantedNamespace } from '../ports/run_rules.ts'
import { CHECKPOINTS_OF_RUN, SORTED_SEQ, within } from './checkpoints.ts'
import { type Binding, startsWith } from '../../sql/dialect.ts'
import { numberOf, readCheckpoint, readRun } from './rows.ts'
import { EVERY_RUN, selectRuns, whereRuns } from './run_query.ts'
import { DURABLE_TABLES as T, RUNS_BY_NAMESPACE } from './schema/tables.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'

const ORIGIN = `CASE WHEN trim(r.origin) = '' THEN NULL ELSE r.origin END`

export async function runFacets(session: Session, query: RunFacetQuery): Promise<RunFacetRow[]> {
  const where = whereRuns(session.dialect, query)
  if (where.text === EVERY_RUN) return facetsOfAll(session)
  const rows = await session.adhoc(
    `SELECT status, origin, count(*) AS total
     FROM (SELECT r.status, ${ORIGIN} AS origin FROM ${runsOf(session, query)} WHERE ${where.text}) cells
     GROUP BY status, origin ORDER BY status, origin`,
    where.bindings
  )
  return rows.map((row) => ({
    status: row.status as RunStatus,
    origin: (row.origin ?? null) as string | null,
    count: numberOf(row.total) ?? 0,
  }))
}

/** Over every run, from two indexes: how many of each status, and the few that name an origin. */
async function facetsOfAll(session: Session): Promise<RunFacetRow[]> {
  const rows = await session.adhoc(
    `SELECT r.status, NULL AS origin, count(*) AS total FROM ${T.runs} r GROUP BY r.status
     UNION ALL
     SELECT status, origin, count(*) AS total
     FROM (SELECT r.status, ${ORIGIN} AS origin FROM ${T.runs} r WHERE r.origin IS NOT NULL) named
     WHERE origin IS NOT NULL GROUP BY status, origin`,
    []
  )
  const cells = rows.map((row) => ({
    status: row.status as RunStatus,
    origin: (row.origin ?? null) as string | null,
    count: numberOf(row.total) ?? 0,
  }))
  const named = cells.filter(({ origin }) => origin !== null)
  const nameless = cells
    .filter(({ origin }) => origin === null)
    .map((cell) => {
      const others = named.filter(({ status }) => status === cell.status)
      return { ...cell, count: others.reduce((left, { count }) => left - count, cell.count) }
    })
  return [...nameless.filter(({ count }) => count > 0), ...named]
}

/** For the runs of a namespace MySQL would read every run, in the order of the groups or as they lie. */
function runsOf({ dialect }: Session, query: RunFacetQuery): string {
  const { namespace, workflow, attributes = [], idPrefix } = query
  const others = workflow !== undefined || idPrefix !== undefined || attributes.length > 0
  const isLed = dialect.name === 'mysql' && wantedNamespace(namespace) !== undefined && !others
  return isLed ? `${T.runs} r FORCE INDEX (${RUNS_BY_NAMESPACE})` : `${T.runs} r`
}

const GROUPED: Record<Exclude<RunValueAxis, 'tag' | 'attributeKey'>, string> = {
  workflow: 'r.workflow',
  workflowVersion: 'r.workflow_version',
  namespace: 'r.namespace',
  origin: ORIGIN,
}

export async function runValueFacets(
  session: Session,
  axis: RunValueAxis,
  query: RunFacetQuery,
  options?: RunValueFacetOptions
): Promise<RunValueFacetRow[]> {
  if (axis === 'tag') return tagFacets(session, query, options)
  const where = whereRuns(session.dialect, query)
  const values =
    axis === 'attributeKey'
      ? `SELECT a."key" AS value FROM ${T.runs} r JOIN ${T.attributes} a ON a.run_id = r.id`
      : `SELECT ${GROUPED[axis]} AS value FROM ${runsOf(session, query)}`
  const rows = await session.adhoc(
    `SELECT value, count(*) AS total FROM (${values} WHERE ${where.text}) found
     WHERE value IS NOT NULL GROUP BY value`,
    where.bindings
  )
  const counted = rows.map((row) => ({
    value: String(row.value),
    count: numberOf(row.total) ?? 0,
  }))
  return rankValues(counted, options)
}

async function tagFacets(session: Session, query: RunFacetQuery, options?: RunValueFacetOptions) {
  const page = { limit: RUN_VALUE_FACET_SCAN, offset: 0 }
  const { text, bindings } = selectRuns(session.dialect, ['id', 'tags'], query, page)
  const rows = await session.adhoc(text, bindings)
  return countEach(
    rows.map((row) => tagValues(readRun(row).tags)),
    options
  )
}

const STATS = `SELECT parallel_group, status, count(*) AS size, min(seq) AS first_seq,
    max(seq) AS last_seq, sum(attempts) AS attempts, min(coalesce(enqueued_at, started_at)) AS enqueued,
    min(started_at) AS started, max(finished_at) AS finished, max(last_heartbeat_at) AS beat
  FROM ${T.checkpoints} WHERE run_id = ? GROUP BY parallel_group, status`

export async function checkpointStats(sql: Sql, runId: string): Promise<CheckpointStats> {
  const rows = await sql.run(STATS, [runId.toWellFormed()])
  const groups = new Map<string | null, CheckpointGroupStats>()
  for (const row of rows) {
    const cell = readCell(row)
    const known = groups.get(cell.group)
    groups.set(cell.group, known ? merged(known, cell) : cell)
  }
  const sorted = [...groups.values()].sort((a, b) => a.firstSeq - b.firstSeq)
  const stats: CheckpointStats = {
    total: sorted.reduce((sum, group) => sum + group.size, 0),
    groups: sorted,
  }
  if (sorted.length > 0) stats.maxSeq = Math.max(...sorted.map((group) => group.lastSeq))
  return stats
}

/** The rows of one group and status. */
function readCell(row: Row): CheckpointGroupStats {
  const status = row.status as CheckpointStatus
  const size = numberOf(row.size) ?? 0
  const settled = status === 'completed' || status === 'failed'
  return {
    group: (row.parallel_group ?? null) as string | null,
    size,
    firstSeq: numberOf(row.first_seq) ?? 0,
    lastSeq: numberOf(row.last_seq) ?? 0,
    counts: { [status]: size },
    attempts: numberOf(row.attempts) ?? 0,
    enqueuedAt: numberOf(row.enqueued),
    startedAt: numberOf(row.started),
    finishedAt: settled ? numberOf(row.finished) : undefined,
    lastHeartbeatAt: numberOf(row.beat),
  }
}

function merged(a: CheckpointGroupStats, b: CheckpointGroupStats): CheckpointGroupStats {
  return {
    group: a.group,
    size: a.size + b.size,
    firstSeq: Math.min(a.firstSeq, b.firstSeq),
    lastSeq: Math.max(a.lastSeq, b.lastSeq),
    counts: { ...a.counts, ...b.counts },
    attempts: a.attempts + b.attempts,
    enqueuedAt: chosen(Math.min, a.enqueuedAt, b.enqueuedAt),
    startedAt: chosen(Math.min, a.startedAt, b.startedAt),
    finishedAt: chosen(Math.max, a.finishedAt, b.finishedAt),
    lastHeartbeatAt: chosen(Math.max, a.lastHeartbeatAt, b.lastHeartbeatAt),
  }
}

const chosen = (
  choose: (a: number, b: number) => number,
  a: number | undefined,
  b: number | undefined
): number | undefined => (a === undefined ? b : b === undefined ? a : choose(a, b))

export async function queryCheckpoints(
  sql: Sql,
  runId: string,
  query: CheckpointQuery
): Promise<StepCheckpoint[]> {
  const { statuses, namePrefixes, seqs, limit, offset = 0, descending } = query
  if ([statuses, namePrefixes, seqs].some((list) => list?.length === 0)) return []
  if (limit !== undefined && limit <= 0) return []
  const { text, bindings } = within(query)
  const filters = [...rowFilters(sql, query)]
  const parts = [
    CHECKPOINTS_OF_RUN,
    text,
    ...filters.map((filter) => ` AND ${filter.text}`),
    ` ORDER BY ${namePrefixes ? SORTED_SEQ : 'seq'} ${descending ? 'DESC' : 'ASC'}`,
  ]
  const places = [runId.toWellFormed(), ...bindings, ...filters.flatMap((each) => each.bindings)]
  if (limit !== undefined || offset > 0) {
    // SQLite takes an offset only after a limit; no run has this many positions.
    parts.push(' LIMIT ? OFFSET ?')
    places.push(limit ?? 2 ** 31 - 1, offset)
  }
  const rows = await sql.adhoc(parts.join(''), places)
  return rows.map(readCheckpoint)
}

function* rowFilters(
  { dialect }: Sql,
  query: CheckpointQuery
): Generator<{ text: string; bindings: Binding[] }> {
  const { group, excludeGroups, namePrefixes, seqs } = query
  const list = (values: (string | number)[]) => dialect.list(values)
  if (group !== undefined) yield { text: 'parallel_group = ?', bindings: [group.toWellFormed()] }
  if (excludeGroups && excludeGroups.length > 0) {
    const others = dialect.isNotIn('parallel_group', 'text')
    const groups = excludeGroups.map((each) => each.toWellFormed())
    // A row without a group is in none of the excluded ones.
    yield { text: `(parallel_group IS NULL OR ${others})`, bindings: [list(groups)] }
  }
  if (namePrefixes) {
    const prefixes = namePrefixes.map((prefix) => startsWith('name', prefix.toWellFormed()))
    yield {
      text: `(${prefixes.map((prefix) => prefix.text).join(' OR ')})`,
      bindings: prefixes.flatMap((prefix) => prefix.bindings),
    }
  }
  if (seqs) yield { text: dialect.isIn('seq', 'int'), bindings: [list(seqs)] }
}
