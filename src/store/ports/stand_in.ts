/*
 * A member that a wrapper has only because it always has it: it stands in for one that the store behind it
 * lacks. Whoever asks what a store can do itself must not count it.
 */

/** Stamped on the function. Shared by all copies of the package in a process. */
const STAND_IN: unique symbol = Symbol.for('@agora/durable:stand-in') as never

export function markStandIn<Member extends (...args: never[]) => unknown>(member: Member): Member {
  return Object.assign(member, { [STAND_IN]: true })
}

export const isStandIn = (member: unknown): boolean =>
  typeof member === 'function' && STAND_IN in member
