/*
 * What a suspended run waits for, one explanation a wait. Pure.
 */
import { timeoutName } from '../foundation/ids.ts'
import { isFailFastGroup } from '../foundation/ids.ts'
import { readEventToken } from '../foundation/tokens.ts'
import type { SignalWaiter, StepCheckpoint } from '../types/checkpoint.ts'
import type { Explanation, ExplanationCode, RemedyCode } from '../types/explanation.ts'
import type { ExplainFacts, SlotFacts } from './explain_facts.ts'

/** A wait and where it stands in the history. */
export interface Wait {
  seq: number
  explanation: Explanation
}

/** A worker reports at least that often. */
const BEATS_WITHIN_MS = 90_000
/** A queue that is empty for that long has lost the task. */
const LOST_AFTER_MS = 10 * 60_000

/** Every wait, the ones that need attention first, then by position, the last first. */
export function waitsOf(facts: ExplainFacts): Wait[] {
  const alone = facts.open.filter((row) => row.parallelGroup === undefined)
  const waits = [
    ...alone.flatMap((row) => stepWait(row, facts) ?? []),
    ...fanWaits(facts),
    ...facts.slots.map(slotWait),
    ...facts.waiters
      .filter((waiter) => waiter.parallelGroup === undefined)
      .map((waiter) => ({ seq: waiter.seq, explanation: waiterWait(waiter, facts) })),
    ...facts.last.flatMap((row) => sleepWait(row, facts) ?? []),
  ]
  return waits.sort(
    (a, b) => RANK[b.explanation.severity] - RANK[a.explanation.severity] || b.seq - a.seq
  )
}

const RANK = { calm: 0, watch: 1, act: 2 }

const slotWait = ({ queue, seq, retryAt }: SlotFacts): Wait => ({
  seq,
  explanation: {
    code: 'slot_wait',
    severity: 'calm',
    next: { at: retryAt, what: 'slot_asked' },
    params: { queue },
    remedies: [],
  },
})

function sleepWait(row: StepCheckpoint, { nowMs }: ExplainFacts): Wait | undefined {
  if (row.kind !== 'sleep' || row.name !== 'sleep' || row.order !== undefined) return undefined
  if (row.wakeAt === undefined || row.wakeAt <= nowMs) return undefined
  return {
    seq: row.seq,
    explanation: {
      code: 'sleep',
      severity: 'calm',
      since: row.enqueuedAt.getTime(),
      next: { at: row.wakeAt, what: 'wakes' },
      params: {},
      remedies: [],
    },
  }
}

function stepWait(row: StepCheckpoint, facts: ExplainFacts): Wait | undefined {
  if (row.kind !== 'remote') return undefined
  const params: Explanation['params'] = { step: row.name, seq: row.seq, attempt: row.attempts }
  if (row.workerGroup !== undefined) params.group = row.workerGroup
  if (row.status === 'pending') {
    return { seq: row.seq, explanation: { ...stepOut(row, facts, params), params } }
  }
  if (row.status !== 'failed' || row.wakeAt === undefined) return undefined
  params.message = row.error?.message ?? 'failed'
  const explanation: Explanation = {
    code: 'step_backoff',
    severity: 'watch',
    since: row.finishedAt.getTime(),
    next: { at: row.wakeAt, what: 'attempt' },
    params,
    remedies: [],
  }
  return { seq: row.seq, explanation }
}

/** A step that is out. Adds to `params` what the sentence says. */
function stepOut(
  row: StepCheckpoint,
  { groups, nowMs, windows }: ExplainFacts,
  params: Explanation['params']
): Omit<Explanation, 'params'> {
  const sentAt = row.enqueuedAt.getTime()
  const beatAt = row.lastHeartbeatAt?.getTime()
  const again = afterSilence(row, windows.remoteRedispatchMs !== undefined)
  if (beatAt !== undefined) {
    params.sentAt = sentAt
    const progress = progressOf(row.heartbeatProgress)
    if (progress !== undefined) params.progress = progress
    const alive = nowMs - beatAt <= BEATS_WITHIN_MS
    if (alive) return step('step_working', 'calm', beatAt, { what: 'result' })
    const severity = nowMs - beatAt >= windows.stalledAfterMs ? 'act' : 'watch'
    return step('step_silent', severity, beatAt, again, ['redispatch'])
  }
  const age = nowMs - sentAt
  const group = row.workerGroup === undefined ? undefined : groups.get(row.workerGroup)
  if (group) {
    params.depth = group.depth
    params.workers = group.liveWorkers
    if (group.liveWorkers === 0) {
      return step('step_starved', 'act', sentAt, { what: 'worker' }, ['start_worker'])
    }
    if (group.depth > 0 || age < LOST_AFTER_MS) {
      return step('step_in_queue', 'calm', sentAt, { what: 'result' })
    }
  } else if (age < windows.stalledAfterMs) {
    return step('step_out', 'calm', sentAt, { what: 'result' })
  }
  return step('step_lost', 'act', sentAt, again, ['redispatch'])
}

/** What ends the silence of a step, if anything does. The window before its first beat is not recorded. */
function afterSilence(
  { timeoutMs, lastHeartbeatAt, wakeAt }: StepCheckpoint,
  isSentAgain: boolean
): Explanation['next'] {
  if (timeoutMs !== undefined) {
    if (!lastHeartbeatAt) return { what: 'times_out' }
    return { what: 'times_out', at: lastHeartbeatAt.getTime() + timeoutMs }
  }
  return wakeAt !== undefined && isSentAgain
    ? { at: wakeAt, what: 'sent_again' }
    : { what: 'nothing' }
}

const step = (
  code: ExplanationCode,
  severity: Explanation['severity'],
  since: number,
  next: Explanation['next'],
  remedies: RemedyCode[] = []
): Omit<Explanation, 'params'> => ({ code, severity, since, next, remedies })

/** A number is a share or a percentage as the author reported it; anything else in a few characters. */
function progressOf(progress: unknown): string | undefined {
  if (progress === undefined || progress === null) return undefined
  const text = typeof progress === 'string' ? progress : JSON.stringify(progress)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

/** One for each fan, told by its counts and by its member that fares worst. */
function fanWaits(facts: ExplainFacts): Wait[] {
  const groups = new Set<string>()
  for (const { parallelGroup } of [...facts.open, ...facts.waiters]) {
    if (parallelGroup !== undefined) groups.add(parallelGroup)
  }
  return [...groups].map((group) => fanWait(group, facts))
}

function fanWait(group: string, facts: ExplainFacts): Wait {
  const rows = facts.open.filter((row) => row.parallelGroup === group)
  const own = facts.waiters.filter((waiter) => waiter.parallelGroup === group)
  const members = [
    ...rows.flatMap((row) => stepWait(row, facts) ?? []),
    ...own.map((waiter) => ({ seq: waiter.seq, explanation: waiterWait(waiter, facts) })),
  ].sort((a, b) => RANK[b.explanation.severity] - RANK[a.explanation.severity] || a.seq - b.seq)
  const stats = facts.fans.get(group)
  const { pending = 0, running = 0, completed = 0, failed = 0 } = stats?.counts ?? {}
  const size = stats?.size ?? members.length
  const total = Number(/:n(\d+)(?::ff)?$/.exec(group)?.[1] ?? size)
  const [worst] = members
  const seq = stats?.firstSeq ?? worst?.seq ?? 0
  const params: Explanation['params'] = {
    group,
    total,
    out: stats ? pending + running : members.length,
    completed,
    failed,
    notStarted: Math.max(0, total - size),
  }
  const name = rows[0]?.name
  if (name !== undefined && !name.startsWith('signal:')) params.step = name
  const explanation: Explanation = {
    code: 'fan_open',
    severity: worst?.explanation.severity ?? 'calm',
    next: { what: isFailFastGroup(group) ? 'first_failure' : 'fan_ends' },
    params,
    remedies: worst?.explanation.remedies ?? [],
  }
  if (stats?.enqueuedAt !== undefined) explanation.since = stats.enqueuedAt
  if (worst) explanation.also = [worst.explanation]
  return { seq, explanation }
}

function waiterWait(waiter: SignalWaiter, facts: ExplainFacts): Explanation {
  const { token } = waiter
  if (token.startsWith('child:')) return childWait(token.slice('child:'.length), waiter, facts)
  const { code, name, label = token, remedies } = newsOf(token, waiter, facts)
  const deadline = [...facts.last, ...facts.open].find(
    (row) => row.name === timeoutName(label) && Math.abs(row.seq - waiter.seq) === 1
  )?.wakeAt
  return {
    code,
    severity: 'calm',
    ...sinceOf(waiter),
    next: deadline === undefined ? { what: 'news' } : { at: deadline, what: 'gives_up' },
    params: { name, token },
    remedies,
  }
}

const sinceOf = ({ createdAt }: SignalWaiter) =>
  createdAt === undefined ? {} : { since: createdAt.getTime() }

interface News {
  code: ExplanationCode
  name: string
  /** What the row of a time limit is named after; default the token. */
  label?: string
  remedies: RemedyCode[]
}

function newsOf(token: string, { runId, seq }: SignalWaiter, facts: ExplainFacts): News {
  const after = (prefix: string) =>
    token.startsWith(prefix) ? token.slice(prefix.length) : undefined
  const event = readEventToken(token)?.name
  if (event !== undefined) {
    return { code: 'event', name: event, label: `event:${event}`, remedies: ['publish_event'] }
  }
  const task = after(`task:${runId}:`)
  if (task !== undefined) return { code: 'task', name: task, remedies: ['complete_task'] }
  const update = after(`update:${runId}:`)
  if (update !== undefined) return { code: 'update', name: update, remedies: ['update'] }
  if (token === `wh:${runId}:${seq}`) return { code: 'webhook', name: token, remedies: ['signal'] }
  if (token === `bp:${runId}:${seq}`) {
    const row = [...facts.open, ...facts.last].find((each) => each.seq === seq)
    const label = /^breakpoint:(.*)$/s.exec(row?.name ?? '')?.[1]
    return { code: 'breakpoint', name: label ?? '', remedies: ['continue'] }
  }
  if (token === `entityreply:${runId}:${seq}`) return { code: 'entity', name: token, remedies: [] }
  return { code: 'signal', name: token, remedies: ['signal'] }
}

const DEEPEST_CHAIN = 5

function childWait(childId: string, waiter: SignalWaiter, facts: ExplainFacts): Explanation {
  const child = facts.children.get(childId)
  const explanation: Explanation = {
    code: 'child',
    severity: 'calm',
    ...sinceOf(waiter),
    next: { what: 'child_ends' },
    params: { child: childId },
    remedies: [],
  }
  if (child === null) return { ...explanation, severity: 'watch' }
  if (!child) return explanation
  const { run, explanation: cause } = child
  explanation.params.workflow = `${run.workflow}@${run.workflowVersion}`
  explanation.severity = cause.severity
  explanation.cause = cause
  explanation.via = [{ runId: run.id, workflow: run.workflow }, ...(cause.via ?? [])].slice(
    0,
    DEEPEST_CHAIN
  )
  return explanation
}
