/*
 * Compares what a run came to with what the first one came to.
 */
import { NonDeterminismError } from '../../errors.ts'
import { messageOf } from '../../foundation/failure.ts'
import { nextLinkId } from '../../foundation/ids.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import { type ReplayableWorkflow, replayHistory } from '../replay_check.ts'
import type { Findings } from './finding.ts'
import { BODY } from './ledger.ts'
import { type JudgeOptions, judgeRuns } from './judge_runs.ts'
import { linesOf } from './timeline.ts'
import type { Sighting } from './watched_body.ts'
import type { Course } from './world.ts'

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
export function judgeCourse(course: Course, options: JudgeOptions, at: string): void {
  const { findings, first } = options
  if (course.stuck !== undefined) {
    const [runId] = course.runs.keys()
    findings.add({ kind: 'stuck', runId, message: course.stuck }, at)
  } else {
    judgeRuns(course, options, at)
  }
  for (const { runId, what, step, times, allowed } of course.ledger.excessOver(first.ledger)) {
    const subject = what === BODY ? `step "${step}"` : `${what} in step "${step}"`
    const message = `run ${runId}: ${subject} ran ${times} times, where ${allowed} are allowed`
    findings.add({ kind: 'effect', runId, message }, at)
  }
}
