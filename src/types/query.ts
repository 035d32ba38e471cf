/*
 * Queries over runs and checkpoints. All predicates of one query must hold; times are epoch ms.
 */
import type { CheckpointStatus } from './checkpoint.ts'
import type { RunStatus } from './run.ts'

export type AttributeOperator = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'

/**
 * One search-attribute predicate. Numbers compare numerically with numbers only; strings and booleans
 * as text. A missing key matches no operator, `ne` included.
 */
export interface AttributeFilter {
  key: string
  op: AttributeOperator
  value: string | number | boolean
}

/** Filter, order and page of a run listing. Newest first, ties by id descending. */
export interface RunQuery {
  workflow?: string
  status?: RunStatus
  /** Any of; `[]` matches nothing. */
  statuses?: RunStatus[]
  namespace?: string
  /** Exact element of the run's tags. */
  tag?: string
  /** Exact; `null` selects runs without one. */
  origin?: string | null
  attributes?: AttributeFilter[]
  createdBefore?: number
  createdAfter?: number
  updatedBefore?: number
  updatedAfter?: number
  /** `wakeAt <=`; never matches a run without one. */
  wakeBefore?: number
  /** Literal, case-sensitive prefix of the run id. */
  idPrefix?: string
  /** Keyset cursor: only runs after this one in listing order. */
  before?: { createdAt: number; id: string }
  /** Oldest first, ties by id ascending; not with `before`. */
  oldestFirst?: boolean
  /** 1-based; default 1. */
  page?: number
  /** Rows a page; absent means all. */
  size?: number
}

export type RunFilter = Omit<RunQuery, 'page' | 'size' | 'before' | 'oldestFirst'>
export type RunFacetQuery = Omit<RunFilter, 'status' | 'statuses' | 'origin'>

export interface RunFacetRow {
  status: RunStatus
  origin: string | null
  count: number
}

export type RunValueAxis =
  'workflow' | 'tag' | 'namespace' | 'origin' | 'workflowVersion' | 'attributeKey'

export interface RunValueFacetOptions {
  search?: string
  limit?: number
}

export interface RunValueFacetRow {
  value: string
  count: number
}

/** A slice of one run's timeline, ascending by position unless `descending`. */
export interface CheckpointQuery {
  fromSeq?: number
  toSeq?: number
  group?: string
  excludeGroups?: string[]
  statuses?: CheckpointStatus[]
  namePrefixes?: string[]
  seqs?: number[]
  descending?: boolean
  offset?: number
  limit?: number
}

/** Both bounds inclusive; `statuses: []` matches nothing. */
export interface CheckpointRange {
  fromSeq?: number
  toSeq?: number
  statuses?: CheckpointStatus[]
}

export interface CheckpointKey {
  runId: string
  seq: number
}

/** Aggregates of the rows of one fan group; `group: null` are the ungrouped rows. */
export interface CheckpointGroupStats {
  group: string | null
  size: number
  firstSeq: number
  lastSeq: number
  counts: Partial<Record<CheckpointStatus, number>>
  /** Sum. */
  attempts: number
  /** Earliest, epoch ms. */
  enqueuedAt?: number
  /** Earliest. */
  startedAt?: number
  /** Latest of settled rows. */
  finishedAt?: number
  /** Latest. */
  lastHeartbeatAt?: number
}

export interface CheckpointStats {
  total: number
  maxSeq?: number
  groups: CheckpointGroupStats[]
}

/**
 * The window a page stands for. No `size` means no bound. Non-integers floor, `page` clamps to 1 and
 * up, a negative `size` to 0.
 */
export function runPageWindow(query: Pick<RunQuery, 'page' | 'size'>): {
  limit: number | undefined
  offset: number
} {
  if (query.size === undefined) return { limit: undefined, offset: 0 }
  const size = Math.max(0, Math.floor(query.size) || 0)
  const page = Math.max(1, Math.floor(query.page ?? 1) || 1)
  return { limit: size, offset: (page - 1) * size }
}
