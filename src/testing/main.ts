/*
 * The door of the testing kit: everything a test of workflows needs, for any test runner.
 */
export {
  assertOutput,
  assertRunStatus,
  assertStepAttempts,
  assertStepsRan,
  recordedSteps,
} from './assertions.ts'
export type { RunSource } from './assertions.ts'
export { assertTransportConformance } from './contracts/transport.ts'
export {
  assertSurvivesCrashes,
  CrashFindingsError,
  ExplorationError,
  exploreCrashes,
} from './explore/explore_crashes.ts'
export type { Explorable } from './explore/explore_crashes.ts'
export type { CrashFinding, CrashReport } from './explore/finding.ts'
export type {
  CrashFindingKind,
  ExploreOptions,
  GivenSignal,
  NamedWorkflow,
  RunEnd,
  StepFake,
} from './explore/options.ts'
export { failOnce, failTimes } from './failing.ts'
export { createTestEngine } from './harness.ts'
export type { TestEngine, TestEngineOptions, TestRunOptions } from './harness.ts'
export { MutableClock } from './mutable_clock.ts'
export { assertReplayable, ReplayFailuresError, ReplayMismatchError } from './replay_check.ts'
export type { HistorySource, RegisterWorkflows } from './replay_check.ts'
export { captureHistory, parseRunHistory, RunHistoryError } from './run_history.ts'
export type { RunHistory } from './run_history.ts'
