/*
 * Runs against those of the first course. Where branches of a body run side by side, a crash may change
 * which of them is told first, and with it the positions of their steps and the ids that derive from them.
 * That is no difference: such runs are compared by what they hold, not by where.
 */
import { parentRunIdOf } from '../../foundation/ids.ts'
import { decodeJson, encodeJson, jsonEqual } from '../../foundation/json.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { describeDifference, differenceOf, shown } from '../difference.ts'
import type { Findings } from './finding.ts'
import type { RunEnd } from './options.ts'
import { linesOf, timelineDiff } from './timeline.ts'
import type { Course } from './world.ts'

export interface JudgeOptions {
  findings: Findings
  first: Course
  compare: (expected: RunEnd, actual: RunEnd) => boolean
}

export const sameEnd = (expected: RunEnd, actual: RunEnd): boolean => jsonEqual(expected, actual)

/** How a run ended, without what differs between any two runs. */
export function endOf(run: WorkflowRun): RunEnd {
  const end: RunEnd = { runId: run.id, status: run.status }
  if (run.output !== undefined) end.output = run.output
  if (run.error) {
    const { message, code } = run.error
    end.error = code === undefined ? { message } : { message, code }
  }
  return end
}

/** A run of the first course and the one that took its place. */
interface Pair {
  expected: WorkflowRun
  actual: WorkflowRun
}

export function judgeRuns(course: Course, options: JudgeOptions, at: string): void {
  const { findings, first } = options
  const { pairs, missing, besides } = pairsOf(first, course)
  const shifted = pairs.some((pair) => isShifted(pair, first, course)) || hasMoved(pairs)
  for (const run of missing) {
    const message = `run ${run.id} of ${describeStart(run)} never began`
    findings.add({ kind: 'output', runId: run.id, message }, at)
  }
  for (const run of besides) {
    const message = `run ${run.id} of ${describeStart(run)} began besides`
    findings.add({ kind: 'output', runId: run.id, message }, at)
  }
  for (const pair of pairs) judgePair(pair, { course, options, at, shifted })
}

function judgePair(
  { expected, actual }: Pair,
  about: { course: Course; options: JudgeOptions; at: string; shifted: boolean }
): void {
  const { course, options, at, shifted } = about
  const { findings, first, compare } = options
  const rows = { expected: rowsOf(first, expected), actual: rowsOf(course, actual) }
  const diff = timelineDiff(rows.expected, rows.actual)
  const ends = [endOf(expected), { ...endOf(actual), runId: expected.id }].map((end) =>
    shifted ? withoutPositions(end) : end
  )
  if (shifted && course.ledger.novel > 0) for (const end of ends) delete end.output
  if (!compare(ends[0], ends[1])) {
    const message = endDifference(expected, actual, ends)
    findings.add({ kind: 'output', runId: expected.id, message, diff }, at)
  }
  if (diff !== undefined || shifted) return
  const given = differenceOf(expected.input, actual.input)
  if (given) {
    const message = describeDifference(`run ${expected.id}: its input`, given)
    findings.add({ kind: 'input', runId: expected.id, message }, at)
  }
  judgeInputs(expected.id, rows, findings, at)
}

function endDifference(expected: WorkflowRun, actual: WorkflowRun, ends: RunEnd[]): string {
  const about = `run ${expected.id}`
  if (expected.status !== actual.status) {
    const why = actual.error ? ` (${actual.error.message})` : ''
    return `${about} ended as ${actual.status}${why}, in the first run as ${expected.status}`
  }
  const found = differenceOf(ends[0], ends[1])
  return found ? describeDifference(`${about}: `, found) : `${about} ended otherwise`
}

/** Histories that are alike must have been given the same, too. */
function judgeInputs(
  runId: string,
  rows: { expected: StepCheckpoint[]; actual: StepCheckpoint[] },
  findings: Findings,
  at: string
): void {
  const actual = new Map(rows.actual.map((row) => [row.seq, row]))
  for (const { seq, name, kind, input } of rows.expected) {
    const found = kind === 'remote' ? differenceOf(input, actual.get(seq)?.input) : undefined
    if (!found) continue
    const subject = `run ${runId}, position ${seq}: the input of "${name}"`
    const message = describeDifference(subject, found)
    findings.add({ kind: 'input', runId, position: seq, message }, at)
  }
}

/** Runs with an id that somebody chose go by it; those with a derived one by what they were started as. */
function pairsOf(
  first: Course,
  course: Course
): { pairs: Pair[]; missing: WorkflowRun[]; besides: WorkflowRun[] } {
  const pairs: Pair[] = []
  const missing: WorkflowRun[] = []
  const left = new Map(course.runs)
  const take = (expected: WorkflowRun, found: WorkflowRun | undefined): boolean => {
    if (!found) return false
    left.delete(found.id)
    pairs.push({ expected, actual: found })
    return true
  }
  const derived = [...first.runs.values()].filter((run) => {
    if (isDerived(run)) return true
    if (!take(run, left.get(run.id))) missing.push(run)
    return false
  })
  // Those in their old place first, so that of several alike each keeps its own.
  const moved = derived.filter((run) => {
    const same = left.get(run.id)
    return !(same && sameStart(run, same) && take(run, same))
  })
  const unmatched = moved.filter(
    (run) =>
      !take(
        run,
        [...left.values()].find((one) => isDerived(one) && sameStart(run, one))
      )
  )
  for (const run of unmatched) {
    const same = left.get(run.id)
    if (!take(run, same)) missing.push(run)
  }
  return { pairs, missing, besides: [...left.values()] }
}

const isDerived = ({ id }: WorkflowRun): boolean => parentRunIdOf(id) !== undefined

const sameStart = (a: WorkflowRun, b: WorkflowRun): boolean =>
  a.workflow === b.workflow && jsonEqual(withoutPositions(a.input), withoutPositions(b.input))

const describeStart = ({ workflow, input }: WorkflowRun): string =>
  `workflow "${workflow}", input ${shown(input, 60)}`

const rowsOf = ({ rows }: Course, { id }: WorkflowRun): StepCheckpoint[] => rows.get(id) ?? []

const hasMoved = (pairs: Pair[]): boolean =>
  pairs.some(({ expected, actual }) => expected.id !== actual.id)

/** The same steps, in other places. */
function isShifted({ expected, actual }: Pair, first: Course, course: Course): boolean {
  const before = linesOf(rowsOf(first, expected))
  const after = linesOf(rowsOf(course, actual))
  if (before.every((line, at) => line === after[at])) return false
  const contents = (lines: string[]) => lines.map((line) => withoutPositions(line.slice(4))).sort()
  return jsonEqual(contents(before), contents(after))
}

/** A value in which ids that derive from positions are all the same. */
function withoutPositions<T>(value: T): T {
  const text = encodeJson(value, 'a compared value')
  return decodeJson(text?.replace(/\.(child|all)\.\d+(\.w\d+)?(\.\d+)?/g, '.$1.#')) as T
}
