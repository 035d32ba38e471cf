/*
 * One run to look at: its row, its timeline, its children, wide fans in one line each. From a store with
 * aggregates the timeline of a summarized run is not read as a whole, and not at all for a reader that
 * has it. The tag is computed before the rows are read: it may be older than they, never newer.
 */
import { fanChildIdOf } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import {
  SUMMARY_CHILD_LIMIT,
  type FanPage,
  type FanPageQuery,
  type FanSummary,
  type RunDetail,
  type RunDetailOptions,
} from '../types/run_detail.ts'
import type { WorkflowRun } from '../types/run.ts'
import { etagMatches, fanPageEtag, runDetailEtag } from './etags.ts'
import { pageFanFromStore, summarizeRunFromStore } from './fan_reads.ts'
import { pageFan, summarizeTimeline, summaryThreshold } from './fans.ts'
import { childIdsOf } from './lineage.ts'

export async function runDetail(
  store: FullStore,
  runId: string,
  options: RunDetailOptions = {}
): Promise<RunDetail | null> {
  const run = await store.getRun(runId)
  if (!run) return null
  const over = summaryThreshold(options.summarizeFansOver)
  if (over === undefined) {
    const timeline = await store.listCheckpoints(runId)
    return { run, timeline, children: childIdsOf(timeline) }
  }
  if (!store.capabilities.checkpointAggregates) return summarizedFromRows(store, run, over)
  const stats = await store.checkpointStats(runId)
  const etag = runDetailEtag(run, stats, over)
  if (etagMatches(options.ifNoneMatch, etag)) {
    return { run, timeline: [], children: [], etag, notModified: true }
  }
  const summary = await summarizeRunFromStore(store, runId, over, stats)
  return { run, ...summary, fans: await labelled(store, runId, summary.fans), etag }
}

/** One read of the timeline, which is all that a store without aggregates can do; no tag. */
async function summarizedFromRows(
  store: FullStore,
  run: WorkflowRun,
  over: number
): Promise<RunDetail> {
  const rows = await store.listCheckpoints(run.id)
  const children = childIdsOf(rows)
  const { timeline, fans } = summarizeTimeline(rows, over)
  return {
    run,
    timeline,
    fans: await labelled(store, run.id, fans),
    children: children.slice(0, SUMMARY_CHILD_LIMIT),
    childCount: children.length,
  }
}

/** One page of a fan; null for an unknown run or a group without rows. */
export async function fanMembers(
  store: FullStore,
  runId: string,
  group: string,
  query: FanPageQuery = {}
): Promise<FanPage | null> {
  const run = await store.getRun(runId)
  if (!run) return null
  if (!store.capabilities.checkpointAggregates) {
    const rows = await store.queryCheckpoints(runId, { group })
    return rows.length > 0 ? pageFan(rows, group, query) : null
  }
  const stats = await store.checkpointStats(runId)
  if (!stats.groups.some((each) => each.group === group)) return null
  const etag = fanPageEtag(run, stats, group, query)
  if (etagMatches(query.ifNoneMatch, etag)) return { items: [], total: 0, etag, notModified: true }
  const page = await pageFanFromStore(store, runId, group, query, stats)
  return page && { ...page, etag }
}

/** Fans of children are called after their workflow, where the first child is still there. */
async function labelled(
  store: FullStore,
  runId: string,
  fans: FanSummary[]
): Promise<FanSummary[]> {
  const firstChildOf = (fan: FanSummary): string | undefined => {
    const waves = fan.total !== undefined
    const own = fan.label === `${runId}.all.${fan.firstSeq}`
    return own ? fanChildIdOf(runId, fan.firstSeq, 0, waves ? 0 : undefined) : undefined
  }
  const ids = fans.flatMap((fan) => firstChildOf(fan) ?? [])
  if (ids.length === 0) return fans
  const children = await store.getRuns(ids)
  const workflows = new Map(children.map((run) => [run.id, run.workflow]))
  return fans.map((fan) => ({ ...fan, label: workflows.get(firstChildOf(fan) ?? '') ?? fan.label }))
}
