/*
 * Compares what a run came to with what the first one came to.
 */
import { NonDeterminismError } from '../../errors.ts'
import { messageOf } from '../../foundation/failure.ts'
import { nextLinkId } from '../../foundation/ids.ts'
import { jsonEqual } from '../../foundation/json.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { describeDifference, differenceOf } from '../difference.ts'
import { type ReplayableWorkflow, replayHistory } from '../replay_check.ts'
import type { Findings } from './finding.ts'
import { BODY } from './ledger.ts'
import type { RunEnd } from './options.ts'
import { linesOf, timelineDiff } from './timeline.ts'
import type { Sighting } from './watched_body.ts'
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

/** The last run of the chain that began with `runId`. */
export function lastLink({ runs }: Course, runId: string): WorkflowRun {
  let run = runs.get(runId)!
  for (let next = runs.get(nextLinkId(run.id)); next; next = runs.get(nextLinkId(run.id))) {
    run = next
  }
  return run
}

/** Notes what bodies were seen to do. Answers whether one asked for something else than is recorded. */
export function judgeSightings(
  sightings: readonly Sighting[],
  { findings, course, at }: { findings: Findings; course: Course; at: string }
): boolean {
  for (const sighting of sightings) {
    if (sighting.kind === 'swallowed') {
      const { runId, call, signal, instead } = sighting
      const message =
        `the body caught the ${signal} of ${call} and ${instead}: ` +
        'rethrow what isWorkflowControlFlowSignal recognises'
      findings.add({ kind: 'swallowed_suspension', runId, message }, at)
      continue
    }
    const { error, read } = sighting
    findings.add(mismatch(error, course.rows.get(error.runId) ?? [], read), at)
  }
  return sightings.some(({ kind }) => kind === 'mismatch')
}

function mismatch(error: NonDeterminismError, rows: readonly StepCheckpoint[], read: string[]) {
  const { runId, seq, expected, recorded } = error
  const hint = read.length > 0 ? `; the body reads ${read.join(' and ')} outside of its ctx` : ''
  const upTo = linesOf(rows.filter((row) => row.seq >= 0 && row.seq < seq)).slice(-2)
  const position = String(seq).padStart(4)
  return {
    kind: 'non_determinism' as const,
    runId,
    position: seq,
    message: `run ${runId}, position ${seq}: recorded is ${recorded}, a replay asks for ${expected}${hint}`,
    diff: [
      ...upTo.map((line) => `  ${line}`),
      `- ${position}  ${recorded}`,
      `+ ${position}  ${expected}`,
    ].join('\n'),
  }
}

/** Replays every record from its beginning; `read` is what bodies read outside of their ctx meanwhile. */
export async function judgeReplays(
  workflows: ReadonlyMap<string, ReplayableWorkflow>,
  read: Set<string>,
  { findings, course, at }: { findings: Findings; course: Course; at: string }
): Promise<void> {
  for (const run of course.runs.values()) {
    const checkpoints = course.rows.get(run.id) ?? []
    // It died of it already.
    if (run.error?.code === NonDeterminismError.code) continue
    read.clear()
    try {
      await replayHistory(workflows, { run, checkpoints })
    } catch (error) {
      if (error instanceof NonDeterminismError) {
        findings.add(mismatch(error, checkpoints, [...read]), at)
      } else {
        const message = `a replay of the record: ${messageOf(error)}`
        findings.add({ kind: 'non_determinism', runId: run.id, message }, at)
      }
    }
  }
}

/** Ends, inputs and executions of a run against those of the first one. */
export function judgeCourse(
  course: Course,
  { findings, first, compare }: JudgeOptions,
  at: string
): void {
  if (course.stuck !== undefined) {
    const [runId] = course.runs.keys()
    findings.add({ kind: 'stuck', runId, message: course.stuck }, at)
  }
  for (const runId of new Set([...first.runs.keys(), ...course.runs.keys()])) {
    const expected = first.runs.get(runId)
    const actual = course.runs.get(runId)
    const diff = timelineDiff(first.rows.get(runId) ?? [], course.rows.get(runId) ?? [])
    if (!expected || !actual) {
      const message = expected ? `run ${runId} never began` : `run ${runId} began besides`
      findings.add({ kind: 'output', runId, message, diff }, at)
      continue
    }
    if (course.stuck === undefined && !compare(endOf(expected), endOf(actual))) {
      findings.add({ kind: 'output', runId, message: endDifference(expected, actual), diff }, at)
    }
    if (diff === undefined) judgeInputs(expected, actual, { first, course, findings, at })
  }
  for (const { runId, what, step, times, allowed } of course.ledger.excessOver(first.ledger)) {
    const subject = what === BODY ? `step "${step}"` : `${what} in step "${step}"`
    const message = `run ${runId}: ${subject} ran ${times} times, where ${allowed} are allowed`
    findings.add({ kind: 'effect', runId, message }, at)
  }
}

function endDifference(expected: WorkflowRun, actual: WorkflowRun): string {
  const about = `run ${expected.id}`
  if (expected.status !== actual.status) {
    const why = actual.error ? ` (${actual.error.message})` : ''
    return `${about} ended as ${actual.status}${why}, in the first run as ${expected.status}`
  }
  const found = differenceOf(endOf(expected), endOf(actual))
  return found ? describeDifference(`${about}: `, found) : `${about} ended otherwise`
}

/** Histories that are alike must have been given the same, too. */
function judgeInputs(
  expected: WorkflowRun,
  actual: WorkflowRun,
  about: { first: Course; course: Course; findings: Findings; at: string }
): void {
  const { first, course, findings, at } = about
  const runId = expected.id
  const given = differenceOf(expected.input, actual.input)
  if (given) {
    const message = describeDifference(`run ${runId}: its input`, given)
    findings.add({ kind: 'input', runId, message }, at)
  }
  const rows = new Map((course.rows.get(runId) ?? []).map((row) => [row.seq, row]))
  for (const row of first.rows.get(runId) ?? []) {
    if (row.kind !== 'remote') continue
    const found = differenceOf(row.input, rows.get(row.seq)?.input)
    if (!found) continue
    const message = describeDifference(
      `run ${runId}, position ${row.seq}: the input of "${row.name}"`,
      found
    )
    findings.add({ kind: 'input', runId, position: row.seq, message }, at)
  }
}
