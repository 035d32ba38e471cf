/*
 * Fans in a timeline that is at hand: summaries of wide ones, pages of one. Pure. The same answers, read
 * from a store without the timeline: fan_reads.ts.
 */
import { CHILD_ROW, childOfRow, isFailFastGroup } from '../foundation/ids.ts'
import type { CheckpointStatus, CompletionEnvelope, StepCheckpoint } from '../types/checkpoint.ts'
import {
  FAN_PAGE_DEFAULT_LIMIT,
  FAN_PAGE_MAX_LIMIT,
  FAN_SUMMARY_FAILURES,
  type FanFailure,
  type FanPage,
  type FanPageQuery,
  type FanSummary,
} from '../types/run_detail.ts'
import { membersOf, widthOf } from '../replay/folds.ts'

/** What a page query comes to: whole numbers within bounds. */
export interface FanWindow {
  offset: number
  limit: number
  failedOnly: boolean
}

/** The fan size above which a fan is summarized; undefined for none. */
export const summaryThreshold = (over: number | undefined): number | undefined =>
  over !== undefined && over > 0 ? over : undefined

export function fanWindow({ offset, limit, failedOnly }: FanPageQuery): FanWindow {
  const whole = (value: number | undefined, fallback: number) =>
    value === undefined || Number.isNaN(value) ? fallback : Math.floor(value)
  return {
    offset: Math.max(0, whole(offset, 0)),
    limit: Math.min(FAN_PAGE_MAX_LIMIT, Math.max(1, whole(limit, FAN_PAGE_DEFAULT_LIMIT))),
    failedOnly: failedOnly === true,
  }
}

/** How a member stands: a child that ended with a failure failed, although its row is completed. */
export function memberStatus(row: StepCheckpoint): CheckpointStatus {
  return row.status === 'completed' && failureOf(row) ? 'failed' : row.status
}

/** Why a member failed; undefined while it has not. */
export function failureOf(row: StepCheckpoint): FanFailure | undefined {
  const id = childOfRow(row.name) ?? row.stepId
  if (row.status === 'failed') {
    const { message, code } = row.error ?? { message: 'failed' }
    return failure(row.seq, id, message, code)
  }
  if (row.status !== 'completed' || !row.name.startsWith(CHILD_ROW)) return undefined
  const completion = row.output as CompletionEnvelope | null | undefined
  if (completion?.ok !== false) return undefined
  return failure(row.seq, id, completion.error, completion.code)
}

function failure(seq: number, id: string, error: string, code: string | undefined): FanFailure {
  return code === undefined ? { seq, id, error } : { seq, id, error, code }
}

/** What the tag, the first row and the counts of a fan come to. */
export class FanTally {
  readonly #group: string
  readonly counts: Record<CheckpointStatus, number> = {
    pending: 0,
    running: 0,
    completed: 0,
    failed: 0,
  }
  readonly failures: FanFailure[] = []
  first?: Pick<StepCheckpoint, 'seq' | 'name'>
  size = 0
  lastSeq = 0
  startedAt = Infinity
  finishedAt = -Infinity

  constructor(group: string) {
    this.#group = group
  }

  /** Rows come by position. */
  add(row: StepCheckpoint): this {
    const width = widthOf(row)
    const failed = failureOf(row)
    this.first ??= row
    this.size += width
    this.lastSeq = row.seq + width - 1
    this.counts[memberStatus(row)] += width
    if (failed) this.addFailure(failed)
    this.startedAt = Math.min(this.startedAt, row.enqueuedAt.getTime())
    if (row.status === 'completed' || row.status === 'failed') {
      this.finishedAt = Math.max(this.finishedAt, row.finishedAt.getTime())
    }
    return this
  }

  addFailure(failed: FanFailure): void {
    if (this.failures.length < FAN_SUMMARY_FAILURES) this.failures.push(failed)
  }

  summary(): FanSummary {
    const { first = { seq: 0, name: '' }, size, lastSeq, counts, failures } = this
    const summary: FanSummary = {
      group: this.#group,
      label: labelOf(first.name),
      firstSeq: first.seq,
      lastSeq,
      size,
      failFast: isFailFastGroup(this.#group),
      counts: { ...counts },
      failures: [...failures],
    }
    const total = /:n(\d+)(?::ff)?$/.exec(this.#group)?.[1]
    if (total !== undefined) {
      summary.total = Number(total)
      summary.notStarted = Math.max(0, summary.total - size)
    }
    if (Number.isFinite(this.startedAt)) summary.startedAt = this.startedAt
    const open = counts.pending + counts.running + (summary.notStarted ?? 0)
    if (open === 0 && Number.isFinite(this.finishedAt)) summary.finishedAt = this.finishedAt
    return summary
  }
}

/** A step's name; of children, what their ids begin with. */
function labelOf(name: string): string {
  const child = childOfRow(name.replace(`${CHILD_ROW}fold:`, CHILD_ROW))
  return child === undefined ? name : (/^(.*\.all\.\d+)\./s.exec(child)?.[1] ?? child)
}

/** One fan from its rows, whatever their order; folded waves count for their members. Pure. */
export function summarizeFan(group: string, members: readonly StepCheckpoint[]): FanSummary {
  const tally = new FanTally(group)
  for (const row of bySeq(members)) tally.add(row)
  return tally.summary()
}

/**
 * Takes every fan with more than `over` members out of a timeline and tells it in one line; `over` 0,
 * negative or NaN leaves everything. The rest stays in order of position. Pure.
 */
export function summarizeTimeline(
  timeline: readonly StepCheckpoint[],
  over: number | undefined
): { timeline: StepCheckpoint[]; fans: FanSummary[] } {
  const rows = bySeq(timeline)
  const threshold = summaryThreshold(over)
  if (threshold === undefined) return { timeline: rows, fans: [] }
  const tallies = new Map<string, FanTally>()
  for (const row of rows) {
    if (row.parallelGroup === undefined) continue
    let tally = tallies.get(row.parallelGroup)
    if (!tally) tallies.set(row.parallelGroup, (tally = new FanTally(row.parallelGroup)))
    tally.add(row)
  }
  const wide = (group: string | undefined) =>
    group !== undefined && tallies.get(group)!.size > threshold
  return {
    timeline: rows.filter((row) => !wide(row.parallelGroup)),
    fans: [...tallies.values()]
      .filter((tally) => tally.size > threshold)
      .map((tally) => tally.summary()),
  }
}

/**
 * One page of a fan's members by position, folded waves as the members they stand for. A group without
 * rows is an empty page. Pure.
 */
export function pageFan(
  timeline: readonly StepCheckpoint[],
  group: string,
  query: FanPageQuery = {}
): FanPage {
  const { offset, limit, failedOnly } = fanWindow(query)
  const members = bySeq(timeline.filter((row) => row.parallelGroup === group))
    .flatMap(membersOf)
    .filter((row) => !failedOnly || memberStatus(row) === 'failed')
  return { items: members.slice(offset, offset + limit), total: members.length }
}

const bySeq = (rows: readonly StepCheckpoint[]): StepCheckpoint[] =>
  [...rows].sort((a, b) => a.seq - b.seq)
