/*
 * Singleton admission as a decision over rows. Pure: a store loads the rows of a key under its own locks,
 * asks here, and writes the answer in the same transaction. The slot is a tag on the run, so it survives
 * everything but a terminal status.
 */
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { byAge } from './run_rules.ts'
import type { SingletonClaim } from './singleton_claims.ts'

/** Holds a slot. */
export const SINGLETON_ADMITTED = 'durable:singleton:admitted'
/** Known to this kind of admission, so that a missing `admitted` really means "waiting". */
export const SINGLETON_TRACKED = 'durable:singleton:tracked'

const isMarker = (tag: string): boolean => tag === SINGLETON_ADMITTED || tag === SINGLETON_TRACKED

/** Tags without the two markers; `singleton:<key>` stays. The same reference when there are none. */
export function withoutSingletonMarkers(tags: string[] | undefined): string[] | undefined {
  return tags?.some(isMarker) ? tags.filter((tag) => !isMarker(tag)) : tags
}

/**
 * Tags to persist when the claimant may hold a slot now; undefined when it must wait or is no longer
 * active. `rows` are the key's runs as locked; those of another key or no longer active are ignored.
 */
export function singletonAdmissionTags(
  rows: WorkflowRun[],
  claim: SingletonClaim
): string[] | undefined {
  const contenders = rows.filter((run) => contends(run, claim)).sort(byAge)
  const own = contenders.find((run) => run.id === claim.runId)
  if (!own) return undefined
  const marked = contenders.filter((run) => has(run, SINGLETON_ADMITTED))
  const unmarked = contenders.filter((run) => !has(run, SINGLETON_ADMITTED))
  if (marked.includes(own)) return withTags(own, SINGLETON_ADMITTED, SINGLETON_TRACKED)
  // Before admission was tracked, a run held its slot by being among the oldest that had begun.
  const legacy = unmarked
    .filter((run) => hasBegun(run) && !has(run, SINGLETON_TRACKED))
    .slice(0, Math.max(0, claim.limit - marked.length))
  const waiters = unmarked.filter((run) => !legacy.includes(run) && !isAhead(run, claim))
  const free = Math.max(0, claim.limit - marked.length - legacy.length)
  const admitted = legacy.includes(own) || waiters.slice(0, free).includes(own)
  return admitted ? withTags(own, SINGLETON_ADMITTED, SINGLETON_TRACKED) : undefined
}

/** What parks a denied run; undefined when it is no longer active and must not be touched. */
export function singletonAdmissionDenialPatch(
  run: WorkflowRun,
  claim: SingletonClaim
): Partial<WorkflowRun> | undefined {
  if (isTerminalStatus(run.status)) return undefined
  return {
    status: 'suspended',
    wakeAt: claim.retryAt,
    tags: withTags(run, SINGLETON_TRACKED),
    updatedAt: new Date(claim.nowMs),
  }
}

const contends = (run: WorkflowRun, claim: SingletonClaim): boolean =>
  run.workflow === claim.workflow && !isTerminalStatus(run.status) && has(run, claim.tag)

const has = (run: WorkflowRun, tag: string): boolean => run.tags?.includes(tag) ?? false

const hasBegun = (run: WorkflowRun): boolean =>
  run.status === 'running' || run.status === 'suspended'

/** A delayed start that has not begun does not block the key before its time. */
const isAhead = (run: WorkflowRun, claim: SingletonClaim): boolean =>
  run.id !== claim.runId &&
  run.status === 'suspended' &&
  run.turns === undefined &&
  (run.wakeAt ?? 0) > claim.nowMs

const withTags = (run: WorkflowRun, ...tags: string[]): string[] => [
  ...new Set([...(run.tags ?? []), ...tags]),
]
