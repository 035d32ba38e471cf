/*
 * Whether everything came out right. Pure: takes what the shop reports and what the bodies noted, and
 * answers one sentence for everything that is wrong.
 */
import type { Expected, ExpectedPosition } from './orders.ts'
import {
  chronological,
  executionsOf,
  type JournalLine,
  type LedgerEntry,
  type OrderReport,
  type Report,
} from './report.ts'

export interface Evidence {
  report: Report
  journal: JournalLine[]
  /** Name of the process that was killed, and of the one that took over. */
  killed: string
  survivor: string
}

export function judge(expected: Expected[], evidence: Evidence): string[] {
  const { report } = evidence
  const wrong: string[] = []
  if (report.runs !== expected.length) {
    wrong.push(`there are ${report.runs} runs for ${expected.length} orders`)
  }
  if (report.unfinished !== 0) wrong.push(`not at their end: ${report.unfinished} runs`)
  for (const order of expected) {
    const { id } = order.input
    const found = report.orders.find((one) => one.id === id)
    const sentences = found ? judgeOrder(order, found, evidence) : ['is not there']
    wrong.push(...sentences.map((sentence) => `${id}: ${sentence}`))
  }
  return wrong
}

function judgeOrder(order: Expected, found: OrderReport, evidence: Evidence): string[] {
  return [
    ...unlessSame('the order is', found.status, order.status),
    ...unlessSame('the run is', found.run?.status, order.run),
    ...(found.run?.lockedBy ? [`the run is still leased to ${found.run.lockedBy}`] : []),
    ...found.steps.filter(isOpen).map(({ name, status }) => `"${name}" is still ${status}`),
    ...unlessSame(
      'the history is',
      chronological(found.steps).map(positionText).join(', '),
      order.history.map(positionText).join(', ')
    ),
    ...unlessSame(
      'the ledger is',
      found.ledger.map(entryText).join(', '),
      order.ledger.map(entryText).join(', ')
    ),
    ...judgeBodies(order, evidence),
  ]
}

/** Every body ran once, except the killed one: that ran once more, in the next worker. */
function judgeBodies(order: Expected, { journal, killed, survivor }: Evidence): string[] {
  const { id } = order.input
  const noted = journal.filter((line) => line.order === id)
  const wrong: string[] = []
  for (const { body, killed: wasKilled } of order.history) {
    if (!body) continue
    const began = executionsOf(noted, id, body)
    const ended = noted.filter((line) => line.body === body && line.event !== 'begin').length
    if (wasKilled) {
      wrong.push(...unlessSame(`"${body}" ran in`, began.join(', '), `${killed}, ${survivor}`))
    } else if (began.length !== 1) {
      wrong.push(`"${body}" ran ${began.length} times, not once`)
    }
    if (ended !== 1) wrong.push(`"${body}" ran to its end ${ended} times, not once`)
  }
  const strange = noted.find(({ body }) => !order.history.some((step) => step.body === body))
  if (strange) wrong.push(`"${strange.body}" ran, and should not have`)
  return wrong
}

function unlessSame(what: string, is: string | undefined, shouldBe: string): string[] {
  return is === shouldBe ? [] : [`${what} "${is}" and should be "${shouldBe}"`]
}

const isOpen = ({ status }: { status: string }) => status !== 'completed' && status !== 'failed'
const positionText = ({ name, status }: Pick<ExpectedPosition, 'name' | 'status'>) =>
  `${name} ${status}`
const entryText = ({ kind, cents }: LedgerEntry) => `${kind} ${cents}`
