/*
 * Summaries and pages of fans without the timeline: from a store's aggregates, and only the rows that
 * these cannot judge. What a child came to stands in its payload, so the rows of children are read, a
 * page at a time; steps are counted by the store. Answers equal those of fans.ts.
 */
import { CHILD_ROW } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import { checkpointPages, type RowSource } from '../store/paging.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { CheckpointGroupStats, CheckpointStats } from '../types/query.ts'
import {
  FAN_SUMMARY_FAILURES,
  type FanPage,
  type FanPageQuery,
  type FanSummary,
  SUMMARY_CHILD_LIMIT,
} from '../types/run_detail.ts'
import {
  failureOf,
  FanTally,
  fanWindow,
  memberStatus,
  summarizeTimeline,
  summaryThreshold,
} from './fans.ts'
import { membersOf } from '../replay/folds.ts'
import { childrenOfRow } from './lineage.ts'

/** The two members that are read, and what a completed store says about them. */
export interface FanStore extends RowSource, Pick<FullStore, 'checkpointStats'> {}

export interface RunSummary {
  timeline: StepCheckpoint[]
  fans: FanSummary[]
  /** At most `SUMMARY_CHILD_LIMIT`. */
  children: string[]
  childCount: number
}

/** The children among rows that pass by, by position. */
class ChildCount {
  readonly #seqs = new Map<string, number>()

  add(rows: StepCheckpoint[]): void {
    for (const row of rows) {
      for (const id of childrenOfRow(row)) if (!this.#seqs.has(id)) this.#seqs.set(id, row.seq)
    }
  }

  result(): Pick<RunSummary, 'children' | 'childCount'> {
    const byPosition = [...this.#seqs].sort(([, a], [, b]) => a - b)
    const children = byPosition.slice(0, SUMMARY_CHILD_LIMIT).map(([id]) => id)
    return { children, childCount: byPosition.length }
  }
}

/**
 * The timeline without its wide fans, those in one line each, and its children. `stats`, when given, are
 * those of the run, read before. Without a usable `over` nothing is summarized.
 */
export async function summarizeRunFromStore(
  store: FanStore,
  runId: string,
  over: number | undefined,
  stats?: CheckpointStats
): Promise<RunSummary> {
  const threshold = summaryThreshold(over) ?? Infinity
  const { groups } = stats ?? (await store.checkpointStats(runId))
  const wide = groups.filter((group) => group.group !== null && group.size > threshold)
  const excludeGroups = wide.map((group) => group.group!)
  const rest = await store.queryCheckpoints(runId, { excludeGroups })
  const children = new ChildCount()
  children.add(rest)
  const { timeline, fans } = summarizeTimeline(rest, over)
  for (const group of wide) fans.push(await summarizeGroup(store, runId, group, children))
  return {
    timeline,
    fans: fans.sort((a, b) => a.firstSeq - b.firstSeq),
    ...children.result(),
  }
}

async function summarizeGroup(
  store: FanStore,
  runId: string,
  stats: CheckpointGroupStats,
  children: ChildCount
): Promise<FanSummary> {
  const group = stats.group!
  const tally = new FanTally(group)
  const [first] = await store.queryCheckpoints(runId, { group, limit: 1 })
  if (first && isChild(first)) {
    for await (const rows of checkpointPages(store, runId, { group })) {
      children.add(rows)
      for (const row of rows) tally.add(row)
    }
    return tally.summary()
  }
  tally.first = { seq: stats.firstSeq, name: first?.name ?? '' }
  tally.lastSeq = stats.lastSeq
  tally.size = stats.size
  Object.assign(tally.counts, stats.counts)
  tally.startedAt = stats.enqueuedAt ?? Infinity
  tally.finishedAt = stats.finishedAt ?? -Infinity
  if (tally.counts.failed > 0) {
    const query = { group, statuses: ['failed' as const], limit: FAN_SUMMARY_FAILURES }
    const failed = await store.queryCheckpoints(runId, query)
    for (const row of failed) tally.addFailure(failureOf(row)!)
  }
  return tally.summary()
}

const isChild = (row: StepCheckpoint): boolean => row.name.startsWith(CHILD_ROW)

/**
 * One page of a fan; null for a group without rows. `stats`, when given, are those of the run, read
 * before.
 */
export async function pageFanFromStore(
  store: FanStore,
  runId: string,
  group: string,
  query: FanPageQuery = {},
  stats?: CheckpointStats
): Promise<FanPage | null> {
  const { groups } = stats ?? (await store.checkpointStats(runId))
  const own = groups.find((each) => each.group === group)
  if (!own) return null
  const { offset, limit, failedOnly } = fanWindow(query)
  const [first] = await store.queryCheckpoints(runId, { group, limit: 1 })
  if (first && isChild(first)) return pageChildren(store, runId, group, query)
  const statuses = failedOnly ? (['failed'] as const) : undefined
  const items = await store.queryCheckpoints(runId, {
    group,
    offset,
    limit,
    ...(statuses ? { statuses: [...statuses] } : {}),
  })
  return { items, total: failedOnly ? (own.counts.failed ?? 0) : own.size }
}

/** Which children failed, and how many a row stands for, only their decoded rows tell. */
async function pageChildren(
  store: FanStore,
  runId: string,
  group: string,
  query: FanPageQuery
): Promise<FanPage> {
  const { offset, limit, failedOnly } = fanWindow(query)
  const page: FanPage = { items: [], total: 0 }
  for await (const rows of checkpointPages(store, runId, { group })) {
    for (const row of rows.flatMap(membersOf)) {
      if (failedOnly && memberStatus(row) !== 'failed') continue
      const index = page.total++
      if (index >= offset && index < offset + limit) page.items.push(row)
    }
  }
  return page
}
