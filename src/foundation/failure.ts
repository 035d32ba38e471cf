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
  return typeof error === 'object' && error !== null && read(error, FATAL) === true
}

/** The stored form of anything thrown. `retryable: false` is set only for fatal errors. */
export function toStepError(thrown: unknown): StepError {
  if (!isErrorLike(thrown)) return { message: describe(thrown) }
  const result: StepError = { message: thrown.message }
  const [code, stack, details] = (['code', 'stack', 'details'] as const).map((key) =>
    read(thrown, key)
  )
  if (typeof code === 'string') result.code = code
  if (isFatal(thrown) || read(thrown, 'retryable') === false) result.retryable = false
  if (typeof stack === 'string') result.stack = stack
  if (details !== undefined) result.details = jsonSafe(details)
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

/**
 * What was thrown, if it can be passed on: whoever looks at an object whose very prototype cannot be read
 * would throw in turn, and the run would be lost to it again and again.
 */
export function presentable(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error)
    return thrown
  } catch {
    return new DurableError(NO_DESCRIPTION, { code: 'undescribable_error' })
  }
}

function isErrorLike(thrown: unknown): thrown is { message: string } {
  return (
    typeof thrown === 'object' && thrown !== null && typeof read(thrown, 'message') === 'string'
  )
}

const NO_DESCRIPTION = 'a value was thrown that cannot be described'

/** A property of anything thrown: a getter, or the trap of a proxy, may throw in turn. */
export function read(thrown: object, key: PropertyKey): unknown {
  try {
    return (thrown as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** True for an error with this code, whichever copy of the package made it. */
export const hasCode = (thrown: unknown, code: string): thrown is Error & { code: string } =>
  isErrorLike(thrown) && read(thrown, 'code') === code

function describe(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  for (const form of [JSON.stringify, String]) {
    try {
      const text = form(thrown) as string | undefined
      if (text !== undefined && text !== '{}') return text
    } catch {
      // The next form may do.
    }
  }
  return NO_DESCRIPTION
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
