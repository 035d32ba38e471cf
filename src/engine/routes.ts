/*
 * Failure routes as data: which handler a failure goes to. Specified in docs/reliability/failures.md.
 */
import { InvalidArgumentError } from '../errors.ts'
import { keyProblem } from '../foundation/keys.ts'
import type { OnErrorRoute, RegisterOptions } from '../types/workflow.ts'

/** Begin the ids of runs that handle another one's end; the rest is its id. */
export const ON_ERROR_RUN = 'onerror:'
export const DEAD_LETTER_RUN = 'dlq:'
/** True for a run that handles another one's end: its own end is not handled, or it would never stop. */
export const isHandler = (runId: string): boolean =>
  runId.startsWith(ON_ERROR_RUN) || runId.startsWith(DEAD_LETTER_RUN)

/** Never routed: the code and the history of the run do not fit, so its input may not either. */
const UNROUTED = 'non_determinism'
const SCHEMA = 'schema_validation'
const SCHEMA_CODES = ['invalid_input', 'invalid_output']

/**
 * The route of a failure: the first with its very code; for an input or output that a schema refused the
 * first of `schema_validation`; then the first without a code.
 */
export function routeOf(
  routes: readonly OnErrorRoute[] | undefined,
  code: string | undefined
): OnErrorRoute | undefined {
  if (!routes || code === UNROUTED) return undefined
  const withCode = (wanted: string | undefined) => routes.find((route) => route.code === wanted)
  const own = code === undefined ? undefined : withCode(code)
  const schema = SCHEMA_CODES.includes(code ?? '') ? withCode(SCHEMA) : undefined
  return own ?? schema ?? withCode(undefined)
}

/** Throws `InvalidArgumentError` for handlers that cannot be registered. */
export function checkHandlers(
  workflow: string,
  { onError, deadLetterWorkflow }: Pick<RegisterOptions, 'onError' | 'deadLetterWorkflow'>
): void {
  const what = `register: onError of workflow "${workflow}"`
  if (onError !== undefined && !Array.isArray(onError)) {
    throw new InvalidArgumentError(what, 'must be a list of { code, workflow }')
  }
  for (const route of onError ?? []) {
    check(`${what}: the handler`, keyProblem(route?.workflow))
    if (route.code === undefined || typeof route.code === 'string') continue
    throw new InvalidArgumentError(`${what}: the code`, 'must be a string')
  }
  if (deadLetterWorkflow === undefined) return
  check(`register: deadLetterWorkflow of workflow "${workflow}"`, keyProblem(deadLetterWorkflow))
}

function check(what: string, problem: string | undefined): void {
  if (problem) throw new InvalidArgumentError(what, problem)
}
