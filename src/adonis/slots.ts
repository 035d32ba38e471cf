/*
 * Global slots: what other packages leave under registry symbols, so that integrations need no import of
 * each other. Read at every call, so one that is loaded later counts from then on; what they hold is
 * passed along without looking inside.
 */

const CONTEXT: unique symbol = Symbol.for('@agora/context:accessor') as never
const SCOPE: unique symbol = Symbol.for('@agora/context:scope') as never
const TRACEPARENT: unique symbol = Symbol.for('@agora/otel:traceparent') as never

type Carrier = Record<string, unknown>

interface Slots {
  /** The ambient context; its snapshot travels with every dispatched step. */
  [CONTEXT]?: { get(): Carrier | undefined }
  /** Opens a scope seeded with a snapshot around `fn`. */
  [SCOPE]?: <T>(carrier: Carrier, fn: () => T) => T
  [TRACEPARENT]?: () => string | undefined
}

const slots = globalThis as Slots

/** What travels with a step dispatched now. */
export const contextFromSlot = (): Carrier | undefined => slots[CONTEXT]?.get?.()

/** Runs `fn` in the context that travelled with its run, if anything here can restore one. */
export function rehydrateFromSlot<T>(carrier: Carrier | undefined, fn: () => T): T {
  const open = slots[SCOPE]
  return carrier !== undefined && typeof open === 'function' ? open(carrier, fn) : fn()
}

/** W3C trace context of the current call, if an integration is installed. */
export function traceparentFromSlot(): string | undefined {
  const read = slots[TRACEPARENT]
  return typeof read === 'function' ? read() : undefined
}
