/*
 * Role: signal waiters and buffered signals. Required of every store. Each call is visible to the next
 * caller once it resolved.
 */
import type { SignalWaiter } from '../../types/checkpoint.ts'

export interface SignalRows {
  /** One waiter per token; a later one replaces it. */
  putSignalWaiter(waiter: SignalWaiter): Promise<void>
  /** Removes and returns; exactly one of several takers gets it. */
  takeSignalWaiter(token: string): Promise<SignalWaiter | null>
  /** Literal, case-sensitive prefix; '' lists all. */
  listSignalWaiters(prefix: string): Promise<SignalWaiter[]>
  /** Removes only the row whose token, run and position all match. */
  removeSignalWaiter(waiter: SignalWaiter): Promise<void>
  bufferSignal(token: string, payload: unknown): Promise<void>
  /** Takes the oldest payload of a token; the payload itself may be undefined. */
  takeBufferedSignal(token: string): Promise<{ payload: unknown } | null>
}
