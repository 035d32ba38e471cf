/*
 * Assertions about runs, for any test runner: they throw plain errors that say what was found instead.
 */
import type { WorkflowEngine } from '../engine/workflow_engine.ts'
import { decodeJson, encodeJson } from '../foundation/json.ts'
import type { StateStore } from '../store/state_store.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { RunStatus, WorkflowRun } from '../types/run.ts'
import { describeDifference, differenceOf, shown } from './difference.ts'

/** Where runs can be read: an engine, a store, or what `createTestEngine` answers. */
export type RunSource =
  | Pick<WorkflowEngine, 'getRun' | 'listCheckpoints'>
  | Pick<StateStore, 'getRun' | 'listCheckpoints'>
  | { engine: Pick<WorkflowEngine, 'getRun' | 'listCheckpoints'> }

/** Asserts that the run has this status. Rejects with an `Error` that says which it has, and why. */
export async function assertRunStatus(
  source: RunSource,
  runId: string,
  expected: RunStatus
): Promise<void> {
  const run = await runOf(source, runId)
  if (run.status === expected) return
  const why = run.error ? ` (${run.error.message})` : ''
  throw new Error(`run ${runId}: expected status ${expected}, found ${run.status}${why}`)
}

/**
 * Asserts that the run completed with this output. Values are compared as JSON, key order does not
 * matter. Rejects with an `Error` that names the first difference by its path.
 */
export async function assertOutput(
  source: RunSource,
  runId: string,
  expected: unknown
): Promise<void> {
  await assertRunStatus(source, runId, 'completed')
  const { output } = await runOf(source, runId)
  const stored = decodeJson(encodeJson(expected, 'the expected output'))
  const found = differenceOf(stored, output)
  if (found) throw new Error(`run ${runId}: ${describeDifference('output', found)}`)
}

/**
 * Asserts that every one of these steps is recorded as completed, in any order; others may be there too.
 * Rejects with an `Error` that lists the missing ones and what is recorded.
 */
export async function assertStepsRan(
  source: RunSource,
  runId: string,
  names: string[]
): Promise<void> {
  const rows = await rowsOf(source, runId)
  const completed = new Set(
    rows.filter(({ status }) => status === 'completed').map(({ name }) => name)
  )
  const missing = names.filter((name) => !completed.has(name))
  if (missing.length === 0) return
  const recorded = rows.map(({ name, status }) => `${name} (${status})`).join(', ') || 'nothing'
  throw new Error(`run ${runId}: did not complete ${missing.join(', ')}; recorded: ${recorded}`)
}

/**
 * Asserts how many attempts the first recorded step of this name took. Rejects with an `Error` when it
 * took another number, or when no step has that name.
 */
export async function assertStepAttempts(
  source: RunSource,
  runId: string,
  name: string,
  expected: number
): Promise<void> {
  const rows = await rowsOf(source, runId)
  const row = rows.find((candidate) => candidate.name === name)
  if (!row) {
    const names = rows.map((candidate) => candidate.name)
    throw new Error(`run ${runId}: no step "${name}"; recorded: ${shown(names)}`)
  }
  if (row.attempts === expected) return
  throw new Error(`run ${runId}: step "${name}" took ${row.attempts} attempts, not ${expected}`)
}

/**
 * The names of everything the run's body recorded, by position: steps, sleeps, waits, markers. Saga
 * undos are not among them.
 */
export async function recordedSteps(source: RunSource, runId: string): Promise<string[]> {
  const rows = await rowsOf(source, runId)
  return rows.map(({ name }) => name)
}

/** The run. Rejects with an `Error` when there is none. */
export async function runOf(source: RunSource, runId: string): Promise<WorkflowRun> {
  const run = await readable(source).getRun(runId)
  if (!run) throw new Error(`there is no run ${runId}`)
  return run
}

/** What answers reads, whatever was given. */
export function readable(
  source: RunSource
): Exclude<RunSource, { engine: Pick<WorkflowEngine, 'getRun'> }> {
  return 'engine' in source ? source.engine : source
}

/** The rows of the body, by position. */
async function rowsOf(source: RunSource, runId: string): Promise<StepCheckpoint[]> {
  await runOf(source, runId)
  const rows = await readable(source).listCheckpoints(runId)
  return rows.filter(({ seq }) => seq >= 0).sort((a, b) => a.seq - b.seq)
}
