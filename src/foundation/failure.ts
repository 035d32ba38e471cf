/*
 * Failures: the base of every public error, and the JSON shape in which an error is stored and sent.
 * Errors are recognised by `code` or by a registry symbol, never by class identity or message text.
 */

/** Stamped on errors that must never be retried. Shared by all copies of the package in a process. */
export const FATAL: unique symbol = Symbol.for('@agora/durable:fatal') as never

/** An error as history and the wire hold it. */
export interface StepError {
  message: string
  /** Stable machine-readable reason, e.g. `card_declined`. */
  code?: string
  /** `false` forbids another attempt; absent means that the retry policy decides. */
  retryable?: boolean
  stack?: string
  /** JSON-safe data that travels with the failure. */
  details?: unknown
  /** The step a run failed on; set on run errors only. */
  step?: { seq: number; name: string }
  /** What an operator's retry took back, until a turn has judged it. */
  reset?: { attempts: number; retryable?: boolean }
}

/** Base class of every error this package throws on purpose. */
export class DurableError extends Error {
  static readonly code: string = 'durable_error'
  readonly code: string

  constructor(message: string, options?: { code?: string; cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = options?.code ?? new.target.code
  }
}

/** A state that the engine's invariants exclude. Seeing one is a defect of this package. */
export class InvariantError extends DurableError {
  static override readonly code: string = 'invariant'

  constructor(invariant: string, what: string) {
    super(`${what} (breaks: ${invariant})`)
  }
}

/** True for a `FatalError` or one of its subclasses, whichever copy of the package made it. */
export function isFatal(error: unknown): boolean {
  return (
    typeof error === 'object' && error !== null && (error as { [FATAL]?: unknown })[FATAL] === true
  )
}

/** The stored form of anything thrown. `retryable: false` is set only for fatal errors. */
export function toStepError(thrown: unknown): StepError {
  if (!(thrown instanceof Error) && !isErrorLike(thrown)) {
    return { message: typeof thrown === 'string' ? thrown : describe(thrown) }
  }
  const error = thrown as Error & { code?: unknown; details?: unknown; retryable?: unknown }
  const result: StepError = { message: error.message }
  if (typeof error.code === 'string') result.code = error.code
  if (isFatal(error) || error.retryable === false) result.retryable = false
  if (typeof error.stack === 'string') result.stack = error.stack
  if (error.details !== undefined) result.details = jsonSafe(error.details)
  return result
}

/** An error carrying everything that a stored failure kept. */
export function fromStepError(stored: StepError): Error {
  const error = new Error(stored.message) as Error & Partial<StepError> & { [FATAL]?: true }
  if (stored.code !== undefined) error.code = stored.code
  if (stored.retryable !== undefined) error.retryable = stored.retryable
  if (stored.details !== undefined) error.details = stored.details
  if (stored.stack !== undefined) error.stack = stored.stack
  if (stored.retryable === false) error[FATAL] = true
  return error
}

/** Message of anything thrown. */
export function messageOf(thrown: unknown): string {
  return isErrorLike(thrown) ? thrown.message : describe(thrown)
}

function isErrorLike(thrown: unknown): thrown is { message: string } {
  return (
    typeof thrown === 'object' &&
    thrown !== null &&
    typeof (thrown as { message?: unknown }).message === 'string'
  )
}

function describe(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  try {
    return JSON.stringify(thrown) ?? String(thrown)
  } catch {
    return String(thrown)
  }
}

function jsonSafe(value: unknown): unknown {
  try {
    const text = JSON.stringify(value)
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return describe(value)
  }
}

/** Runs work whose failure must not matter; `reason` says why it may be lost (invariant 9 or 13). */
export async function bestEffort(
  reason: string,
  work: Promise<unknown>,
  report?: (error: unknown, reason: string) => void
): Promise<void> {
  try {
    await work
  } catch (error) {
    report?.(error, reason)
  }
}

/** Calls a listener that may not break its caller (invariant 13). */
export function isolate(listener: () => unknown, report?: (error: unknown) => void): void {
  try {
    const result = listener()
    if (result instanceof Promise) result.catch((error) => report?.(error))
  } catch (error) {
    report?.(error)
  }
}
