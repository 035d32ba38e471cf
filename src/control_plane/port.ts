/*
 * The port to the other engines: a broadcast of lifecycle events, cancellations and wake hints. Every
 * message may be lost, doubled or late; the store is the truth (invariant 9).
 */
import type { ControlMessage } from '../wire/messages.ts'

export interface ControlPlane {
  /** Broadcasts to every subscriber, this process's own included. */
  publishControl(message: ControlMessage): Promise<void>
  /** Adds a subscriber; what it throws is contained. */
  onControl(handler: (message: ControlMessage) => void): void
  /** Idempotent; afterwards nothing is delivered. */
  close?(): Promise<void>
}
