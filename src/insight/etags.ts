/*
 * ETags of run detail and fan pages: digests of the run row and the aggregates of its timeline, so that
 * a reader that has the current state is told so without reading it. Weak: equal tags mean the same
 * content, not the same bytes.
 */
import { createHash } from 'node:crypto'
import type { CheckpointGroupStats, CheckpointStats } from '../types/query.ts'
import type { FanPageQuery } from '../types/run_detail.ts'
import type { WorkflowRun } from '../types/run.ts'
import { fanWindow } from './fans.ts'

/** The tag of a detail that summarizes fans over `over`. Any write to the run or its timeline moves it. */
export function runDetailEtag(run: WorkflowRun, stats: CheckpointStats, over: number): string {
  const state = [
    run.id,
    run.status,
    run.updatedAt.getTime(),
    run.createdAt.getTime(),
    run.turns,
    run.wakeAt,
    run.wakeRequestedAt,
    run.cancelRequestedAt,
    run.recoveryAttempts,
    run.searchAttributes,
  ]
  return tagOf(['run', state, stats.total, stats.maxSeq, stats.groups.map(groupState), over])
}

/** The tag of one page of a fan. Any write to a member moves it, and so does another page. */
export function fanPageEtag(
  run: Pick<WorkflowRun, 'id' | 'createdAt'>,
  stats: CheckpointStats,
  group: string,
  query: FanPageQuery = {}
): string {
  const own = stats.groups.filter((each) => each.group === group).map(groupState)
  const { offset, limit, failedOnly } = fanWindow(query)
  const page = [offset, limit, failedOnly]
  return tagOf(['fan', run.id, run.createdAt.getTime(), group, own, page])
}

/**
 * Whether an `If-None-Match` header, a list of tags or `*`, names this tag; `W/` makes no difference.
 * Nothing matches an absent header.
 */
export function etagMatches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const opaque = opaqueOf(etag)
  return ifNoneMatch
    .split(',')
    .map((one) => one.trim())
    .some((one) => one === '*' || opaqueOf(one) === opaque)
}

const opaqueOf = (tag: string): string => tag.trim().replace(/^W\//, '')

/** In one order whatever that of the store; what is absent is told from 0. */
function groupState(stats: CheckpointGroupStats): unknown[] {
  const { pending = 0, running = 0, completed = 0, failed = 0 } = stats.counts
  return [
    stats.group,
    stats.size,
    stats.firstSeq,
    stats.lastSeq,
    [pending, running, completed, failed],
    stats.attempts,
    stats.enqueuedAt,
    stats.startedAt,
    stats.finishedAt,
    stats.lastHeartbeatAt,
  ]
}

function tagOf(state: unknown): string {
  const digest = createHash('sha256').update(JSON.stringify(state)).digest('base64url')
  return `W/"${digest.slice(0, 27)}"`
}
