/*
 * Labels for whoever observes the process: work that a schedule caused, and probes that only ask whether
 * something is alive. An observability tool leaves a function under a registry symbol, which runs the work
 * inside its label; without one the work is simply run. Looked at on every call, so one that is loaded
 * later counts from then on.
 */
type Labelled = <T>(fn: () => T) => T

const SCHEDULE: unique symbol = Symbol.for('@agora/observability:schedule-origin') as never
const HEARTBEAT: unique symbol = Symbol.for('@agora/observability:heartbeat') as never

const slots = globalThis as { [SCHEDULE]?: Labelled; [HEARTBEAT]?: Labelled }

const labelled = (label: Labelled | undefined, fn: () => never): never =>
  typeof label === 'function' ? label(fn) : fn()

/** Runs `fn` as work that a schedule caused; answers, or throws, what it does. */
export function withScheduleOrigin<T>(fn: () => T): T {
  return labelled(slots[SCHEDULE], fn as () => never)
}

/** Runs `fn` as a probe that a tool may leave out of what it records; answers, or throws, what it does. */
export function asHeartbeat<T>(fn: () => T): T {
  return labelled(slots[HEARTBEAT], fn as () => never)
}
