/*
 * A store stripped to the members that every store has: what is left of a custom store written against the
 * smallest port.
 */
import { REQUIRED_MEMBERS } from '../../src/store/ports/members.ts'
import type { RequiredRoles, StateStore } from '../../src/store/state_store.ts'

export function requiredOnly(store: StateStore): StateStore {
  const members = REQUIRED_MEMBERS.map((name) => [
    name,
    (...args: never[]) => Reflect.apply(store[name] as (...args: never[]) => unknown, store, args),
  ])
  return Object.fromEntries(members) as RequiredRoles
}
