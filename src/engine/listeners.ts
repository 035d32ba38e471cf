/*
 * What an engine may be asked to call.
 */
import { InvalidArgumentError } from '../errors.ts'

/** Throws `InvalidArgumentError` that names the verb: a listener that is none fails when it is needed. */
export function checkListener<Listener>(verb: string, listener: Listener): Listener {
  if (typeof listener === 'function') return listener
  throw new InvalidArgumentError(
    `${verb}: the listener`,
    `must be a function, got ${listener === null ? 'null' : typeof listener}`
  )
}
