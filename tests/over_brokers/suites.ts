/*
 * Which suites of engines run over brokers: those in which steps are dispatched, and those of the races
 * around them. Theirs are the worlds of tests/helpers/engines.ts.
 */
export const SUITES = [
  'tests/scenarios/after_boot.spec.ts',
  'tests/scenarios/awkward_names.spec.ts',
  'tests/scenarios/branches.spec.ts',
  'tests/scenarios/chains_and_state.spec.ts',
  'tests/scenarios/dispatched_steps.spec.ts',
  'tests/scenarios/event_batches.spec.ts',
  'tests/scenarios/every_wait.spec.ts',
  'tests/scenarios/payloads.spec.ts',
  'tests/scenarios/sagas.spec.ts',
  'tests/scenarios/suspension.spec.ts',
  'tests/scenarios/deadlines.spec.ts',
  'tests/scenarios/operating.spec.ts',
  'tests/races/cancelling.spec.ts',
  'tests/races/children.spec.ts',
  'tests/races/fans.spec.ts',
  'tests/races/parking.spec.ts',
  'tests/races/recovery.spec.ts',
  'tests/races/settling.spec.ts',
  'tests/races/wakes.spec.ts',
  'tests/races/timeouts.spec.ts',
]

/** Tests of these suites that mean something else than a broker, by title, and why. */
export const NOT_OVER_BROKERS: Readonly<Record<string, string>> = {
  'a task that was lost with its process comes back':
    'a broker loses no task with a process, so silence does not send one again',
}
