/*
 * What must be true when all is over. Plain data in, sentences out; verdicts.ts reads the data.
 */
import { SINGLETON_ADMITTED, SINGLETON_TRACKED } from '../../src/store/ports/singleton_rules.ts'
import type { RunStatus } from '../../src/types/run.ts'
import { judge as judgeGuests } from '../singletons/judge.ts'
import type { Expected } from './expectations.ts'
import type { Line } from './ledger.ts'
import { type Job, LINKS_OF_CHAIN, MEMBERS_OF_FAMILY, QUOTA, SINGLETON_LIMIT } from './workflows.ts'

/** A run that the outside started, in the order in which it did. */
export interface Asked {
  runId: string
  kind: string
  job: Job
  expected: (version: string) => Expected
}

export interface Found {
  id: string
  workflow: string
  workflowVersion: string
  status: RunStatus
  output?: unknown
  error?: unknown
  tags?: string[]
}

export interface Aftermath {
  asked: Asked[]
  /** Every run there is, entities apart. */
  runs: Found[]
  ledger: Line[]
  /** What the accounts hold, by key. */
  sums: Record<string, number | undefined>
}

/** Amounts of one deposit. */
const DEPOSIT = 1 + 2
const SCHEDULED = 'sched:window:'
const SLOT_TAGS: string[] = [SINGLETON_ADMITTED, SINGLETON_TRACKED]

/** Answers what is wrong. */
export function judge({ asked, runs, ledger, sums }: Aftermath): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const lines = new Map<string, string[]>()
  for (const { runId, what } of ledger) lines.set(runId, [...(lines.get(runId) ?? []), what])
  const askedIds = new Set(asked.map(({ runId }) => runId))
  const others = runs.filter(({ id }) => !askedIds.has(id))
  return [
    ...asked.flatMap((each) => judgeAsked(each, byId.get(each.runId), lines.get(each.runId) ?? [])),
    ...others.flatMap((run) => judgeOther(run, lines.get(run.id) ?? [])),
    ...judgeCounts(asked, others),
    ...judgeSlots(asked, byId, ledger),
    ...judgeSlotsLeft(runs),
    ...judgeWindows(runs),
    ...judgeSums(asked, sums),
  ]
}

function judgeAsked(asked: Asked, run: Found | undefined, lines: string[]): string[] {
  const { runId } = asked
  if (!run) return [`${runId} is not there`]
  const { status, output, once, undone = [] } = asked.expected(run.workflowVersion)
  const problems: string[] = []
  if (run.status !== status) {
    problems.push(`${runId} is ${run.status}, not ${status}: ${JSON.stringify(run.error)}`)
  }
  if (output !== undefined && JSON.stringify(run.output) !== JSON.stringify(output)) {
    problems.push(`${runId} came to ${JSON.stringify(run.output)}, not ${JSON.stringify(output)}`)
  }
  const done = lines.filter((line) => !line.startsWith('undo '))
  if (status === 'cancelled') {
    if (new Set(done).size !== done.length) problems.push(`${runId} did ${done.join(', ')}`)
    return problems
  }
  if (done.toSorted().join() !== once.toSorted().join()) {
    problems.push(`${runId} did ${done.join(', ')}, not ${once.join(', ')}`)
  }
  const undos = [...new Set(lines.filter((line) => line.startsWith('undo ')))]
  const wanted = undone.map((what) => `undo ${what}`).toReversed()
  // Again after a kill, but first in the right order.
  if (undos.join() !== wanted.join()) {
    problems.push(`${runId} did ${undos.join(', ')}, not ${wanted.join(', ')}`)
  }
  return problems
}

/** Runs that other runs or the schedule started: each did its one thing. */
function judgeOther(run: Found, lines: string[]): string[] {
  const problems: string[] = []
  if (run.status !== 'completed') problems.push(`${run.id} is ${run.status}`)
  const right = run.workflow === 'chain' ? /^link \d$/ : new RegExp(`^${run.workflow}$`)
  if (lines.length !== 1 || !right.test(lines[0])) {
    problems.push(`${run.id} of ${run.workflow} did ${lines.join(', ') || 'nothing'}`)
  }
  return problems
}

function judgeCounts(asked: Asked[], others: Found[]): string[] {
  const wanted: [string, string, number][] = [
    ['member', 'family', MEMBERS_OF_FAMILY + 1],
    ['chain', 'chain', LINKS_OF_CHAIN - 1],
  ]
  return wanted.flatMap(([workflow, kind, each]) => {
    const count = others.filter((run) => run.workflow === workflow).length
    const right = each * asked.filter((one) => one.kind === kind).length
    return count === right ? [] : [`${count} runs of ${workflow} were started, not ${right}`]
  })
}

/** Singletons and quotas: never more inside than the limit; singletons oldest first. */
function judgeSlots(asked: Asked[], byId: Map<string, Found>, ledger: Line[]): string[] {
  const keyOf = (one: Asked) => (one.kind === 'guest' ? one.job.key : QUOTA.key)
  const problems: string[] = []
  for (const [kind, limit] of [
    ['guest', SINGLETON_LIMIT],
    ['render', QUOTA.limit],
  ] as const) {
    const own = new Map(asked.filter((one) => one.kind === kind).map((one) => [one.runId, one]))
    const age = new Map<string, number>()
    const seen = new Map<string, number>()
    for (const [runId, one] of own) {
      const place = seen.get(keyOf(one)) ?? 0
      seen.set(keyOf(one), place + 1)
      if (byId.has(runId)) age.set(runId, place)
    }
    const moves = ledger.flatMap(({ runId, what }) => {
      const one = own.get(runId)
      if (!one || (what !== 'enter' && what !== 'leave')) return []
      return [{ runId, key: keyOf(one), what } as const]
    })
    problems.push(...judgeGuests(moves, age, limit))
  }
  return problems
}

/** The end of a run gives its slot back: nothing of it is on the row. */
function judgeSlotsLeft(runs: Found[]): string[] {
  return runs.flatMap(({ id, tags = [] }) =>
    tags.filter((tag) => SLOT_TAGS.includes(tag)).map((tag) => `${id} is over and has ${tag}`)
  )
}

/** Every window from the first to the last has a run: a run id names its window, so none has two. */
function judgeWindows(runs: Found[]): string[] {
  const windows = runs
    .filter(({ id }) => id.startsWith(SCHEDULED))
    .map(({ id }) => Number(id.slice(SCHEDULED.length)))
    .toSorted((a, b) => a - b)
  if (windows.length === 0) return ['no window of the schedule was started']
  const [first] = windows
  const missing = Array.from({ length: windows.at(-1)! - first }, (_, i) => first + i).filter(
    (window) => !windows.includes(window)
  )
  return missing.length === 0 ? [] : [`windows ${missing.join(', ')} were not started`]
}

function judgeSums(asked: Asked[], sums: Aftermath['sums']): string[] {
  const deposits = asked.filter(({ kind }) => kind === 'deposit')
  const keys = new Set([...Object.keys(sums), ...deposits.map(({ job }) => job.key)])
  return [...keys].flatMap((key) => {
    const right = DEPOSIT * deposits.filter(({ job }) => job.key === key).length
    return sums[key] === right ? [] : [`account ${key} holds ${sums[key]}, not ${right}`]
  })
}
