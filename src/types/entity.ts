/*
 * Durable entities: state under a key, changed by operations that run one after the other.
 */

/**
 * One operation. It may change `state` in place; what it returns answers the caller. Runs at least once: a
 * crash before its result is durable runs it again on the state before it.
 */
export type EntityHandler<TState = unknown> = (state: TState, arg: never) => unknown

/** `engine.registerEntity`. State and arguments are JSON. */
export interface EntityConfig<TState = unknown> {
  /** State of a key that no operation has reached yet. */
  initialState: () => TState
  handlers: Record<string, EntityHandler<TState>>
}
