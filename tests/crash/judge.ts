/*
 * The judgement on one run after every kill: what must hold whatever was killed when.
 */
import { isSettledStatus } from '../../src/types/checkpoint.ts'
import { isTerminalStatus } from '../../src/types/run.ts'
import { APPROVAL, answerOf, BAD_ORDER, EXPECTED } from './checkout.ts'
import type { Stored } from './data.ts'
import type { LogLine } from './protocol.ts'

/** What was durable when a life ended. */
export interface Death {
  life: string
  /** Lines of the log up to then. */
  lines: number
  /** Names of the settled steps of each run. */
  settled: Map<string, Set<string>>
}

export interface Evidence {
  runId: string
  bad: boolean
  stored: Stored
  lines: LogLine[]
  deaths: Death[]
  /** The timeline of the same order when nothing is killed. */
  timeline?: string[]
  /** What children refused or printed. */
  complaints: string[]
}

/** Everything that is wrong; nothing, when all is well. */
export function judge(evidence: Evidence): string[] {
  const { stored, complaints } = evidence
  if (!stored.run) return ['the run does not exist', ...complaints]
  if (!isTerminalStatus(stored.run.status)) {
    return [`the run is still ${stored.run.status}`, ...complaints]
  }
  return [
    ...complaints,
    ...outcome(evidence),
    ...ledger(evidence),
    ...executions(evidence),
    ...undoing(evidence),
    ...leftovers(evidence),
    ...history(evidence),
  ]
}

export const settledNames = ({ rows }: Stored): Set<string> =>
  new Set(rows.filter((row) => isSettledStatus(row.status)).map((row) => row.name))

/** A stored history without what differs from run to run. */
export const timelineOf = ({ rows }: Stored, runId: string): string[] =>
  rows.map((row) => `${row.seq} ${row.name.replace(runId, '…')} ${row.kind} ${row.status}`)

function outcome({ runId, bad, stored, lines }: Evidence): string[] {
  const { status, output, error } = stored.run!
  if (bad) {
    return status === 'failed' && error?.message === BAD_ORDER
      ? []
      : [`a bad order ended as ${status}: ${JSON.stringify(error ?? output)}`]
  }
  if (status !== 'completed') return [`the run ended as ${status}: ${JSON.stringify(error)}`]
  const { number, at, approval, ...answers } = output as Record<string, unknown>
  const problems: string[] = []
  const steps = EXPECTED.good.steps.filter((step) => step !== 'inspect')
  const expected = Object.fromEntries(steps.map((step) => [step, answerOf(step, runId)]))
  for (const step of steps) {
    if (answers[step] !== expected[step]) problems.push(`"${step}" answered ${answers[step]}`)
  }
  if (JSON.stringify(approval) !== JSON.stringify(APPROVAL)) {
    problems.push(`the approval reads ${JSON.stringify(approval)}`)
  }
  if (typeof at !== 'number') problems.push(`ctx.now answered ${JSON.stringify(at)}`)
  if (number !== lines.find((line) => line.number)?.number) {
    problems.push('the output has another order number than its steps saw')
  }
  return problems
}

/** Exactly once: one row for each transaction, whatever was killed. */
function ledger({ bad, stored, lines }: Evidence): string[] {
  const problems: string[] = []
  const entries = stored.ledger.map(({ entry }) => entry).sort()
  const expected = EXPECTED[bad ? 'bad' : 'good'].ledger
  if (entries.join() !== expected.join()) problems.push(`the ledger holds ${entries.join(', ')}`)
  const numbers = new Set(lines.flatMap(({ number }) => (number ? [number] : [])))
  for (const row of stored.ledger) numbers.add(row.number)
  if (numbers.size !== 1) problems.push(`steps saw ${numbers.size} different order numbers`)
  return problems
}

/** At most once in each life, never again once it was durable, and at least once. */
function executions({ runId, bad, lines, deaths }: Evidence): string[] {
  const problems: string[] = []
  const { steps, undos } = EXPECTED[bad ? 'bad' : 'good']
  for (const step of [...steps, ...undos]) {
    const begins = lines.filter((line) => line.step === step && line.at === 'begin')
    if (!lines.some((line) => line.step === step && line.at === 'end')) {
      problems.push(`"${step}" never ran to its end`)
    }
    const lives = begins.map((line) => line.life)
    for (const life of new Set(lives)) {
      const times = lives.filter((one) => one === life).length
      if (times > 1) problems.push(`"${step}" ran ${times} times in life ${life}`)
    }
    if (begins.length > deaths.length + 1) {
      problems.push(`"${step}" ran ${begins.length} times for ${deaths.length} kills`)
    }
  }
  const foreign = lines.filter(({ step }) => step && ![...steps, ...undos].includes(step))
  for (const { step } of foreign) problems.push(`"${step}" ran, which it never should`)
  for (const death of deaths) {
    const settled = death.settled.get(runId)
    const again = lines.filter(
      (line) => line.at === 'begin' && line.position >= death.lines && settled?.has(line.step ?? '')
    )
    for (const { step, life } of again) {
      problems.push(`"${step}" was durable when ${death.life} died and ran again in ${life}`)
    }
  }
  return problems
}

/** Highest position first. */
function undoing({ bad, lines }: Evidence): string[] {
  const expected = EXPECTED[bad ? 'bad' : 'good'].undos
  const begun = lines.filter(({ at, step }) => at === 'begin' && step?.startsWith('compensate:'))
  const order = [...new Set(begun.map(({ step }) => step))]
  return order.join() === expected.join() ? [] : [`undone in this order: ${order.join(', ')}`]
}

function leftovers({ stored }: Evidence): string[] {
  const problems: string[] = []
  const { lockedBy, lockedUntil } = stored.run!
  if (lockedBy !== undefined || lockedUntil !== undefined) {
    problems.push(`the lease of ${lockedBy} is left behind`)
  }
  if (stored.waiters > 0) problems.push(`${stored.waiters} waiters are left behind`)
  if (stored.buffered > 0) problems.push(`${stored.buffered} buffered signals are left behind`)
  return problems
}

function history({ runId, stored, timeline }: Evidence): string[] {
  if (!timeline) return []
  const found = timelineOf(stored, runId)
  if (found.join('\n') === timeline.join('\n')) return []
  return [`the history differs from that of an undisturbed run: ${timeline.join(' | ')}`]
}

/** For the report of a failure. */
export function describe({ stored, lines }: Evidence): string {
  const rows = stored.rows.map((row) => JSON.stringify(row)).join('\n      ')
  const told = lines.map((line) =>
    [line.life, line.at, line.step ?? line.text].filter(Boolean).join(' ')
  )
  return [
    `    run: ${JSON.stringify(stored.run)}`,
    `    rows: ${rows}`,
    `    log: ${told.join('\n         ')}`,
  ].join('\n')
}
