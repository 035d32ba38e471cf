/*
 * Events of other instances: marked when a control plane hands them on, so that who counts or records
 * leaves them out. The mark is of this process: it is not written, sent or copied.
 */
import type { EngineEvent } from '../types/engine_event.ts'

const REMOTE: unique symbol = Symbol.for('@agora/durable:remote-event') as never

/** Marks an event that came from another instance; answers it. */
export function markRemote(event: EngineEvent): EngineEvent {
  return Object.defineProperty(event, REMOTE, { value: true })
}

/**
 * True for an event that another instance produced and the control plane told here. A listener that
 * counts or records leaves these out, so that a fleet counts each event once.
 */
export function isRemoteEvent(event: EngineEvent): boolean {
  return (event as { [REMOTE]?: unknown })[REMOTE] === true
}
