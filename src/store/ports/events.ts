/*
 * Role: buffered events. Required of every store.
 */
import type { BufferedEvent } from '../../types/checkpoint.ts'

export interface EventBuffer {
  bufferEvent(event: BufferedEvent & { name: string }): Promise<void>
  /** Oldest first by `publishedAt`, ties by id; consumes nothing, filters nothing. */
  listBufferedEvents(name: string, limit: number): Promise<BufferedEvent[]>
  /** The claim: exactly one concurrent caller gets true. */
  removeBufferedEvent(id: string): Promise<boolean>
}
