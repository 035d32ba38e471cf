/*
 * Spec files that take long: whole applications, many processes, many databases, hundreds of thousands of
 * runs. `npm test` leaves them to `npm run test:long`; both play them when they are named.
 */

/** Path, or beginning of paths, to seconds: about, and only to give each process as much to do. */
const LONG_SUITES: Record<string, number> = {
  'tests/conformance/admission_teeth/': 25,
  'tests/conformance/lucid_mysql.spec.ts': 50,
  'tests/demo/': 120,
  'tests/e2e/': 60,
  'tests/integration/counts/control.spec.ts': 40,
  'tests/integration/counts/dispatched_steps.spec.ts': 45,
  'tests/integration/counts/operating.spec.ts': 25,
  'tests/integration/counts/outside.spec.ts': 60,
  'tests/integration/counts/polls.spec.ts': 15,
  'tests/integration/faults/': 15,
  'tests/integration/memory/': 40,
  'tests/integration/processes/': 30,
  'tests/package/consumers.spec.ts': 35,
  'tests/scenarios/database_outage.spec.ts': 60,
  'tests/scenarios/dead_workers.spec.ts': 40,
  'tests/scenarios/many_steps.spec.ts': 40,
  'tests/scenarios/retention.spec.ts': 15,
  'tests/store/lucid/many_connections.spec.ts': 20,
  'tests/transport/bullmq/conformance.spec.ts': 25,
  'tests/transport/db/conformance.spec.ts': 50,
  'tests/transport/queue/': 35,
  'tests/transport/teeth/': 45,
}

const SHORT_SECONDS = 2

/** Undefined for a file of `npm test`. */
export function secondsOfLong(file: string): number | undefined {
  return Object.entries(LONG_SUITES).find(([path]) => file.startsWith(path))?.[1]
}

export const secondsOf = (file: string): number => secondsOfLong(file) ?? SHORT_SECONDS
