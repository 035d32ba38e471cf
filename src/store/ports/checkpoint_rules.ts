/*
 * What stores must agree on about checkpoint rows: which rows a range or a query selects, what a replay
 * leaves out, and the aggregates of a timeline. Pure; generic over rows that keep payloads in their own
 * way. Payloads are never looked at (invariant 12).
 */
import {
  isSettledStatus,
  type CheckpointStatus,
  type StepCheckpoint,
} from '../../types/checkpoint.ts'
import type {
  CheckpointGroupStats,
  CheckpointKey,
  CheckpointQuery,
  CheckpointRange,
  CheckpointStats,
} from '../../types/query.ts'

/** What selecting a row takes. */
export interface RowKey {
  seq: number
  name: string
  status: CheckpointStatus
  parallelGroup?: string
}

/** What the aggregates take; times in epoch ms. */
export interface RowTimes extends RowKey {
  attempts: number
  enqueuedAtMs: number
  startedAtMs: number
  finishedAtMs: number
  lastHeartbeatAtMs?: number
}

export const rowTimes = (row: StepCheckpoint): RowTimes => ({
  seq: row.seq,
  name: row.name,
  status: row.status,
  parallelGroup: row.parallelGroup,
  attempts: row.attempts,
  enqueuedAtMs: row.enqueuedAt.getTime(),
  startedAtMs: row.startedAt.getTime(),
  finishedAtMs: row.finishedAt.getTime(),
  lastHeartbeatAtMs: row.lastHeartbeatAt?.getTime(),
})

/** Whether a row lies in a range; both bounds are inclusive. */
export function inRange(row: Pick<RowKey, 'seq' | 'status'>, range: CheckpointRange): boolean {
  return (
    (range.fromSeq === undefined || row.seq >= range.fromSeq) &&
    (range.toSeq === undefined || row.seq <= range.toSeq) &&
    (range.statuses === undefined || range.statuses.includes(row.status))
  )
}

/** Of each entry: no earlier one has its key. */
export function firstOfEachKey(rows: CheckpointKey[]): boolean[] {
  const seen = new Set<string>()
  return rows.map(({ runId, seq }) => seen.size < seen.add(`${seq}:${runId}`).size)
}

export const hasPrefix = (name: string, prefixes: string[]): boolean =>
  prefixes.some((prefix) => name.startsWith(prefix))

/** The page a query selects of a timeline that is ascending by position. */
export function selectRows<Row extends RowKey>(rows: Row[], query: CheckpointQuery): Row[] {
  const found = rows.filter((row) => matchesRow(row, query))
  if (query.descending) found.reverse()
  const from = query.offset ?? 0
  return found.slice(from, query.limit === undefined ? undefined : from + query.limit)
}

function matchesRow(row: RowKey, query: CheckpointQuery): boolean {
  if (!inRange(row, query)) return false
  if (query.group !== undefined && row.parallelGroup !== query.group) return false
  // A row without a group is in none of the excluded ones.
  if (row.parallelGroup !== undefined && query.excludeGroups?.includes(row.parallelGroup)) {
    return false
  }
  if (query.namePrefixes && !hasPrefix(row.name, query.namePrefixes)) return false
  return query.seqs === undefined || query.seqs.includes(row.seq)
}

/** Aggregates of one run's rows, groups by their first position. */
export function aggregateRows(rows: Iterable<RowTimes>): CheckpointStats {
  const groups = new Map<string | null, CheckpointGroupStats>()
  const stats: CheckpointStats = { total: 0, groups: [] }
  for (const row of rows) {
    stats.total += 1
    if (stats.maxSeq === undefined || row.seq > stats.maxSeq) stats.maxSeq = row.seq
    const key = row.parallelGroup ?? null
    const group = groups.get(key)
    if (group) addToGroup(group, row)
    else groups.set(key, addToGroup(emptyGroup(key, row.seq), row))
  }
  stats.groups = [...groups.values()].sort((a, b) => a.firstSeq - b.firstSeq)
  return stats
}

const emptyGroup = (group: string | null, seq: number): CheckpointGroupStats => ({
  group,
  size: 0,
  firstSeq: seq,
  lastSeq: seq,
  counts: {},
  attempts: 0,
})

function addToGroup(group: CheckpointGroupStats, row: RowTimes): CheckpointGroupStats {
  group.size += 1
  group.firstSeq = Math.min(group.firstSeq, row.seq)
  group.lastSeq = Math.max(group.lastSeq, row.seq)
  group.counts[row.status] = (group.counts[row.status] ?? 0) + 1
  group.attempts += row.attempts
  group.enqueuedAt = Math.min(group.enqueuedAt ?? Infinity, row.enqueuedAtMs)
  group.startedAt = Math.min(group.startedAt ?? Infinity, row.startedAtMs)
  if (isSettledStatus(row.status)) {
    group.finishedAt = Math.max(group.finishedAt ?? -Infinity, row.finishedAtMs)
  }
  if (row.lastHeartbeatAtMs !== undefined) {
    group.lastHeartbeatAt = Math.max(group.lastHeartbeatAt ?? -Infinity, row.lastHeartbeatAtMs)
  }
  return group
}

/** A row without its input. */
export function withoutInput(row: StepCheckpoint): StepCheckpoint {
  const { input, ...rest } = row
  return rest
}

/** A row whose write leaves the stored beat alone. */
export function withoutBeat(row: StepCheckpoint): StepCheckpoint {
  const { lastHeartbeatAt, heartbeatProgress, ...rest } = row
  return rest
}

/** A row as a replay reads it: a completed one has no input. */
export const forReplay = (row: StepCheckpoint): StepCheckpoint =>
  row.status === 'completed' ? withoutInput(row) : row

/** Whether a write of a turn may replace the row that stands at its position. */
export function mayReplace(
  stored: Pick<StepCheckpoint, 'status' | 'attempts'> | undefined | null,
  retryOf: number | undefined
): boolean {
  if (!stored || !isSettledStatus(stored.status)) return true
  return retryOf !== undefined && stored.status === 'failed' && stored.attempts === retryOf
}
