/*
 * A store whose schema is provisioned by the first call that needs it. For processes that usually call
 * nothing: `node ace migration:run` boots the application, and must find the database as it left it.
 */
import type { StateStore } from '../store/state_store.ts'

/** Calls that touch no table, or are the provisioning itself. */
const UNGATED = new Set<PropertyKey>(['ensureSchema', 'close', 'withScope'])

type Method = (...args: unknown[]) => unknown

/** The store, with `ensureSchema` before its first call. A failed provisioning is tried again. */
export function withDeferredSchema(store: StateStore): StateStore {
  let ready: Promise<void> | undefined
  const provision = () =>
    (ready ??= Promise.resolve(store.ensureSchema?.()).catch((error) => {
      ready = undefined
      throw error
    }))
  return gated(store, provision)
}

function gated(store: StateStore, provision: () => Promise<void>): StateStore {
  const methods = new Map<PropertyKey, Method>()
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      const known = methods.get(name)
      if (known) return known
      const call: Method = (...args) => Reflect.apply(member as Method, target, args)
      const method = UNGATED.has(name)
        ? name === 'withScope'
          ? (...args: unknown[]) => gated(call(...args) as StateStore, provision)
          : call
        : async (...args: unknown[]) => {
            await provision()
            return call(...args)
          }
      methods.set(name, method)
      return method
    },
  })
}
