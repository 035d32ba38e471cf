/*
 * What an engine may be asked to call.
 */
import { InvalidArgumentError } from '../errors.ts'

/** Throws `InvalidArgumentError` that names the verb: a listener that is none fails when it is needed. */
export function checkListener<Listener>(verb: string, listener: Listener): Listener {
  return checkFunction(`${verb}: the listener`, listener)
}

/** Throws `InvalidArgumentError` that begins with `what`. */
export function checkFunction<Given>(what: string, given: Given): Given {
  if (typeof given === 'function') return given
  const got = given === null ? 'null' : typeof given
  throw new InvalidArgumentError(what, `must be a function, got ${got}`)
}
