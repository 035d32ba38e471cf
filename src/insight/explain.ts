/*
 * Why a run is where it is, and what comes next. Pure: no sentence claims what the record does not hold.
 */
import { SINGLETON_ADMITTED } from '../store/ports/singleton_rules.ts'
import type { Explanation, NextCode, RemedyCode } from '../types/explanation.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import { isTerminalStatus } from '../types/run.ts'
import type { ExplainFacts } from './explain_facts.ts'
import { waitsOf } from './explain_waits.ts'

/** Longer than a worker's tick by far. */
const SOON_MS = 60_000
const MOST_ALSO = 4

export function explain(facts: ExplainFacts): Explanation {
  const { run } = facts
  if (isTerminalStatus(run.status)) return ended(facts)
  if (run.cancelRequestedAt !== undefined) return cancelling(facts)
  if (run.status === 'pending') return pending(facts)
  if (run.status === 'running') return running(facts)
  if (run.status === 'blocked') return blocked(facts)
  return suspended(facts)
}

/** Codes in the order of what a sentence needs: why, how bad, since when, what next. */
const told = (
  code: Explanation['code'],
  severity: Explanation['severity'],
  since: number | undefined,
  next: Explanation['next'] | NextCode,
  more: { params?: Explanation['params']; remedies?: RemedyCode[] } = {}
): Explanation => ({
  code,
  severity,
  ...(since === undefined ? {} : { since }),
  next: typeof next === 'string' ? { what: next } : next,
  params: more.params ?? {},
  remedies: more.remedies ?? [],
})

function cancelling({ run, undos }: ExplainFacts): Explanation {
  const params: Explanation['params'] = { undone: undos.filter(isDone).length }
  if (run.cancelRequestedBy !== undefined) params.by = run.cancelRequestedBy
  const current = [...undos].sort((a, b) => b.seq - a.seq).find((row) => !isOver(row))
  if (current) params.undo = current.name
  return told('cancelling', 'watch', run.cancelRequestedAt, 'ends_cancelled', { params })
}

const isDone = (row: StepCheckpoint): boolean => row.status === 'completed'
const isOver = (row: StepCheckpoint): boolean => isDone(row) || row.status === 'failed'

function pending({ run, nowMs }: ExplainFacts): Explanation {
  const since = run.updatedAt.getTime()
  if (nowMs - since < SOON_MS) return told('pending_queued', 'calm', since, 'next_tick')
  const params = {
    namespace: run.namespace ?? 'default',
    workflow: `${run.workflow}@${run.workflowVersion}`,
  }
  return told('pending_undriven', 'act', since, 'nothing', { params, remedies: ['start_worker'] })
}

function running(facts: ExplainFacts): Explanation {
  const { run, nowMs, open, windows } = facts
  const until = run.lockedUntil
  if (until === undefined || until <= nowMs) {
    const params: Explanation['params'] = { pickups: run.recoveryAttempts ?? 0 }
    if (Number.isFinite(windows.maxRecoveryAttempts)) params.limit = windows.maxRecoveryAttempts
    return told('lease_expired', 'watch', until ?? run.updatedAt.getTime(), 'recovery', {
      params,
      remedies: ['start_worker'],
    })
  }
  const params: Explanation['params'] = { until }
  const inside = open.find(({ kind, status }) => kind === 'local' && status === 'running')
  if (inside) params.step = inside.name
  const steps = waitsOf({ ...facts, waiters: [], last: [] }).map((wait) => wait.explanation)
  const [first, ...others] = steps
  // The body watches a step that it sent.
  if (first && !inside) return withAlso(first, others)
  return withAlso(told('running', 'calm', run.claimedAt?.getTime(), 'result', { params }), steps)
}

function blocked({ run }: ExplainFacts): Explanation {
  const code = run.error?.code?.includes('protocol') ? 'blocked_protocol' : 'blocked_capability'
  const params = { message: run.error?.message ?? 'no live worker can run the next step' }
  const next: Explanation['next'] = { what: 'looked_at' }
  if (run.wakeAt !== undefined) next.at = run.wakeAt
  return told(code, 'act', undefined, next, { params, remedies: ['start_worker'] })
}

function suspended(facts: ExplainFacts): Explanation {
  const { run, nowMs } = facts
  const { wakeAt, wakeRequestedAt } = run
  const overdue = [wakeAt, wakeRequestedAt].filter((at) => at !== undefined && at <= nowMs)
  const dueSince = overdue.length > 0 ? Math.min(...(overdue as number[])) : undefined
  if (run.turns === undefined && wakeAt !== undefined && dueSince === undefined) {
    return told('delayed_start', 'calm', run.createdAt.getTime(), { at: wakeAt, what: 'starts' })
  }
  const queued = singletonQueued(facts)
  if (queued) return queued
  const waits = waitsOf(facts).map(({ explanation }) => explanation)
  if (dueSince !== undefined) {
    const late = nowMs - dueSince >= SOON_MS
    const remedies: RemedyCode[] = late ? ['start_worker'] : []
    const due = told('due', late ? 'act' : 'calm', dueSince, late ? 'nothing' : 'next_tick', {
      remedies,
    })
    return withAlso(due, waits)
  }
  const [first, ...others] = waits
  if (first) return withAlso(first, others)
  if (wakeAt !== undefined) {
    const since = run.updatedAt.getTime()
    return told('outside', 'watch', since, { at: wakeAt, what: 'looked_at' })
  }
  return told('unreachable', 'act', run.updatedAt.getTime(), 'nothing', { remedies: ['retry'] })
}

function singletonQueued({ run, singleton }: ExplainFacts): Explanation | undefined {
  if (!singleton || run.tags?.includes(SINGLETON_ADMITTED)) return undefined
  const params: Explanation['params'] = { key: singleton.key, place: singleton.before + 1 }
  const [holder] = singleton.holders
  if (holder) params.holder = holder.id
  if (singleton.holders.length > 1) params.holders = singleton.holders.length
  const since = run.createdAt.getTime()
  return told('singleton_queued', 'calm', since, 'slot', { params })
}

function withAlso(explanation: Explanation, others: Explanation[]): Explanation {
  const also = [...(explanation.also ?? []), ...others]
  if (also.length === 0) return explanation
  const result = { ...explanation, also: also.slice(0, MOST_ALSO) }
  if (also.length > MOST_ALSO) result.more = also.length - MOST_ALSO
  return result
}

function ended(facts: ExplainFacts): Explanation {
  const { run, undos, follower } = facts
  const at = run.updatedAt.getTime()
  const params: Explanation['params'] = {}
  const undone = undos.filter(isDone).length
  if (undone > 0) params.undone = undone
  const notUndone = undos.filter(({ status }) => status === 'failed').length
  if (notUndone > 0) params.notUndone = notUndone
  if (follower !== undefined) params.follower = follower
  if (run.status === 'completed') {
    const continued = run.output === undefined && follower !== undefined
    return told(continued ? 'continued' : 'completed', 'calm', at, 'nothing', { params })
  }
  if (run.error?.message !== undefined) params.message = run.error.message
  if (run.error?.code !== undefined) params.code = run.error.code
  if (run.status === 'cancelled') {
    if (run.cancelRequestedBy !== undefined) params.by = run.cancelRequestedBy
    const timedOut = run.error?.code === 'execution_timeout'
    return told(timedOut ? 'timed_out' : 'cancelled', timedOut ? 'watch' : 'calm', at, 'nothing', {
      params,
      remedies: timedOut ? ['retry_with_input'] : [],
    })
  }
  const step = run.error?.step
  if (step) params.step = step.name
  const row = step && facts.last.find(({ seq }) => seq === step.seq)
  if (row && row.attempts > 1) params.attempts = row.attempts
  if (run.recoveryAttempts !== undefined) params.pickups = run.recoveryAttempts
  // What was undone is not done again by a retry.
  const remedies: RemedyCode[] = undone > 0 ? ['retry_with_input'] : ['retry', 'retry_with_input']
  return told(run.status as 'failed' | 'dead', 'act', at, 'nothing', { params, remedies })
}
