/*
 * Every public error class, in the order of the reference page. Each carries a stable `code` (static and
 * instance) and typed fields; handle them by code, so that a second copy of the package is no obstacle.
 */
import { DurableError, FATAL, type StepError } from './foundation/failure.ts'
import type { SchemaIssue } from './foundation/standard_schema.ts'

export { DurableError, InvariantError } from './foundation/failure.ts'
export { InvalidDurationError } from './foundation/duration.ts'
export { UnstorableValueError } from './foundation/json.ts'
export { ContinueAsNew, WorkflowSuspended } from './foundation/control_flow.ts'

/**
 * An unrecoverable business failure. Throw it in a step or a workflow: it is never retried and fails the
 * run at once. `code` and `details` travel with it to the run's error and to every handler.
 */
export class FatalError extends DurableError {
  static override readonly code: string = 'fatal'
  readonly [FATAL] = true
  readonly retryable = false

  constructor(
    message: string,
    code?: string,
    readonly details?: unknown
  ) {
    super(message, { code })
  }
}

/** A bounded wait passed before its payload came. */
export class SignalTimeoutError extends DurableError {
  static override readonly code: string = 'signal_timeout'

  constructor(
    readonly token: string,
    readonly timeoutMs: number
  ) {
    super(`no signal "${token}" within ${timeoutMs}ms`)
  }
}

/** The code at a position asks for something else than history recorded there. */
export class NonDeterminismError extends DurableError {
  static override readonly code: string = 'non_determinism'

  constructor(
    readonly runId: string,
    readonly seq: number,
    readonly expected: string,
    readonly recorded: string
  ) {
    super(
      `run ${runId}, position ${seq}: history recorded ${recorded}, the code now asks for ${expected}. ` +
        'The body changed under a running run: give the changed workflow a new `version`, ' +
        'or guard the change with `ctx.patched(id)`.'
    )
  }
}

/** A workflow primitive was called from inside a step body. */
export class NestedWorkflowCallError extends FatalError {
  static override readonly code: string = 'nested_workflow_call'

  constructor(
    readonly runId: string,
    readonly primitive: string,
    readonly step: string
  ) {
    super(
      `ctx.${primitive} was called inside the step "${step}" of run ${runId}. ` +
        'A step body does work; call workflow primitives from the workflow body.',
      NestedWorkflowCallError.code
    )
  }
}

export type SchemaErrorCode = 'schema_validation' | 'invalid_input' | 'invalid_output'

/** A value failed a declared schema. Never retried. */
export class SchemaValidationError extends FatalError {
  static override readonly code: string = 'schema_validation'

  constructor(
    label: string,
    readonly issues: SchemaIssue[],
    code: SchemaErrorCode = 'schema_validation'
  ) {
    const list = issues
      .map((issue) =>
        issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message
      )
      .join('; ')
    super(`${label} is invalid: ${list}`, code, { issues })
  }
}

/** A start whose quota key already has `limit` runs in flight. Nothing was created. */
export class ConcurrencyLimitError extends DurableError {
  static override readonly code: string = 'concurrency_limit'

  constructor(
    readonly workflow: string,
    readonly key: string,
    readonly limit: number,
    readonly active: number
  ) {
    super(`workflow ${workflow}: ${active} runs in flight for "${key}", the limit is ${limit}`)
  }
}

/** A start on a singleton workflow whose queue is full. Nothing was created. */
export class SingletonQueueFullError extends DurableError {
  static override readonly code: string = 'singleton_queue_full'

  constructor(
    readonly workflow: string,
    readonly key: string,
    readonly maxQueueDepth: number
  ) {
    super(`workflow ${workflow}: the queue of "${key}" is full (maxQueueDepth ${maxQueueDepth})`)
  }
}

/** One failed member of a fan. */
export interface GatherItemFailure {
  index: number
  id: string
  error: string
  code?: string
  details?: unknown
}

/** One or more members of a fan failed. */
export class GatherError extends DurableError {
  static override readonly code: string = 'gather_failed'

  constructor(
    readonly failures: GatherItemFailure[],
    readonly total: number
  ) {
    const ids = failures.map((failure) => failure.id).join(', ')
    super(`ctx.all: ${failures.length} of ${total} child(ren) failed: ${ids}`)
  }
}

/** A dispatched step gave no sign of life within its window. Retried as the step's policy says. */
export class RemoteStepTimeout extends DurableError {
  static override readonly code: string = 'remote_step_timeout'

  constructor(
    readonly stepId: string,
    readonly timeoutMs: number
  ) {
    super(`step ${stepId}: no result or heartbeat within ${timeoutMs}ms`)
  }
}

/** An attempt of a local step outlasted its `timeoutMs`. Retried as the step's policy says. */
export class StepTimeoutError extends DurableError {
  static override readonly code: string = 'step_timeout'
}

/** A dispatched step failed for good; `stepError` is what its worker reported. */
export class RemoteStepError extends DurableError {
  static override readonly code: string = 'remote_step_failed'
  readonly details?: unknown

  constructor(
    message: string,
    readonly stepError?: StepError
  ) {
    super(message, { code: stepError?.code })
    this.details = stepError?.details
  }
}

/** A turn of a remote workflow gave no decision in time. Recovery drives the run again. */
export class RemoteWorkflowTimeout extends DurableError {
  static override readonly code: string = 'remote_workflow_timeout'

  constructor(
    readonly taskId: string,
    readonly timeoutMs: number
  ) {
    super(`workflow task ${taskId}: no decision within ${timeoutMs}ms`)
  }
}

/** The run belongs to another namespace than this engine. */
export class NamespaceMismatch extends DurableError {
  static override readonly code: string = 'namespace_mismatch'

  constructor(
    readonly runId: string,
    readonly runNamespace: string,
    readonly engineNamespace: string
  ) {
    super(
      `run ${runId} belongs to namespace "${runNamespace}", this engine drives "${engineNamespace}"`
    )
  }
}

/** Two modules of discovery directories or of a barrel define the same workflow version or the same step. */
export class DuplicateDiscoveryError extends DurableError {
  static override readonly code: string = 'duplicate_discovery'

  constructor(
    readonly kind: 'workflow' | 'step',
    readonly id: string,
    readonly files: string[]
  ) {
    super(
      `the ${kind} "${id}" is defined more than once: ${files.join(' and ')}. ` +
        'Names route runs and steps: give one of them another name.'
    )
  }
}

/** `engine.schedules.create` on an id that exists. */
export class ScheduleAlreadyExistsError extends DurableError {
  static override readonly code: string = 'schedule_exists'

  constructor(readonly scheduleId: string) {
    super(`a schedule "${scheduleId}" exists already`)
  }
}

/** An `engine.schedules` call on an id that does not exist. */
export class ScheduleNotFoundError extends DurableError {
  static override readonly code: string = 'schedule_not_found'

  constructor(readonly scheduleId: string) {
    super(`there is no schedule "${scheduleId}"`)
  }
}

/** A call was given something it cannot use; nothing was written. `argument` names it. */
export class InvalidArgumentError extends DurableError {
  static override readonly code: string = 'invalid_argument'

  constructor(
    readonly argument: string,
    problem: string
  ) {
    super(`${argument} ${problem}`)
  }
}

/** No workflow of this name (and version) is registered here. */
export class WorkflowNotRegisteredError extends DurableError {
  static override readonly code: string = 'workflow_not_registered'

  constructor(
    readonly workflow: string,
    readonly version?: string,
    hint?: string
  ) {
    const name = version === undefined ? workflow : `${workflow}@${version}`
    super(`workflow ${name} is not registered${hint ? `. ${hint}` : ''}`)
  }
}

/** `waitForRun` gave up; the run itself goes on. */
export class WaitTimeoutError extends DurableError {
  static override readonly code: string = 'wait_timeout'
}

/** The run asked for does not exist. */
export class RunNotFoundError extends DurableError {
  static override readonly code: string = 'run_not_found'

  constructor(readonly runId: string) {
    super(`run ${runId} not found`)
  }
}

/** `createRun` on an id that exists. The run that has it is untouched. */
export class DuplicateRunError extends DurableError {
  static override readonly code: string = 'duplicate_run'

  constructor(
    readonly runId: string,
    cause?: unknown
  ) {
    super(`a run "${runId}" exists already`, { cause })
  }
}

/** A write under a lease that is gone: another turn holds the run, or it ended. Nothing was written. */
export class LeaseLostError extends DurableError {
  static override readonly code: string = 'lease_lost'

  constructor(
    readonly runId: string,
    readonly owner: string
  ) {
    super(`run ${runId} is no longer held by ${owner}: nothing was written`)
  }
}

/**
 * The transaction cannot be committed, and another try would not help: user code swallowed an error of the
 * database after which it can only be undone, ended it itself, or wrote what the database refuses to commit.
 */
export class TransactionSpoiledError extends DurableError {
  static override readonly code: string = 'transaction_spoiled'

  constructor(
    cause?: unknown,
    message = 'the transaction was undone by the database: a statement in it failed, and its error was ' +
      'caught. Let such an error out, or use a savepoint for what may fail.'
  ) {
    super(message, { cause })
  }
}

/** The store cannot do what was asked of it. */
export class StoreCapabilityError extends DurableError {
  static override readonly code: string = 'store_capability'
}

/** The store could not be reached or failed; `cause` is the driver's error. The outcome is unknown. */
export class StoreUnavailableError extends DurableError {
  static override readonly code: string = 'store_unavailable'
}

/**
 * The payload codec failed on a payload: a wrong key, a damaged row, a codec that cannot do its work. The
 * payload stays as it is stored; `cause` is the error of the codec.
 */
export class PayloadCodecError extends DurableError {
  static override readonly code: string = 'payload_codec'
  /** The run it belongs to, when it belongs to one. */
  readonly runId?: string
  /** The position in that run; absent for the input, output or error of the run itself. */
  readonly seq?: number

  constructor(message: string, about: { runId?: string; seq?: number; cause?: unknown } = {}) {
    super(message, { cause: about.cause })
    this.runId = about.runId
    this.seq = about.seq
  }
}

/** The transport could not be reached or failed; `cause` is the driver's error. */
export class TransportUnavailableError extends DurableError {
  static override readonly code: string = 'transport_unavailable'
}
