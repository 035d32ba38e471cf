/*
 * What verbs answer about a stored run or a finished turn.
 */
import type { TurnReport } from '../../turns/effects.ts'
import type { RunResult, WorkflowRun } from '../../types/run.ts'

export function resultOf(run: WorkflowRun): RunResult {
  return compact({ runId: run.id, status: run.status, output: run.output, error: run.error })
}

export function resultOfTurn(report: TurnReport): RunResult {
  const { runId, status, output, error } = report
  return compact({ runId, status, output, error })
}

function compact(result: RunResult): RunResult {
  if (result.output === undefined) delete result.output
  if (result.error === undefined) delete result.error
  return result
}
